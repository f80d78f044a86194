import type { Stack } from './stack.ts'

/**
 * The state of a Stack has at least this version, if nothing was lost; 0 if it may have no state. A Stack with resources whose Runs have reported no
 * version, as those of earlier releases, has some.
 */
export function expectedStateVersion({ spec, status }: Pick<Stack, 'spec' | 'status'>): number {
  if (spec.state === 'External') return 0
  return Math.max(status?.stateVersion ?? 0, (status?.resources ?? 0) > 0 ? 1 : 0)
}

/** Why Runs of a Stack are rejected: it has no state any more, or an older one than a Run has stored. */
export const stateErrorReasons = ['StateMissing', 'StateRegressed'] as const
export type StateErrorReason = (typeof stateErrorReasons)[number]

export const isStateError = (reason: string | undefined): reason is StateErrorReason =>
  (stateErrorReasons as readonly (string | undefined)[]).includes(reason)
