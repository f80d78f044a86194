import { compareResourceVersions } from '../client/index.ts'
import type { KubeObject } from '../object/index.ts'

/** Invariant 10: late events come soon or not at all. */
const rememberedLimit = 512

/**
 * Objects that left a cache a while ago, by uid: what is late (an event that a server repeats after a break, a replica that is
 * behind, a list from before our own delete) must not bring them back to life.
 */
export class Tombstones {
  /** The version at which it left; undefined for one that was deleted for good at a version nobody told. */
  readonly #versions = new Map<string, string | undefined>()

  add(uid: string, version: string | undefined): void {
    this.#versions.delete(uid)
    this.#versions.set(uid, version)
    if (this.#versions.size > rememberedLimit) for (const oldest of this.#versions.keys()) return void this.#versions.delete(oldest)
  }

  /** Whether `object` is from before its own departure. With a selector it may come back, at a later version. */
  isLate({ metadata: { uid, resourceVersion } }: KubeObject<unknown>): boolean {
    if (this.#versions.size === 0 || !this.#versions.has(uid)) return false
    const version = this.#versions.get(uid)
    return version === undefined || compareResourceVersions(resourceVersion, version) <= 0
  }

  /** A restored server counts from further back, and may have again what was deleted. */
  clear(): void {
    this.#versions.clear()
  }
}
