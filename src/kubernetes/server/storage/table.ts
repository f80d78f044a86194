import type { KubeObject } from '../../object/index.ts'
import { entryOf, type FieldReader, type StoredEntry } from './entry.ts'

/** One durable change of one object. `before` is the version it replaced, which watchers with selectors need. */
export type StoredEvent = {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'
  readonly revision: number
  /** For DELETED: the last state, with the revision of the deletion. */
  readonly entry: StoredEntry
  readonly before: StoredEntry | undefined
  /** The event as a line of a watch, by media type: shared by all watchers of its commit, then dropped, because history is long. */
  encoded: Map<string, string> | undefined
}

/** Receives the events of one commit, in order. Must not throw and must not block. */
export type TableListener = (events: readonly StoredEvent[]) => void

export type HistoryLimits = { events: number; bytes: number }

/**
 * The durable objects of one resource, in memory, with the recent history that watches resume from.
 * Invariant 6: `#events` has every change with a revision above `#floor`, in order. Nothing is visible here before it is on disk
 * (invariant 5): only the store's commit calls {@link apply}.
 */
export class Table {
  readonly name: string
  readonly listeners = new Set<TableListener>()
  /** Called when the write of a new object is queued, so that writes of the callback join the same commit. Must not throw. */
  onCreate: ((entry: StoredEntry) => void) | undefined
  readonly #limits: HistoryLimits
  #readFields: FieldReader | undefined
  #fieldNames: readonly string[] = []
  readonly #entries = new Map<string, StoredEntry>()
  readonly #byOwner = new Map<string, Set<string>>()
  #sortedKeys: string[] = []
  #addedKeys: string[] = []
  #removedKeys = 0
  #snapshot: StoredEntry[] | undefined
  #namespaceCache: { namespace: string; entries: readonly StoredEntry[] } | undefined
  #events: StoredEvent[] = []
  #eventBytes = 0
  #floor = 0
  #bytes = 0
  #lastRevision = 0

  /** @param floor the table has every change after this revision. Default: 0, it was always empty. */
  constructor(name: string, limits: HistoryLimits, floor = 0) {
    this.name = name
    this.#limits = limits
    this.#floor = floor
  }

  get size(): number {
    return this.#entries.size
  }

  /** Bytes of JSON of all objects. */
  get bytes(): number {
    return this.#bytes
  }

  /** Bytes of JSON of the changes in the history. */
  get historyBytes(): number {
    return this.#eventBytes
  }

  /** The newest revision of a change in this table; 0 if there was none. */
  get lastRevision(): number {
    return this.#lastRevision
  }

  /** A watch may start from this revision or later; history before it was dropped. */
  get floor(): number {
    return this.#floor
  }

  get(key: string): StoredEntry | undefined {
    return this.#entries.get(key)
  }

  values(): IterableIterator<StoredEntry> {
    return this.#entries.values()
  }

  /** Keys of objects in this table with `uid` as an owner. */
  ownedBy(uid: string): ReadonlySet<string> | undefined {
    return this.#byOwner.get(uid)
  }

