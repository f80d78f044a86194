import type { Deployment, PendingOperation, Resource, UntypedDeployment } from './deployment.ts'
import { featuresOf } from './deployment-features.ts'
import type { JournalEntry, UnreadableEntry } from './journal-entry.ts'
import { normalizeUrnReferences } from './normalize-urn-references.ts'
import { removeDanglingReferences } from './remove-dangling-references.ts'

export type ReplayResult =
  | { kind: 'deployment'; result: UntypedDeployment & { deployment: Deployment }; pending: PendingOperation[] }
  | UnreadableEntry

/** Who has written the result. `magic` is the hex SHA-256 of `version`, and empty if `version` is. */
export type ReplayOptions = { manifest: { time: string; magic: string; version: string } }

/**
 * A place in the new state. Invariants: a resource of the base has exactly one slot, and so has each operation that added a resource; a later entry
 * changes the slot and never moves it, so a resource stays behind what it depends on.
 */
type Slot = { resource: Resource; isRemoved: boolean; isDelete: boolean; isPendingReplacement: boolean }

/**
 * The state that an update has reached: `base` with the changes of `entries`, which are those of one update in any order. Nothing is changed in place.
 *
 * The order of the result is part of the protocol, because the next journal refers to resources by their index: first what this update has added or
 * kept, in the order in which its operations ended, then what of the base it has not visited, in the order of the base. A resource that is replaced
 * in place (`Outputs`, `RefreshSuccess`) keeps its position. Operations that have begun and not ended are pending; of those that were pending in the
 * base only creations are kept, since only the user can decide what became of them. Semantics as in Pulumi's `backend.JournalReplayer` (CLI 3.260).
 *
 * A journal that cannot be interpreted completely has no result.
 */
export function replayJournal(
  base: UntypedDeployment | undefined,
  entries: readonly (JournalEntry | UnreadableEntry)[],
  { manifest }: ReplayOptions,
): ReplayResult {
  const replay = new Replay(base)
  for (const entry of entries.toSorted((a, b) => a.sequenceId - b.sequenceId)) {
    if (entry.kind === 'unreadable') return entry
    const problem = replay.add(entry)
    if (problem === undefined) continue
    return {
      kind: 'unreadable',
      entryKind: entry.kind,
      sequenceId: entry.sequenceId,
      message: `an entry of kind ${entry.kind}: ${problem}`,
    }
  }
  const deployment = replay.deployment()
  if (typeof deployment === 'string')
    return { kind: 'unreadable', entryKind: 'Success', sequenceId: entries.length, message: `the journal: ${deployment}` }
  const features = featuresOf(deployment, replay.requiresByteString, base?.features ?? [])
  const version = features.length > 0 ? 4 : 3
  const result = { version, ...(features.length > 0 && { features }), deployment: { ...deployment, manifest } }
  return { kind: 'deployment', result, pending: deployment.pending_operations ?? [] }
}

class Replay {
  #base: Deployment
  #oldSlots: Slot[] = []
  #newSlots: Slot[] = []
  /** By operation; undefined for one that has ended without a resource. */
  #slotOf = new Map<number, Slot | undefined>()
  /** Operations that have begun and not ended, in the order of their begin. */
  #begun = new Map<number, PendingOperation | undefined>()
  #extensions: Record<string, unknown> = {}
  #hasRefresh = false
  /** An entry has changed a resource: the indexes of `#base` are in use. */
  #isChanged = false
  requiresByteString = false

  constructor(base: UntypedDeployment | undefined) {
    this.#base = {}
    this.requiresByteString = base?.features?.includes('byteString') === true
    this.#rebase(base?.deployment ?? {})
  }

