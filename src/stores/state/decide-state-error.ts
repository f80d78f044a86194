/** Why a Run must not start from a state. */
export type StateError = {
  readonly reason: 'StateMissing' | 'StateRegressed'
  /** The Run requires at least this version. */
  readonly expected: number
  /** The newest accepted version; 0 without one. */
  readonly newest: number
}

/**
 * Whether a Run that requires the version `expected` may start. An engine that starts from no state creates everything again, and one that starts from
 * an older state what was created since. A version that a user writes is higher than the expected one: it is their decision.
 */
export function decideStateError(expected: number, newest: number): StateError | undefined {
  if (newest >= expected) return undefined
  return { reason: newest === 0 ? 'StateMissing' : 'StateRegressed', expected, newest }
}

export const formatStateError = ({ reason, expected, newest }: StateError): string =>
  reason === 'StateMissing'
    ? `the Stack has resources, but no state is stored: version ${expected} or a later one is required`
    : `the newest stored state has version ${newest}, but a Run of the Stack has stored version ${expected}`
