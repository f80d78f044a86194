import { isJsonObject } from '../../../kubernetes/object/index.ts'
import type { Diagnostic } from '../diagnostics.ts'

/** The meaning of one line of Terraform's `-json` output. */
export type UiEvent =
  | { kind: 'planned'; address: string; steps: number }
  /** `isCreation`: it makes a resource that no state has yet. */
  | { kind: 'started'; address: string; isCreation: boolean }
  | { kind: 'finished'; address: string }
  /** The provider has reported an error. */
  | { kind: 'failed'; address: string }
  | { kind: 'summary'; add: number; change: number; destroy: number; operation: string }
  | { kind: 'diagnostic'; diagnostic: Diagnostic; address: string | undefined }
  | { kind: 'other' }

export type UiLine = { event: UiEvent; log: string[] }

export type UiOptions = {
  /** Name of our variables file as Terraform reports it. */
  variablesFile?: string
  /** The variable on a line of that file. */
  variableOfLine?: (line: number) => string | undefined
}

/**
 * Reads one line of `terraform plan|apply|init -json` (the machine-readable UI, versions 1.0 to 1.2). A line that is not a JSON object is
 * log text. Snippets of our variables file are left out, because it contains secrets (invariant 9).
 */
export function readUiLine(line: string, options: UiOptions = {}): UiLine {
  const message = parseObject(line)
  if (!message) return { event: { kind: 'other' }, log: line.trim() === '' ? [] : [line] }
  if (message.type === 'diagnostic' && isJsonObject(message.diagnostic)) return readDiagnostic(message.diagnostic, options)
  const text = typeof message['@message'] === 'string' ? message['@message'] : ''
  const event = readEvent(message)
  return { event, log: isRedundant(message) ? [] : nonEmptyLines(text) }
}

function readEvent(message: Record<string, unknown>): UiEvent {
  const hook = isJsonObject(message.hook) ? message.hook : {}
  switch (message.type) {
    case 'planned_change': {
      const change = isJsonObject(message.change) ? message.change : {}
      const steps = stepsOf(text(change.action))
      return { kind: 'planned', address: addressOf(change.resource), steps }
    }
    case 'apply_start':
      return { kind: 'started', address: addressOf(hook.resource), isCreation: hook.action === 'create' }
    case 'apply_complete':
      return { kind: 'finished', address: addressOf(hook.resource) }
    case 'apply_errored':
      return { kind: 'failed', address: addressOf(hook.resource) }
    case 'change_summary': {
      const changes = isJsonObject(message.changes) ? message.changes : {}
      const count = (name: string) => (typeof changes[name] === 'number' ? changes[name] : 0)
      return { kind: 'summary', add: count('add'), change: count('change'), destroy: count('remove'), operation: text(changes.operation) }
    }
    default:
      return { kind: 'other' }
  }
}

/** How often a planned change will be started and completed. A replacement deletes and creates. */
function stepsOf(action: string): number {
  switch (action) {
    case 'create':
    case 'update':
    case 'delete':
    case 'read':
      return 1
    case 'replace':
      return 2
    default:
      return 0 // noop, move, remove (forget) and import without change start nothing
  }
}

