/** Which update a journal is of: a Run may execute several, each with a higher number. */
export type UpdateId = { readonly epoch: number; readonly runName: string; readonly update: number }

/** The journal that a Stack has, or the last one that it had. */
export type JournalPosition = UpdateId & { readonly isOpen: boolean }

/**
 * - `append`: the journal of this update is open.
 * - `begin`: a new update begins; a journal that is still open is compacted first, since its update has been cut off.
 * - `closed`: the journal of this update has been compacted, and later entries would be applied to another base.
 */
export type JournalDecision = 'append' | 'begin' | 'closed'

/** Where entries of `claim` belong. Whether its Run may write at all is decided before (`decide-write.ts`). */
export function decideJournal(current: JournalPosition | undefined, claim: UpdateId): JournalDecision {
  if (current?.epoch !== claim.epoch || current.runName !== claim.runName || current.update < claim.update) return 'begin'
  return current.isOpen && current.update === claim.update ? 'append' : 'closed'
}

/**
 * - `compact`: the journal of this update is open, and becomes a version.
 * - `close`: the update has no entries; an open journal is of an update before, which has been cut off, and becomes a version.
 * - `ended`: this update is complete, or a later one of its Run has begun: nothing changes.
 */
export type CompleteDecision = 'compact' | 'close' | 'ended'

/**
 * What the completion of `claim` does. The request may arrive twice, also after the next update of its Run has begun. `mayWrite`: no other Run or user
 * holds the lock. Without it only its own journal becomes a version: the entries of another one may still be arriving.
 */
export function decideComplete(current: JournalPosition | undefined, claim: UpdateId, mayWrite: boolean): CompleteDecision {
  const decision = decideJournal(current, claim)
  if (decision === 'append') return 'compact'
  return decision === 'begin' && mayWrite ? 'close' : 'ended'
}
