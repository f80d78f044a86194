import type { KubeObject } from '../kube/index.ts'
import { deepFreeze } from './deep-freeze.ts'

/**
 * One stored object: itself while it is hot, else its JSON; undefined when it is gone. Version and uid are beside it, so that
 * most events are judged without reading the rest. One field more is 8 bytes for each object of a cache.
 */
type Entry<Body> = {
  value: KubeObject<Body> | string | undefined
  uid: string
  resourceVersion: string
  /** Read since the hand of the clock last came by. */
  isRecent: boolean
}

export type Stored = { readonly uid: string; readonly resourceVersion: string }

/**
 * Objects by key, the recently used ones as objects and the rest as JSON text, which takes about half of the memory and
 * costs the garbage collector next to nothing. Which are hot is decided by the clock algorithm.
 */
export class ObjectStore<Body> {
  readonly #hotObjects: number
  readonly #entries = new Map<string, Entry<Body>>()
  /** The hot entries in a ring, with gone ones among them. Invariants: at most `#hotObjects` long; a key that is there has one place at most. */
  readonly #ring: Entry<Body>[] = []
  #hand = 0

  /** @throws {RangeError} for a number below 1. */
  constructor(hotObjects: number) {
    if (!(hotObjects >= 1)) throw new RangeError(`hotObjects must be a number >= 1, got ${hotObjects}`)
    this.#hotObjects = hotObjects
  }

  get size(): number {
    return this.#entries.size
  }

  /** Uid and version of an object, without reading it; good until the next {@link set}. */
  stored(key: string): Stored | undefined {
    return this.#entries.get(key)
  }

  get(key: string): KubeObject<Body> | undefined {
    const entry = this.#entries.get(key)
    if (!entry) return undefined
    entry.isRecent = true
    const { value } = entry
    if (typeof value === 'object') return value
    if (value === undefined) return undefined
    const object = JSON.parse(value) as KubeObject<Body>
    entry.value = object
    this.#heat(entry)
    return object
  }

  /** What is stored now, to be read later if at all; what happens to the key meanwhile does not change it. */
  later(key: string): () => KubeObject<Body> {
    let value = this.#entries.get(key)?.value
    return () => {
      if (typeof value !== 'object') value = JSON.parse(value ?? 'null') as KubeObject<Body>
      deepFreeze(value)
      return value
    }
  }

  /** Like {@link get}, for readers outside: frozen, so that a change in one of them cannot become the truth of the others. */
  read(key: string): KubeObject<Body> | undefined {
    const object = this.get(key)
    if (object) deepFreeze(object)
    return object
  }

  set(key: string, object: KubeObject<Body>): void {
    const { uid, resourceVersion } = object.metadata
    let entry = this.#entries.get(key)
    if (entry) {
      // A hot one keeps its place in the ring.
      const isHot = typeof entry.value === 'object'
      entry.value = object
      entry.uid = uid
      entry.resourceVersion = resourceVersion
      if (isHot) return
    } else {
      entry = { value: object, uid, resourceVersion, isRecent: false }
      this.#entries.set(key, entry)
    }
    this.#heat(entry)
  }

  delete(key: string): void {
    const entry = this.#entries.get(key)
    if (!entry) return
    entry.value = undefined
    this.#entries.delete(key)
  }

  keys(): IterableIterator<string> {
    return this.#entries.keys()
  }

  /** All of them; those that are not hot are read and not kept, so that one walk through all does not push out what is in use. */
  *objects(): Generator<[key: string, object: KubeObject<Body>], void, undefined> {
    for (const [key, entry] of this.#entries) yield [key, peek(entry)]
  }

  /** All of them, frozen. */
  values(): KubeObject<Body>[] {
    const objects: KubeObject<Body>[] = []
    for (const entry of this.#entries.values()) {
      const object = peek(entry)
      deepFreeze(object)
      objects.push(object)
    }
    return objects
  }

  #heat(entry: Entry<Body>): void {
    const ring = this.#ring
    if (ring.length < this.#hotObjects) {
      ring.push(entry)
      return
    }
    for (;;) {
      if (this.#hand >= ring.length) this.#hand = 0
      const oldest = ring[this.#hand] as Entry<Body>
      const { value } = oldest
      if (value !== undefined && oldest.isRecent) {
        oldest.isRecent = false
        this.#hand++
        continue
      }
      if (typeof value === 'object') oldest.value = JSON.stringify(value)
      ring[this.#hand++] = entry
      return
    }
  }
}

function peek<Body>(entry: Entry<Body>): KubeObject<Body> {
  return typeof entry.value === 'object' ? entry.value : (JSON.parse(entry.value ?? 'null') as KubeObject<Body>)
}
