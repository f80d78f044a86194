/** Why an engine failed, for machines: it becomes `status.reason` of the Run. */
export type EngineErrorReason =
  | 'EngineNotFound'
  | 'EngineVersionMismatch'
  | 'InvalidSpec'
  | 'InvalidConfiguration'
  | 'InitFailed'
  | 'PlanFailed'
  | 'ApplyFailed'
  | 'DestroyFailed'
  | 'PlanOutdated'
  | 'InvalidOutputs'
  | 'Interrupted'
  | 'WaitTimeout'

/** One finding of an engine. `file` is relative to the source, `line` starts at 1. Secret values are already masked. */
export type Diagnostic = {
  severity: 'error' | 'warning'
  summary: string
  detail?: string
  file?: string
  line?: number
}

/**
 * What every engine throws. `message` is for the person who wrote the Stack and fits a condition;
 * `retryable` is false when the same inputs will fail the same way.
 */
export class EngineError extends Error {
  override readonly name = 'EngineError'
  readonly reason: EngineErrorReason
  readonly retryable: boolean
  readonly diagnostics: Diagnostic[]

  constructor(
    reason: EngineErrorReason,
    message: string,
    options: { retryable: boolean; diagnostics?: Diagnostic[]; cause?: unknown } = { retryable: true },
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.reason = reason
    this.retryable = options.retryable
    this.diagnostics = options.diagnostics ?? []
  }
}

/** Interrupted runs may be tried again: the engine stopped because it was told to. */
export function interruptedError(engine: string, during: string): EngineError {
  return new EngineError('Interrupted', `${engine} was interrupted during ${during}; what it had finished is in the state`, {
    retryable: true,
  })
}

/** The longest error message that goes into a status. */
const maxMessageLength = 2_000

/**
 * One sentence or two for a condition: the first error in full, with its place, and how many more there are.
 * `fallback` is used when there is no error among `diagnostics`.
 */
export function describeDiagnostics(diagnostics: readonly Diagnostic[], fallback: string): string {
  const errors = diagnostics.filter(({ severity }) => severity === 'error')
  const [first] = errors
  if (!first) return clip(fallback)
  const detail = first.detail?.trim().replace(/\s*\n\s*/g, ' ')
  const place = first.file ? ` (${first.file}${first.line === undefined ? '' : ` line ${first.line}`})` : ''
  const more = errors.length > 1 ? `; ${errors.length - 1} more error${errors.length > 2 ? 's' : ''}, see the log` : ''
  const summary = first.summary.trim().replace(/\s*\n\s*/g, ' ')
  return `${clip(detail ? `${summary}: ${detail}` : summary)}${place}${more}`
}

function clip(text: string): string {
  return text.length > maxMessageLength ? `${text.slice(0, maxMessageLength - 1)}…` : text
}