  /** All objects in key order. The array is shared and immutable: a later write creates another. */
  snapshot(): readonly StoredEntry[] {
    if (this.#snapshot) return this.#snapshot
    const keys = this.#keys()
    const entries = new Array<StoredEntry>(keys.length)
    for (let i = 0; i < keys.length; i++) entries[i] = this.#entries.get(keys[i]!)!
    this.#snapshot = entries
    return entries
  }

  /** The objects of one namespace in key order, without visiting the others. The last result is cached until the next change. */
  inNamespace(namespace: string): readonly StoredEntry[] {
    if (this.#namespaceCache?.namespace === namespace) return this.#namespaceCache.entries
    const keys = this.#keys()
    const prefix = `${namespace}/`
    const end = `${namespace}0` // '0' is the character after '/'
    const entries: StoredEntry[] = []
    for (let i = lowerBound(keys, prefix); i < keys.length && keys[i]! < end; i++) entries.push(this.#entries.get(keys[i]!)!)
    this.#namespaceCache = { namespace, entries }
    return entries
  }

  /** All objects in key order as they were at `revision`; undefined when history does not go back that far. */
  snapshotAt(revision: number): readonly StoredEntry[] | undefined {
    const since = this.eventsSince(revision)
    if (!since || since.length === 0) return since && this.snapshot()
    // The first change of a key since then has the version before it.
    const then = new Map<string, StoredEntry | undefined>()
    for (const { entry, before } of since) if (!then.has(entry.key)) then.set(entry.key, before)
    const entries = this.snapshot().filter(entry => !then.has(entry.key))
    for (const entry of then.values()) if (entry) entries.push(entry)
    return entries.sort((a, b) => compareKeys(a.key, b.key))
  }

  /** The events after `revision`; undefined when some of them were dropped. */
  eventsSince(revision: number): readonly StoredEvent[] | undefined {
    if (revision < this.#floor) return undefined
    let low = 0
    let high = this.#events.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.#events[middle]!.revision <= revision) low = middle + 1
      else high = middle
    }
    return this.#events.slice(low)
  }

  /** Whether a change with this revision is in the history. */
  hasEvent(revision: number): boolean {
    return this.eventsSince(revision - 1)?.[0]?.revision === revision
  }

  /** Names of the fields whose values entries have in `fields`. */
  get fieldNames(): readonly string[] {
    return this.#fieldNames
  }

  /** Changes which fields are selectable: reads them again from every object. */
  setFields(names: readonly string[], readFields: FieldReader | undefined): void {
    const isSame = names.length === this.#fieldNames.length && names.every((name, index) => name === this.#fieldNames[index])
    this.#fieldNames = names
    this.#readFields = readFields
    if (isSame) return
    for (const entry of this.#entries.values()) {
      const object = readFields && (JSON.parse(entry.text) as KubeObject)
      this.#entries.set(entry.key, { ...entry, fields: object && readFields?.(object) })
    }
    this.#snapshot = undefined
    this.#namespaceCache = undefined
  }

  get readFields(): FieldReader | undefined {
    return this.#readFields
  }

  /** At startup: adds a stored object without an event. */
  load(id: number, object: KubeObject, revision: number, text: string): void {
    this.#put(entryOf(id, object, revision, text, this.#readFields), undefined)
    this.#lastRevision = Math.max(this.#lastRevision, revision)
  }

  /** At startup: there is no history before `revision`. */
  setFloor(revision: number): void {
    this.#lastRevision = Math.max(this.#lastRevision, revision)
    this.#floor = this.#lastRevision
  }

  /** Applies one durable change. `after` is undefined for a deletion, whose last state is `last`. */
  apply(before: StoredEntry | undefined, after: StoredEntry | undefined, last: StoredEntry): StoredEvent {
    if (after) this.#put(after, before)
    else if (before) this.#remove(before)
    this.#lastRevision = last.revision
    const type = after ? (before ? 'MODIFIED' : 'ADDED') : 'DELETED'
    const event: StoredEvent = { type, revision: last.revision, entry: last, before, encoded: undefined }
    this.#events.push(event)
    this.#eventBytes += last.text.length
    if (this.#events.length > this.#limits.events || this.#eventBytes > this.#limits.bytes) this.#trim()
    return event
  }

  /**
   * Drops the history up to `revision`, except the newest `keep` events. Without this, the versions of a burst of changes would stay
   * in memory until the next changes.
   */
  compactHistory(revision: number, keep: number): void {
    const most = this.#events.length - keep
    let drop = 0
    while (drop < most && this.#events[drop]!.revision <= revision) this.#eventBytes -= this.#events[drop++]!.entry.text.length
    if (drop === 0) return
    this.#floor = this.#events[drop - 1]!.revision
    this.#events = this.#events.slice(drop)
  }

  // Drops a quarter in one go, so that trimming costs little per event.
  #trim(): void {
    const keep = Math.floor(this.#limits.events * 0.75)
    const keepBytes = this.#limits.bytes * 0.75
    let drop = Math.max(0, this.#events.length - keep)
    let bytes = this.#eventBytes
    for (let i = 0; i < drop; i++) bytes -= this.#events[i]!.entry.text.length
    while (bytes > keepBytes && drop < this.#events.length) bytes -= this.#events[drop++]!.entry.text.length
    if (drop > 0) this.#floor = this.#events[drop - 1]!.revision
    this.#events = this.#events.slice(drop)
    this.#eventBytes = bytes
  }

  #put(entry: StoredEntry, before: StoredEntry | undefined): void {
    this.#snapshot = undefined
    this.#namespaceCache = undefined
    this.#entries.set(entry.key, entry)
    this.#bytes += entry.text.length - (before?.text.length ?? 0)
    if (!before) this.#addedKeys.push(entry.key)
    if (before?.owners || entry.owners) this.#updateOwnerIndex(before, entry)
  }

  #remove(before: StoredEntry): void {
    this.#snapshot = undefined
    this.#namespaceCache = undefined
    this.#entries.delete(before.key)
    this.#bytes -= before.text.length
    this.#removedKeys++
    if (before.owners) this.#updateOwnerIndex(before, undefined)
  }

  #updateOwnerIndex(before: StoredEntry | undefined, after: StoredEntry | undefined): void {
    for (const uid of before?.owners ?? []) {
      const keys = this.#byOwner.get(uid)
      keys?.delete(before!.key)
      if (keys?.size === 0) this.#byOwner.delete(uid)
    }
    for (const uid of after?.owners ?? []) {
      const keys = this.#byOwner.get(uid)
      if (keys) keys.add(after!.key)
      else this.#byOwner.set(uid, new Set([after!.key]))
    }
  }

  // Sorts on the next list, and only the new keys: creating 72,000 objects stays linear.
  #keys(): string[] {
    if (this.#removedKeys > 0) {
      const present = (key: string) => this.#entries.has(key)
      this.#sortedKeys = this.#sortedKeys.filter(present)
      // A key that was removed and created again is in both lists.
      this.#addedKeys = this.#addedKeys.filter(present)
      this.#removedKeys = 0
    }
    if (this.#addedKeys.length > 0) {
      this.#sortedKeys = mergeSorted(this.#sortedKeys, this.#addedKeys.sort())
      this.#addedKeys = []
    }
    return this.#sortedKeys
  }
}

const compareKeys = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)

function mergeSorted(left: string[], right: string[]): string[] {
  const merged: string[] = []
  let l = 0
  let r = 0
  while (l < left.length || r < right.length) {
    const next = r >= right.length || (l < left.length && left[l]! <= right[r]!) ? left[l++]! : right[r++]!
    if (merged.length === 0 || merged[merged.length - 1] !== next) merged.push(next)
  }
  return merged
}

function lowerBound(keys: string[], key: string): number {
  let low = 0
  let high = keys.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (keys[middle]! < key) low = middle + 1
    else high = middle
  }
  return low
}
