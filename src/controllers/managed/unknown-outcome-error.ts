/**
 * Thrown by `create` when the external system may or may not have done what it was asked for. The creation stays pending: it is not
 * repeated until a person, or an observation by a deterministic name, has settled what happened.
 */
export class UnknownOutcomeError extends Error {
  override readonly name: string = 'UnknownOutcomeError'
}

/** Codes of Node's and undici's errors after which a request may have been received. A refused or unresolved connection is not one of them. */
const ambiguousCodes = new Set([
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'ECONNABORTED',
  'ABORT_ERR',
  'UND_ERR_SOCKET',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
  'UND_ERR_ABORTED',
])

/** Whether the call that failed with `error` may have had its effect. */
export function hasUnknownOutcome(error: unknown): boolean {
  let current = error
  // Bounded: a chain of causes may be cyclic.
  for (let depth = 0; depth < 8 && current instanceof Error; depth++) {
    const { code } = current as NodeJS.ErrnoException
    if (current instanceof UnknownOutcomeError || current.name === 'AbortError' || current.name === 'TimeoutError') return true
    if (typeof code === 'string' && ambiguousCodes.has(code)) return true
    current = current.cause
  }
  return false
}
