import type { Deployment, PendingOperation, Resource, UntypedDeployment } from './deployment.ts'
import { featuresOf } from './deployment-features.ts'
import type { JournalEntry, UnreadableEntry } from './journal-entry.ts'
import { removeDanglingReferences } from './remove-dangling-references.ts'

export type RecoveredEntries = {
  state: UntypedDeployment & { deployment: Deployment }
  /** URNs of resources that the state did not have. */
  added: string[]
  /** URNs of resources whose creation had begun. */
  pending: string[]
  /** What cannot be recovered, each with the reason. */
  skipped: string[]
}

/**
 * Adds to a state what journal entries have created that it lacks: entries that arrived too late refer to a state that is not the current one, so they
 * cannot be replayed. A resource that the state has with the same id is newer there; which resource was removed is not known from its index.
 */
export function recoverEntries(
  current: UntypedDeployment | undefined,
  entries: readonly (JournalEntry | UnreadableEntry)[],
): RecoveredEntries {
  const deployment = current?.deployment ?? {}
  const live = new Map((deployment.resources ?? []).filter(resource => resource.delete !== true).map(resource => [resource.urn, resource]))
  const added = new Map<string, Resource>()
  const begun = new Map<number, PendingOperation>()
  const skipped: string[] = []
  for (const entry of entries.toSorted((a, b) => a.sequenceId - b.sequenceId)) {
    if (entry.kind === 'unreadable') skipped.push(`entry ${entry.sequenceId}: ${entry.message}`)
    else if (entry.kind === 'Begin' && entry.operation?.type === 'creating') begun.set(entry.operationId, entry.operation)
    else if (entry.kind === 'Success' || entry.kind === 'Failure' || entry.kind === 'Outputs') {
      begun.delete(entry.operationId)
      const { state, kind } = entry
      const present = state && live.get(state.urn)
      if (kind === 'Success' && !state) skipped.push(`entry ${entry.sequenceId}: a resource was deleted, which the entry does not name`)
      else if (state && kind !== 'Failure' && (!present || added.has(state.urn))) {
        added.set(state.urn, state)
      } else if (kind === 'Success' && present && present.id !== state?.id)
        skipped.push(`${present.urn}: the state has it with id ${String(present.id)}, the entry with id ${String(state?.id)}`)
    }
  }
  const before = deployment.resources ?? []
  // References to what the state does not have are removed from the added resources only.
  const resources = [...before, ...removeDanglingReferences([...before, ...added.values()]).slice(before.length)]
  const pending = [...begun.values()].filter(({ resource }) => !live.has(resource.urn) && !added.has(resource.urn))
  const operations = [...(deployment.pending_operations ?? []), ...pending]
  const recovered: Deployment = { ...deployment, resources, ...(operations.length > 0 && { pending_operations: operations }) }
  const features = featuresOf(
    recovered,
    current?.features?.includes('byteString') === true || entries.some(requiresByteString),
    current?.features ?? [],
  )
  return {
    state: { version: features.length > 0 ? 4 : 3, ...(features.length > 0 && { features }), deployment: recovered },
    ...{ added: [...added.keys()], pending: pending.map(({ resource }) => resource.urn), skipped },
  }
}

const requiresByteString = (entry: JournalEntry | UnreadableEntry): boolean => entry.kind !== 'unreadable' && entry.requiresByteString