  /** Applies an entry; returns why it cannot be applied. */
  add(entry: JournalEntry): string | undefined {
    if (entry.requiresByteString) this.requiresByteString = true
    switch (entry.kind) {
      case 'Begin':
        this.#begun.set(entry.operationId, entry.operation)
        return undefined
      case 'Success':
        return this.#succeed(entry)
      case 'Failure': {
        this.#begun.delete(entry.operationId)
        // A later step may refer to the resource by the operation that failed to refresh it.
        const slot = this.#referred(entry.removeOld, entry.removeNew)
        if (typeof slot === 'string') return slot
        this.#slotOf.set(entry.operationId, slot)
        return undefined
      }
      case 'RefreshSuccess':
        this.#hasRefresh = true
        this.#begun.delete(entry.operationId)
        return this.#replaceInPlace(entry)
      case 'Outputs':
        return entry.state === undefined ? undefined : this.#replaceInPlace(entry)
      case 'Write':
        // The indexes of the changes before would refer to another list.
        if (this.#isChanged) return 'it follows changes of resources'
        this.#rebase(entry.newSnapshot ?? {})
        return undefined
      case 'SecretsManager':
        if (entry.secretsProvider) this.#base = { ...this.#base, secrets_providers: entry.secretsProvider }
        return undefined
      case 'Snippets': {
        const { snippets: _, ...others } = this.#base
        this.#base = { ...others, ...(entry.snippets && entry.snippets.length > 0 && { snippets: entry.snippets }) }
        return undefined
      }
      case 'RebuiltBaseState': {
        const rebuilt = this.deployment()
        if (typeof rebuilt === 'string') return rebuilt
        this.#rebase(rebuilt)
        this.#begun.clear()
        this.#extensions = {}
        return undefined
      }
      case 'ExtensionParameterize':
        this.#extensions = { ...this.#extensions, [entry.extensionRef ?? '']: entry.extension }
        return undefined
      default:
        return `unknown kind ${entry.kind satisfies never}`
    }
  }

  /** What the entries so far result in, or why there is no result. */
  deployment(): Deployment | string {
    const slots = [...this.#newSlots, ...this.#oldSlots].filter(slot => !slot.isRemoved)
    let resources = slots.map(({ resource, isDelete, isPendingReplacement }) => ({
      ...resource,
      ...(isDelete && { delete: true }),
      ...(isPendingReplacement && { pendingReplacement: true }),
    }))
    if (this.#hasRefresh) resources = removeDanglingReferences(resources)
    const begun = [...this.#begun.values()].filter(operation => operation !== undefined)
    const creating = (this.#base.pending_operations ?? []).filter(({ type }) => type === 'creating')
    const pending = [...begun, ...creating]
    const extensions = { ...this.#extensions, ...this.#base.extensions }
    const { manifest, secrets_providers, resources: _, pending_operations: __, metadata, extensions: ___, ...others } = this.#base
    return normalizeUrnReferences({
      ...(manifest && { manifest }),
      ...(secrets_providers && { secrets_providers }),
      resources,
      ...(pending.length > 0 && { pending_operations: pending }),
      metadata: metadata ?? {},
      ...others,
      ...(Object.keys(extensions).length > 0 && { extensions }),
    })
  }

  #rebase(base: Deployment): void {
    this.#base = base
    this.#oldSlots = (base.resources ?? []).map(createSlot)
    this.#newSlots = []
    this.#slotOf.clear()
    this.#isChanged = false
  }

  #succeed(entry: JournalEntry): string | undefined {
    this.#begun.delete(entry.operationId)
    if (entry.isRefresh) this.#hasRefresh = true
    const removed = this.#referred(entry.removeOld, entry.removeNew)
    const deleted = this.#referred(entry.deleteOld, entry.deleteNew)
    const replaced = this.#referred(entry.pendingReplacementOld, entry.pendingReplacementNew)
    for (const slot of [removed, deleted, replaced]) if (typeof slot === 'string') return slot
    if (removed) (removed as Slot).isRemoved = true
    if (deleted) (deleted as Slot).isDelete = true
    if (replaced) (replaced as Slot).isPendingReplacement = true
    if (removed || deleted || replaced || entry.state) this.#isChanged = true
    const added = entry.state && createSlot(entry.state)
    if (added) this.#newSlots.push(added)
    this.#slotOf.set(entry.operationId, added)
    return undefined
  }

  /** Replaces the resource that `entry` refers to; without a state, it does not exist any more. */
  #replaceInPlace(entry: JournalEntry): string | undefined {
    const slot = this.#referred(entry.removeOld, entry.removeNew)
    if (typeof slot === 'string') return slot
    if (slot === undefined) return undefined
    this.#isChanged = true
    if (entry.state) slot.resource = entry.state
    else slot.isRemoved = true
    if (entry.kind === 'RefreshSuccess') this.#slotOf.set(entry.operationId, slot)
    return undefined
  }

  /** The slot of index `old` in the base or of operation `added`; undefined without either, a message if there is none. */
  #referred(old: number | undefined, added: number | undefined): Slot | string | undefined {
    if (old !== undefined) return this.#oldSlots[old] ?? `it refers to resource ${old} of the state, which has ${this.#oldSlots.length}`
    if (added === undefined) return undefined
    if (!this.#slotOf.has(added)) return `it refers to operation ${added}, which is not in the journal`
    return this.#slotOf.get(added)
  }
}

const createSlot = (resource: Resource): Slot => ({ resource, isRemoved: false, isDelete: false, isPendingReplacement: false })
