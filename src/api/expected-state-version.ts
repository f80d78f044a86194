import { annotations } from './names.ts'
import type { Stack } from './stack.ts'

/**
 * The state of a Stack has at least this version, if nothing was lost; 0 if it may have no state. A Stack with resources whose Runs have reported no
 * version, as those of earlier releases, has some, and so does one whose user has imported a state, also before its first Run.
 */
export function expectedStateVersion({ metadata, spec, status }: StateFacts): number {
  if (spec.state === 'External') return 0
  const imported = metadata.annotations?.[annotations.importedState]
  const isImported = imported !== undefined && !imported.startsWith(pendingImport)
  return Math.max(status?.stateVersion ?? 0, isImported || (status?.resources ?? 0) > 0 ? 1 : 0)
}

type StateFacts = Pick<Stack, 'spec' | 'status'> & { readonly metadata: Pick<Stack['metadata'], 'annotations'> }

/** Before the lineage in the annotation {@link annotations.importedState} until the state is stored. */
export const pendingImport = 'pending:'

/** Why Runs of a Stack are rejected: it has no state any more, an older one than a Run has stored, or one that this version of Oarlock cannot read. */
export const stateErrorReasons = ['StateMissing', 'StateRegressed', 'JournalUnreadable'] as const
export type StateErrorReason = (typeof stateErrorReasons)[number]

export const isStateError = (reason: string | undefined): reason is StateErrorReason =>
  (stateErrorReasons as readonly (string | undefined)[]).includes(reason)