function readDiagnostic(raw: Record<string, unknown>, options: UiOptions): UiLine {
  const severity = raw.severity === 'warning' ? 'warning' : 'error'
  const summary = text(raw.summary)
  const range = isJsonObject(raw.range) ? raw.range : undefined
  const filename = range ? text(range.filename) : undefined
  const start = isJsonObject(range?.start) && typeof range.start.line === 'number' ? range.start.line : undefined
  const isOurs = filename !== undefined && options.variablesFile !== undefined && samePath(filename, options.variablesFile)
  const variable = isOurs && start !== undefined ? options.variableOfLine?.(start) : undefined
  const detail = replaceCliAdvice(text(raw.detail)) + (variable ? ` (variable ${variable} of the Stack)` : '')
  const location: { file?: string; line?: number } =
    filename !== undefined && !isOurs ? { file: filename, ...(start !== undefined && { line: start }) } : {}
  const diagnostic: Diagnostic = { severity, summary, ...(detail && { detail }), ...location }
  const log = [`${severity === 'error' ? 'Error' : 'Warning'}: ${summary}`.split('\n')].flat()
  if (location.file !== undefined) {
    const snippet = isJsonObject(raw.snippet) ? raw.snippet : undefined
    const context = snippet && typeof snippet.context === 'string' ? `, in ${snippet.context}` : ''
    log.push(`  on ${location.file}${start === undefined ? '' : ` line ${start}`}${context}`)
    const firstLine = typeof snippet?.start_line === 'number' ? snippet.start_line : start
    const code = snippet ? text(snippet.code).split('\n') : []
    code.slice(0, 10).forEach((codeLine, index) => {
      log.push(`    ${firstLine === undefined ? '' : `${firstLine + index}: `}${codeLine}`)
    })
    for (const value of Array.isArray(snippet?.values) ? snippet.values : []) {
      if (isJsonObject(value)) log.push(`      ${text(value.traversal)} ${text(value.statement)}`)
    }
  }
  log.push(...nonEmptyLines(detail).map(detailLine => `  ${detailLine}`))
  return { event: { kind: 'diagnostic', diagnostic, address: typeof raw.address === 'string' ? raw.address : undefined }, log }
}

/** Replaces advice about command line options, which the author of a Stack cannot set. */
function replaceCliAdvice(detail: string): string {
  return detail
    .replace(
      /Use a -var or -var-file command line argument to provide a value for this variable\./,
      'Set it in spec.variables or spec.variablesFrom, or give it a default.',
    )
    .replace(/\n\nTo see which modules are currently depending on [\s\S]*$/, '')
    .trim()
}

/** Another line has the same information. */
function isRedundant(message: Record<string, unknown>): boolean {
  return message.type === 'refresh_complete' || (message.type === 'provision_progress' && /: Executing: \[/.test(text(message['@message'])))
}

function samePath(a: string, b: string): boolean {
  return a === b || a.replace(/^\.\//, '') === b.replace(/^\.\//, '')
}

function addressOf(resource: unknown): string {
  return isJsonObject(resource) ? text(resource.addr) : ''
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function nonEmptyLines(text: string): string[] {
  return text.split('\n').filter(line => line.trim() !== '')
}

function parseObject(line: string): Record<string, unknown> | undefined {
  if (!line.startsWith('{')) return undefined
  try {
    const value: unknown = JSON.parse(line)
    return isJsonObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** A diagnostic and the address of the resource that it is about, if any. */
export type ResourceDiagnostic = { diagnostic: Diagnostic; address: string | undefined }

/**
 * True when the same files and variables will fail in the same way: the error is at a location in the configuration or in a variable, and
 * not in the behavior of a resource or remote service. When that is unclear the result is false, and the Run is retried.
 */
export function isConfigurationError({ diagnostic, address }: ResourceDiagnostic): boolean {
  const { severity, summary, detail = '', file } = diagnostic
  if (severity !== 'error' || address !== undefined) return false
  if (/condition failed|assertion failed/i.test(summary)) return false
  if (/^(failed|could not|unable to|error|timeout|cannot reach)\b/i.test(summary)) return false
  if (/connection (refused|reset)|i\/o timeout|no such host|TLS handshake/i.test(detail)) return false
  return (
    file !== undefined ||
    / of the Stack\)$/.test(detail) ||
    /^(Invalid|Unsupported|Missing|No value for|Duplicate|Reference to)/.test(summary)
  )
}

/** True for errors that only report that another error occurred. */
export function isFollowUpError({ diagnostic }: ResourceDiagnostic): boolean {
  return /^execution halted$|encountered problems during initiali[sz]ation/.test(diagnostic.summary)
}

const provisionerEnd = Buffer.from('"type":"provision_progress"}')

/** One line that has what a provisioner printed: nothing but the log needs it. In the text of another line quotes would be escaped. */
export function isProvisionerOutput(bytes: Buffer): boolean {
  const end = bytes.at(-1) === 10 ? bytes.length - 1 : bytes.length
  return bytes.lastIndexOf(10, end - 1) < 0 && bytes.subarray(Math.max(0, end - provisionerEnd.length), end).equals(provisionerEnd)
}
