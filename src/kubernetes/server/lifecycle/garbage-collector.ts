import type { KubeObject, OwnerReference } from '../../object/index.ts'
import type { Kind, Registry } from '../registry/index.ts'
import { deleteEntry, isDeletionComplete, mutate } from '../rest/index.ts'
import { parseEntry, type Store, type StoredEntry, type StoredEvent, type Table } from '../storage/index.ts'
import { type OwnerLookUp, OwnersElsewhere, type OwnersElsewhereOptions } from './owners-elsewhere.ts'
import type { TaskQueue } from './task-queue.ts'

const foreground = 'foregroundDeletion'
const orphan = 'orphan'

/** The state of the owner that a reference names. `unknown`: its kind is not served. `elsewhere`: it is not here, and may be in another partition. */
type OwnerState = 'present' | 'deleting' | 'absent' | 'elsewhere' | 'unknown'

export type GarbageCollectorOptions = Pick<OwnersElsewhereOptions, 'onError' | 'intervalMs'> & {
  /** Of a server that is one of several partitions. Default: what is stored here decides. */
  readonly owners?: OwnerLookUp | undefined
}

/**
 * Deletes objects whose owners no longer exist, and executes the propagation policies `Foreground` and `Orphan`. Whether an owner exists is
 * looked up by name and UID each time, never concluded from an event alone. Owners in other partitions: `owners-elsewhere.ts`.
 */
export class GarbageCollector {
  readonly #store: Store
  readonly #registry: Registry
  readonly #queue: TaskQueue
  readonly #elsewhere: OwnersElsewhere | undefined

  constructor(store: Store, registry: Registry, queue: TaskQueue, { owners, onError, intervalMs }: GarbageCollectorOptions) {
    this.#store = store
    this.#registry = registry
    this.#queue = queue
    this.#elsewhere =
      owners &&
      new OwnersElsewhere({
        ...owners,
        hasDependents: uid => [...store.tables()].some(table => table.ownedBy(uid)),
        onAbsent: uids => this.#enqueueDependents(...uids),
        onError,
        intervalMs,
      })
  }

  stop(): void {
    this.#elsewhere?.stop()
  }

  /** Enqueues all objects that may need work: events before the start were not observed. */
  start(): void {
    for (const table of this.#store.tables()) {
      for (const entry of table.values()) if (entry.owners || entry.deleting) this.#enqueue(table, entry)
    }
  }

  observe(table: Table, events: readonly StoredEvent[]): void {
    for (const { type, entry, before } of events) {
      if (type === 'DELETED') {
        this.#elsewhere?.deleted(entry.uid)
        this.#enqueueDependents(entry.uid)
        // The owner may wait for the deletion of this dependent.
        if (entry.owners) for (const reference of referencesOf(entry)) this.#enqueueOwner(entry, reference)
      } else if (entry.deleting || (entry.owners && !sameOwners(entry, before))) this.#enqueue(table, entry)
    }
  }

  #enqueue(table: Table, entry: StoredEntry): void {
    if (entry.deleting && (entry.text.includes(`"${foreground}"`) || entry.text.includes(`"${orphan}"`))) {
      this.#queue.add(`owner ${table.name} ${entry.key}`, () => this.#processDeletingOwner(table, entry.key))
    }
    if (entry.owners && !entry.deleting && referencesOf(entry).some(reference => this.#ownerOf(entry, reference).state === 'absent')) {
      this.#queue.add(`dependent ${table.name} ${entry.key}`, () => this.#attemptToDelete(table, entry.key, undefined))
    }
  }

