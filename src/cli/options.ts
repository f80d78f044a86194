import { join, resolve } from 'node:path'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { durationPattern, parseDuration } from '../kubernetes/object/index.ts'
import type { AuditOptions } from '../kubernetes/server/index.ts'
import { outputFormats } from './output/output-formats.ts'

/** Sets what the process exits with after a command that did not throw. */
export type ExitWith = (code: number) => void
/** Adds one command to the program: its arguments, options and help. Its implementation is loaded when it runs. */
export type DeclareCommand = (program: Command, exitWith: ExitWith) => void

/** The options of commands that talk to an API server. */
export function accessOptions(command: Command, { allNamespaces = false } = {}): Command {
  command
    .option('-n, --namespace <namespace>', 'namespace (default: that of the kubeconfig context)')
    .option('--kubeconfig <file>', 'kubeconfig (default: $KUBECONFIG, $OARLOCK_DATA/kubeconfig or .oarlock/kubeconfig, ~/.kube/config)')
    .option('--context <name>', 'kubeconfig context (default: the current context)')
  return allNamespaces ? command.option('-A, --all-namespaces', 'list objects of all namespaces') : command
}

/** `--wait` or `--no-wait`, whichever is not the default, and `--timeout`. */
export function waitOptions(command: Command, waitsByDefault: boolean, description = 'wait until the Run finishes'): Command {
  const option = waitsByDefault
    ? new Option('--no-wait', 'return immediately instead of waiting')
    : new Option('--wait', description).default(false)
  return command.addOption(option).option('--timeout <duration>', 'maximum time to wait', duration, '1h')
}

export const dataOption = () => new Option('--data <dir>', 'data directory (default: $OARLOCK_DATA or .oarlock)')

export const yesOption = () => new Option('-y, --yes', 'do not ask for confirmation')

export const outputOption = (formats: readonly string[] = outputFormats) =>
  new Option('-o, --output <format>', 'output format').choices([...formats])

/** Where an API server listens, and where it logs. */
export function serverOptions(command: Command): Command {
  command
    .addOption(dataOption())
    .option('--listen <host:port>', 'API server address (TLS); port 0 picks a free port', '127.0.0.1:7466')
    .option('--log <file>', 'log file, - for stderr (default: <data>/oarlock.log)')
    .addOption(new Option('--log-level <level>', 'minimum log level').choices(['debug', 'info', 'warn', 'error']).default('info'))
  return auditLogOptions(command)
}

export function auditLogOptions(command: Command): Command {
  return command
    .option('--audit-log-path <file>', 'audit log: who changed what (default: <data>/audit/audit.log)')
    .option('--audit-log-maxsize <MB>', 'size at which the audit log is rotated', positiveInteger, 50)
    .option('--audit-log-maxbackup <n>', 'maximum number of rotated audit logs to keep', positiveInteger, 5)
    .option('--audit-log-maxage <days>', 'maximum age of rotated audit logs (default: unlimited)', positiveInteger)
    .option('--audit-policy-file <file>', 'audit.k8s.io/v1 Policy (default: metadata of writes)')
    .option('--no-audit-log', 'write no audit log')
}

export type AuditFlags = {
  auditLog: boolean
  auditLogPath?: string
  auditLogMaxsize: number
  auditLogMaxbackup: number
  auditLogMaxage?: number
  auditPolicyFile?: string
}

/** The audit log that the flags of {@link auditLogOptions} describe. */
export function auditOptions(flags: AuditFlags, dataDir: string): AuditOptions | undefined {
  if (!flags.auditLog) return undefined
  return {
    path: resolve(flags.auditLogPath ?? join(dataDir, 'audit', 'audit.log')),
    maxBytes: flags.auditLogMaxsize * 1024 * 1024,
    maxBackups: flags.auditLogMaxbackup,
    ...(flags.auditLogMaxage !== undefined && { maxAgeMs: flags.auditLogMaxage * 24 * 3_600_000 }),
    policyFile: flags.auditPolicyFile,
  }
}

/** For an option that can be given several times. */
export const collect = (value: string, previous: string[] = []) => [...previous, value]

export function duration(text: string): string {
  if (!new RegExp(durationPattern).test(text)) throw new InvalidArgumentError('A duration is expected, such as 90s, 5m or 1h30m.')
  return text
}

export const durationBetween = (min: string, max: string) => (text: string) => {
  const ms = parseDuration(duration(text))
  if (ms < parseDuration(min) || ms > parseDuration(max)) throw new InvalidArgumentError(`It must be from ${min} to ${max}.`)
  return text
}

/** Milliseconds since the epoch. */
export function timestamp(text: string): number {
  const ms = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[-+]\d\d:\d\d)$/.test(text) ? Date.parse(text) : Number.NaN
  if (Number.isNaN(ms)) throw new InvalidArgumentError('A time such as 2026-01-31T12:00:00Z is expected.')
  return ms
}

export function positiveInteger(text: string): number {
  const value = Number(text)
  if (!Number.isInteger(value) || value < 1) throw new InvalidArgumentError('An integer >= 1 is expected.')
  return value
}

export const integerBetween = (min: number, max: number) => (text: string) => {
  const value = positiveInteger(text)
  if (value < min || value > max) throw new InvalidArgumentError(`It must be from ${min} to ${max}.`)
  return value
}

export function nonNegativeInteger(text: string): number {
  const value = Number(text)
  if (text.trim() === '' || !Number.isInteger(value) || value < 0) throw new InvalidArgumentError('An integer >= 0 is expected.')
  return value
}

export function positiveNumber(text: string): number {
  const value = Number(text)
  if (!(value > 0 && value < Infinity)) throw new InvalidArgumentError('A number > 0 is expected.')
  return value
}

/** `20..200` or `50`. */
export function sizeRange(text: string): { from: number; to: number } {
  const [, from = '', to = from] = /^(\d+)(?:\.\.(\d+))?$/.exec(text) ?? []
  const range = { from: Number(from), to: Number(to) }
  const isRange = from !== '' && range.from >= 1 && range.to >= range.from
  if (!isRange) throw new InvalidArgumentError('A range such as 20..200, the smaller number first, or one number >= 1 is expected.')
  return range
}
