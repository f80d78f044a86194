import type { KubeObject } from '../object/index.ts'
import { deepFreeze } from './deep-freeze.ts'
import { ObjectPacker } from './object-packer.ts'

/**
 * One stored object: itself while it is hot, and packed if it ever was cold as it is now. Both are undefined when it is gone.
 * Version and uid are beside it, so that most events are judged without reading the rest. One field more is 8 bytes for each
 * object of a cache.
 */
type Entry<Body> = {
  object: KubeObject<Body> | undefined
  packed: string | undefined
  uid: string
  resourceVersion: string
  /** Read since the hand of the clock last came by. */
  isRecent: boolean
}

export type Stored = { readonly uid: string; readonly resourceVersion: string }

/**
 * Objects by key, the recently used ones as objects and the rest packed, which takes a fifth of the memory and costs the
 * garbage collector next to nothing. Which are hot is decided by the clock algorithm.
 */
export class ObjectStore<Body> {
  readonly #hotObjects: number
  readonly #entries = new Map<string, Entry<Body>>()
  /** The hot entries in a ring, with gone ones among them. Invariants: at most `#hotObjects` long; a key that is there has one place at most. */
  readonly #ring: Entry<Body>[] = []
  readonly #packer = new ObjectPacker()
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
    if (entry.object) return entry.object
    const object = this.#peek(entry)
    entry.object = object
    this.#heat(entry)
    return object
  }

  /** What is stored now, to be read later if at all; what happens to the key meanwhile does not change it. */
  later(key: string): () => KubeObject<Body> {
    const { object, packed } = this.#entries.get(key) ?? { object: undefined, packed: undefined }
    let read = object
    return () => {
      read ??= this.#unpack(packed)
      deepFreeze(read)
      return read
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
      const isHot = entry.object !== undefined
      entry.object = object
      entry.packed = undefined
      entry.uid = uid
      entry.resourceVersion = resourceVersion
      if (isHot) return
    } else {
      entry = { object, packed: undefined, uid, resourceVersion, isRecent: false }
      this.#entries.set(key, entry)
    }
    this.#heat(entry)
  }

  delete(key: string): void {
    const entry = this.#entries.get(key)
    if (!entry) return
    entry.object = undefined
    entry.packed = undefined
    this.#entries.delete(key)
  }

  keys(): IterableIterator<string> {
    return this.#entries.keys()
  }

  /** All of them; those that are not hot are read and not kept, so that one walk through all does not push out what is in use. */
  *objects(): Generator<[key: string, object: KubeObject<Body>], void, undefined> {
    for (const [key, entry] of this.#entries) yield [key, this.#peek(entry)]
  }

  /** All of them, frozen. */
  values(): KubeObject<Body>[] {
    const objects: KubeObject<Body>[] = []
    for (const entry of this.#entries.values()) {
      const object = this.#peek(entry)
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
      const { object } = oldest
      if (object && oldest.isRecent) {
        oldest.isRecent = false
        this.#hand++
        continue
      }
      if (object) {
        oldest.packed ??= this.#packer.pack(object)
        oldest.object = undefined
      }
      ring[this.#hand++] = entry
      return
    }
  }

  #peek(entry: Entry<Body>): KubeObject<Body> {
    return entry.object ?? this.#unpack(entry.packed)
  }

  #unpack(packed: string | undefined): KubeObject<Body> {
    return (packed === undefined ? undefined : this.#packer.unpack(packed)) as KubeObject<Body>
  }
}
