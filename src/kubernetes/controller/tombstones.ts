import { compareResourceVersions } from '../client/index.ts'
import type { KubeObject } from '../object/index.ts'

/** Invariant 10: late events arrive soon or not at all. */
const maxTombstones = 512

/**
 * UIDs of objects that recently left a cache: a late message (an event that a server repeats after a reconnect, a lagging replica, a
 * list from before our own delete) must not add them again.
 */
export class Tombstones {
  /** The version at which it left, undefined if that is unknown, and the watch that removed it, undefined for another reason. */
  readonly #removals = new Map<string, { version: string | undefined; source: object | undefined }>()

  add(uid: string, version: string | undefined, source?: object): void {
    this.#removals.delete(uid)
    this.#removals.set(uid, { version, source })
    if (this.#removals.size > maxTombstones) for (const oldest of this.#removals.keys()) return void this.#removals.delete(oldest)
  }

  /**
   * Whether `object` is older than its removal. With a selector an object may return, at a later version. `source` is the watch that delivers it
   * for the first time: one watch has removed an object that passed to another one, which may deliver it later, at the same version.
   */
  isLate({ metadata: { uid, resourceVersion } }: KubeObject<unknown>, source?: object): boolean {
    const removal = this.#removals.get(uid)
    if (!removal || (source && removal.source && removal.source !== source)) return false
    return removal.version === undefined || compareResourceVersions(resourceVersion, removal.version) <= 0
  }

  /** A server restored from a backup may serve deleted objects again, at lower versions. */
  clear(): void {
    this.#removals.clear()
  }
}
