import type { Diagnostic } from './diagnostics.ts'

/** Why an engine failed, for machines: the worker writes it to `status.reason` of the Run. */
export type EngineErrorReason =
  | 'EngineNotFound'
  | 'EngineVersionMismatch'
  | 'InvalidSpec'
  | 'InvalidConfiguration'
  | 'BackendInFiles'
  | 'StateInFiles'
  | 'InitFailed'
  | 'PlanFailed'
  | 'ApplyFailed'
  | 'DestroyFailed'
  | 'PlanOutdated'
  | 'StateLocked'
  | 'ApprovalNotBound'
  | 'PendingCreates'
  | 'InvalidOutputs'
  | 'Interrupted'
  | 'WaitTimeout'

/**
 * The error that every engine throws. `message` is written for the author of the Stack and fits into a condition.
 * `retryable` is false when the same inputs will fail in the same way.
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

/**
 * The engine stopped because the Run was interrupted, so the Run may be retried.
 * @param result what that leaves, such as `no object was changed`.
 */
export function interruptedError(engine: string, during: string, result: string): EngineError {
  return new EngineError('Interrupted', `${engine} was interrupted during ${during}; ${result}`, { retryable: true })
}
