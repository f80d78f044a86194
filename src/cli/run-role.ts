import { type ComponentName, roleRights } from '../app/index.ts'
import { type AccessOptions, type Client, createClient } from '../kubernetes/client/index.ts'
import { parseDuration } from '../kubernetes/object/index.ts'
import { coerceError, type Log } from '../kubernetes/util/index.ts'
import { dataDirectory } from './access.ts'
import { CliError, formatError } from './cli-error.ts'
import { exitCodes } from './exit-codes.ts'
import { openLog } from './open-log.ts'
import { reportReadiness } from './report-readiness.ts'
import { onShutdownSignal } from './shutdown-signals.ts'
import { startError } from './start-error.ts'
import { note, outPaint, print } from './terminal.ts'
import { packageVersion } from './version.ts'

export type RoleOptions = { kubeconfig?: string; context?: string; data: string; log?: string; logLevel: string; grace: string }

export type RoleContext = {
  client: Client
  access: AccessOptions
  log: Log
  /** Absolute. */
  dataDir: string
  /** Ends the process with the exit code of the error. */
  fail(error: Error): void
}
export type StartedRole = {
  /** Name and value of each line that is printed after the start. */
  rows: readonly (readonly [name: string, value: string])[]
  /** The reasons why the role is not ready, with the texts of errors, which `/readyz` omits; empty if it is. */
  notReady(): readonly string[]
  /** What it does when it is ready, printed whenever it changes; undefined if that is not known yet. */
  ready(): string | undefined
  stop(options: { graceMs: number }): Promise<void>
  /** Ends the wait for work in progress during `stop`. Default: a second signal ends the process immediately. */
  interrupt?(): void
}

/**
 * Runs one role until a signal ends it, or until it fails. A second signal interrupts work in progress, or ends the process immediately.
 * @returns the exit code.
 */
export async function runRole(
  command: ComponentName,
  options: RoleOptions,
  start: (context: RoleContext) => Promise<StartedRole>,
): Promise<number> {
  const dataDir = dataDirectory(options.data)
  const ended = Promise.withResolvers<number>()
  let isInterrupted = false
  const removeSignalHandlers = onShutdownSignal(count => {
    const interrupt = role?.interrupt
    if (count > 2 || (count === 2 && !interrupt)) process.exit(exitCodes.interrupted)
    if (count === 2) {
      note('interrupting Runs so that they save their state (press Ctrl-C again to force)')
      isInterrupted = true
      return interrupt?.()
    }
    note(`shutting down (press Ctrl-C again to ${interrupt ? 'interrupt Runs' : 'force'})`)
    ended.resolve(exitCodes.done)
  })
  const { logger, close } = openLog(options, dataDir)
  const access = { kubeconfig: options.kubeconfig, context: options.context }
  let client: Client | undefined
  let role: StartedRole | undefined
  try {
    // Not the kubeconfig of a local server, which commands find: a role gets the one that was made for it.
    client = await createClient({ ...access, userAgent: `oarlock-${command}`, fieldManager: 'oarlock' })
    const fail = (error: Error) => {
      const { message, hint, exitCode } = formatError(startError(error, command))
      note(`oarlock ${command}: ${message}${hint === undefined ? '' : `\n  hint: ${hint}`}`)
      ended.resolve(exitCode)
    }
    await requireRights(client, command, logger)
    role = await start({ client, access, log: logger, dataDir, fail }).catch((error: unknown) => {
      throw startError(error, command)
    })
    const paint = outPaint()
    print(`${paint('bold', `oarlock ${packageVersion()}`)} ${command}`)
    for (const [name, value] of role.rows) print(`  ${paint('dim', name.padEnd(11))} ${value}`)
    const stopReporting = reportReadiness(role, print)
    const exitCode = await ended.promise
    stopReporting()
    await role.stop({ graceMs: parseDuration(options.grace) })
    print('stopped')
    return isInterrupted ? exitCodes.interrupted : exitCode
  } finally {
    removeSignalHandlers()
    await client?.close()
    close()
  }
}

/** @throws {CliError} rejected, if the user lacks a permission of the role. An API server that does not answer is awaited by the role itself. */
async function requireRights(client: Client, component: ComponentName, log: Pick<Log, 'warn'>): Promise<void> {
  const missing = await (await roleRights())(client, component).catch((error: unknown) => {
    // Compared by name: importing the client for its class would cost servers 2 MB.
    if ((error as Error).name !== 'ConnectionError') throw error
    log.warn({ err: coerceError(error) }, 'the permissions of the role were not checked')
    return []
  })
  if (missing.length === 0) return
  const more = missing.length - maxNamedRights
  const named = `${missing.slice(0, maxNamedRights).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
  throw new CliError(`the user of this kubeconfig has no permission to ${named}`, {
    exitCode: exitCodes.rejected,
    hint: `use the ServiceAccount oarlock-${component}, which has what "oarlock ${component}" needs (docs/kubernetes.md)`,
  })
}

const maxNamedRights = 4
