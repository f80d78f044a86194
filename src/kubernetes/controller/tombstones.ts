import { compareResourceVersions } from '../client/index.ts'
import type { KubeObject } from '../object/index.ts'

/** Invariant 10: late events arrive soon or not at all. */
const maxTombstones = 512

/**
 * UIDs of objects that recently left a cache: a late message (an event that a server repeats after a reconnect, a lagging replica, a
 * list from before our own delete) must not add them again.
 */
export class Tombstones {
  /** The version at which it left; undefined for an object that was deleted at an unknown version. */
  readonly #versions = new Map<string, string | undefined>()

  add(uid: string, version: string | undefined): void {
    this.#versions.delete(uid)
    this.#versions.set(uid, version)
    if (this.#versions.size > maxTombstones) for (const oldest of this.#versions.keys()) return void this.#versions.delete(oldest)
  }

  /** Whether `object` is older than its removal. With a selector an object may return, at a later version. */
  isLate({ metadata: { uid, resourceVersion } }: KubeObject<unknown>): boolean {
    if (this.#versions.size === 0 || !this.#versions.has(uid)) return false
    const version = this.#versions.get(uid)
    return version === undefined || compareResourceVersions(resourceVersion, version) <= 0
  }

  /** A server restored from a backup may serve deleted objects again, at lower versions. */
  clear(): void {
    this.#versions.clear()
  }
}
