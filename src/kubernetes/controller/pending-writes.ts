import { compareResourceVersions } from '../client/index.ts'

const versionField = '"resourceVersion":"'

/**
 * Responses to our own writes that a cache holds before its watch has delivered them: which keys have one, and which watch lines only
 * echo one.
 */
export class PendingWrites {
  /** Keys that hold the response to a write that the watch has not delivered yet, with its version. */
  readonly #pending = new Map<string, string>()
  /** The inverse, including earlier writes to the same key: versions whose watch lines need not be parsed. */
  readonly #echoes = new Map<number | string, string>()

  /** The cache holds `version` of `key` from now on. */
  add(key: string, version: string): void {
    this.#pending.set(key, version)
    this.#echoes.set(echoId(version), key)
  }

  /** The watch or a list delivered this version of the key or a later one. */
  settle(key: string): void {
    this.#pending.delete(key)
  }

  /** Whether the cache, at `cachedVersion` of the key, holds the response to a write that is newer than a list at `listedVersion`. */
  isAhead(key: string, cachedVersion: string | undefined, listedVersion: string): boolean {
    return cachedVersion !== undefined && this.#pending.has(key) && compareResourceVersions(listedVersion, cachedVersion) < 0
  }

  /** After a list: earlier events may no longer arrive, and parsing those that do is harmless. */
  forgetEchoes(): void {
    this.#echoes.clear()
  }

  /** A server restored from a backup has lower versions and none of our earlier writes. */
  forgetPending(): void {
    this.#pending.clear()
  }

  /**
   * The version that a watch line echoes, or undefined if it is not an echo. Decided without parsing the line as JSON, which is most of
   * the work of a watch. `uidOf` returns the UID of the cached object.
   */
  takeEcho(line: string, uidOf: (key: string) => string | undefined): string | undefined {
    // A deletion is never an echo: the response to a write describes an object, not its removal.
    if (this.#echoes.size === 0 || !(line.startsWith('{"type":"MODIFIED",') || line.startsWith('{"type":"ADDED",'))) return undefined
    const start = line.indexOf(versionField) + versionField.length
    if (start < versionField.length) return undefined
    const version = line.slice(start, line.indexOf('"', start))
    const id = echoId(version)
    const key = this.#echoes.get(id)
    if (key === undefined) return undefined
    this.#echoes.delete(id)
    const uid = uidOf(key)
    // The version alone might be a field of another object that refers to this one.
    if (uid === undefined || !line.includes(uid)) return undefined
    if (this.#pending.get(key) === version) this.#pending.delete(key)
    return version
  }
}

/** Versions are integers on all known servers: as numbers they need not be entered into V8's string table by the map. */
function echoId(version: string): number | string {
  const id = Number(version)
  return Number.isSafeInteger(id) ? id : version
}
