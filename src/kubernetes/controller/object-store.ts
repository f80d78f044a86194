import type { KubeObject } from '../object/index.ts'
import { deepFreeze } from './deep-freeze.ts'
import { ObjectPacker } from './object-packer.ts'

/**
 * One stored object: parsed while it is hot, and packed if it was ever cold in this version. Both are undefined once it is deleted.
 * Version and UID are stored separately, so that most events are handled without unpacking. Each further field costs 8 bytes per
 * object.
 */
type CacheEntry<Body> = {
  object: KubeObject<Body> | undefined
  packed: string | undefined
  uid: string
  resourceVersion: string
  /** Read since the clock hand last passed it. */
  isRecent: boolean
}

export type Stored = { readonly uid: string; readonly resourceVersion: string }

/**
 * Objects by key: the recently used ones parsed and the rest packed, which takes a fifth of the memory and costs the garbage collector
 * almost nothing. The clock algorithm (second chance) decides which are hot.
 */
export class ObjectStore<Body> {
  readonly #hotObjects: number
  readonly #entries = new Map<string, CacheEntry<Body>>()
  /** The hot entries in a ring, including deleted ones. Invariants: at most `#hotObjects` long; a stored key occurs at most once. */
  readonly #ring: CacheEntry<Body>[] = []
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

  /** UID and version of an object, without unpacking it; valid until the next {@link set}. */
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

  /** The object as stored now, unpacked on demand; later changes of the key do not affect it. */
  snapshot(key: string): () => KubeObject<Body> {
    const { object, packed } = this.#entries.get(key) ?? { object: undefined, packed: undefined }
    let read = object
    return () => {
      read ??= this.#unpack(packed)
      deepFreeze(read)
      return read
    }
  }

  /** Like {@link get}, for external readers: frozen, so that one reader cannot change what others see. */
  read(key: string): KubeObject<Body> | undefined {
    const object = this.get(key)
    if (object) deepFreeze(object)
    return object
  }

  set(key: string, object: KubeObject<Body>): void {
    const { uid, resourceVersion } = object.metadata
    let entry = this.#entries.get(key)
    if (entry) {
      // A hot entry keeps its position in the ring.
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

  /** All objects. Cold ones are unpacked and not kept, so that a full iteration does not evict hot ones. */
  *objects(): Generator<[key: string, object: KubeObject<Body>], void, undefined> {
    for (const [key, entry] of this.#entries) yield [key, this.#peek(entry)]
  }

  /** All objects, frozen. */
  values(): KubeObject<Body>[] {
    const objects: KubeObject<Body>[] = []
    for (const entry of this.#entries.values()) {
      const object = this.#peek(entry)
      deepFreeze(object)
      objects.push(object)
    }
    return objects
  }

  #heat(entry: CacheEntry<Body>): void {
    const ring = this.#ring
    if (ring.length < this.#hotObjects) {
      ring.push(entry)
      return
    }
    for (;;) {
      if (this.#hand >= ring.length) this.#hand = 0
      const oldest = ring[this.#hand] as CacheEntry<Body>
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

  #peek(entry: CacheEntry<Body>): KubeObject<Body> {
    return entry.object ?? this.#unpack(entry.packed)
  }

  #unpack(packed: string | undefined): KubeObject<Body> {
    return (packed === undefined ? undefined : this.#packer.unpack(packed)) as KubeObject<Body>
  }
}