  #enqueueDependents(...uids: readonly string[]): void {
    for (const table of this.#store.tables()) {
      for (const key of new Set(uids.flatMap(uid => [...(table.ownedBy(uid) ?? [])]))) {
        this.#queue.add(`dependent ${table.name} ${key}`, () => this.#attemptToDelete(table, key, undefined))
      }
    }
  }

  #enqueueOwner(dependent: StoredEntry, reference: OwnerReference): void {
    const { state, table, entry } = this.#ownerOf(dependent, reference)
    if (state === 'deleting' && table && entry) this.#enqueue(table, entry)
  }

  #ownerOf(
    dependent: StoredEntry,
    { apiVersion, kind: kindName, name, uid }: OwnerReference,
  ): { state: OwnerState; table?: Table; entry?: StoredEntry } {
    const kind = this.#registry.findByKind(apiVersion, kindName)
    if (!kind || (kind.namespaced && !dependent.namespace)) return { state: 'unknown' }
    const table = this.#store.table(kind.storageName)
    const entry = table.get(kind.namespaced ? `${dependent.namespace}/${name}` : name)
    if (entry?.uid !== uid) {
      const owner = { table: kind.storageName, plural: kind.plural, apiVersion, kind: kindName, name, uid }
      return { state: !kind.namespaced && this.#elsewhere?.mayExist(owner) ? 'elsewhere' : 'absent' }
    }
    return { state: entry.deleting ? 'deleting' : 'present', table, entry }
  }

  /**
   * Deletes a dependent without owners, or removes its references to owners that do not exist.
   * @param deletingUid the UID of an owner in foreground deletion, which counts as not existing.
   */
  async #attemptToDelete(table: Table, key: string, deletingUid: string | undefined): Promise<void> {
    const entry = table.get(key)
    if (!entry?.owners || entry.deleting) return
    const absentUids: string[] = []
    let isKept = false
    for (const reference of referencesOf(entry)) {
      const { state } = this.#ownerOf(entry, reference)
      if (state === 'absent' || reference.uid === deletingUid) absentUids.push(reference.uid)
      else isKept = true
    }
    if (absentUids.length === 0) return
    if (isKept) {
      await this.#removeOwnerReferences(table, key, absentUids)
      return
    }
    const kind = this.#kindOf(table)
    if (!kind) return
    const hasDependents = [...this.#store.tables()].some(other => other.ownedBy(entry.uid))
    const propagation = deletingUid !== undefined && hasDependents ? 'Foreground' : undefined
    await deleteEntry(this.#store, kind, table, entry, { propagation, dryRun: false })
  }

  /** Processes the finalizers of an owner: its dependents are orphaned (Orphan) or deleted first (Foreground). */
  async #processDeletingOwner(table: Table, key: string): Promise<void> {
    const entry = table.get(key)
    if (!entry?.deleting) return
    const finalizers = parseEntry(entry).metadata.finalizers ?? []
    const dependents = this.#dependentsOf(entry)
    if (finalizers.includes(orphan)) {
      await Promise.all(dependents.map(([other, dependent]) => this.#removeOwnerReferences(other, dependent.key, [entry.uid])))
      await this.#removeFinalizer(table, entry, orphan)
      return
    }
    if (!finalizers.includes(foreground)) return
    const isBlocking = ([, dependent]: [Table, StoredEntry]) =>
      referencesOf(dependent).some(reference => reference.uid === entry.uid && reference.blockOwnerDeletion === true)
    if (!dependents.some(isBlocking)) {
      await this.#removeFinalizer(table, entry, foreground)
      return
    }
    await Promise.all(dependents.map(([other, dependent]) => this.#attemptToDelete(other, dependent.key, entry.uid)))
    // The deletion of each dependent enqueues the owner again.
    if (!this.#dependentsOf(entry).some(isBlocking)) await this.#removeFinalizer(table, entry, foreground)
  }

  // A UID is not secret: a reference from another namespace, or with another name, must not block the deletion of an owner.
  #dependentsOf(owner: StoredEntry): [Table, StoredEntry][] {
    const found: [Table, StoredEntry][] = []
    for (const table of this.#store.tables()) {
      for (const key of table.ownedBy(owner.uid) ?? []) {
        const dependent = table.get(key)!
        const isOwn = (reference: OwnerReference) => {
          if (reference.uid !== owner.uid) return false
          const { state } = this.#ownerOf(dependent, reference)
          if (state === 'unknown') return owner.namespace === '' || owner.namespace === dependent.namespace
          return state === 'present' || state === 'deleting'
        }
        if (referencesOf(dependent).some(isOwn)) found.push([table, dependent])
      }
    }
    return found
  }

  async #removeOwnerReferences(table: Table, key: string, uids: readonly string[]): Promise<void> {
    await mutate(this.#store, table, key, head => {
      const object = head && parseEntry(head)
      const references = object?.metadata.ownerReferences
      if (!object || !references?.some(reference => uids.includes(reference.uid))) return { result: undefined }
      const kept = references.filter(reference => !uids.includes(reference.uid))
      return { put: withMeta(object, { ownerReferences: kept.length > 0 ? kept : undefined }) }
    })
  }

  async #removeFinalizer(table: Table, entry: StoredEntry, finalizer: string): Promise<void> {
    await mutate(this.#store, table, entry.key, head => {
      const object = head && parseEntry(head)
      const finalizers = object?.metadata.finalizers
      if (!object || object.metadata.uid !== entry.uid || !finalizers?.includes(finalizer)) return { result: undefined }
      const kept = finalizers.filter(name => name !== finalizer)
      const next = withMeta(object, { finalizers: kept.length > 0 ? kept : undefined })
      return isDeletionComplete(next) ? { remove: next } : { put: next }
    })
  }

  #kindOf(table: Table): Kind | undefined {
    for (const kind of this.#registry.storedKinds()) if (kind.storageName === table.name) return kind
    return undefined
  }
}

function withMeta(object: KubeObject, changes: Partial<KubeObject['metadata']>): KubeObject {
  return { ...object, metadata: { ...object.metadata, ...changes } }
}

function referencesOf(entry: StoredEntry): OwnerReference[] {
  return parseEntry(entry).metadata.ownerReferences ?? []
}

function sameOwners(entry: StoredEntry, before: StoredEntry | undefined): boolean {
  const [now, then] = [entry.owners ?? [], before?.owners ?? []]
  return now.length === then.length && now.every((uid, index) => uid === then[index])
}
