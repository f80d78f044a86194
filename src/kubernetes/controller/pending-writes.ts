import { compareResourceVersions } from '../client/index.ts'

const versionField = '"resourceVersion":"'

/**
 * The answers of our own writes that a cache shows before its watch has brought them: which keys hold one, and which lines
 * of the watch will only bring one back.
 */
export class PendingWrites {
  /** Keys that hold the answer of a write which the watch has not brought yet, with its version. */
  readonly #pending = new Map<string, string>()
  /** The same the other way round, and of earlier writes to the same key too: versions that need not be read when they come. */
  readonly #echoes = new Map<number | string, string>()

  /** The cache shows `version` of `key` from now on. */
  add(key: string, version: string): void {
    this.#pending.set(key, version)
    this.#echoes.set(echoId(version), key)
  }

  /** The watch or a list brought this version of the key, or a later one. */
  settle(key: string): void {
    this.#pending.delete(key)
  }

  /** Whether the cache, at `cachedVersion` of the key, holds the answer of a write that came after a list at `listedVersion`. */
  isAhead(key: string, cachedVersion: string | undefined, listedVersion: string): boolean {
    return cachedVersion !== undefined && this.#pending.has(key) && compareResourceVersions(listedVersion, cachedVersion) < 0
  }

  /** After a list: events from before it may not come any more, and those that do are only read for nothing. */
  forgetEchoes(): void {
    this.#echoes.clear()
  }

  /** A restored server counts from further back: nothing we wrote before is there. */
  forgetPending(): void {
    this.#pending.clear()
  }

  /**
   * What a line of the watch only brings back, if so: told without reading it as JSON, which is the largest part of the
   * work of a watch. `uidOf` is that of the object in the cache.
   */
  takeEcho(line: string, uidOf: (key: string) => string | undefined): string | undefined {
    // A deletion is never an echo: the answer of a write says what an object is, not that it is gone.
    if (this.#echoes.size === 0 || !(line.startsWith('{"type":"MODIFIED",') || line.startsWith('{"type":"ADDED",'))) return undefined
    const start = line.indexOf(versionField) + versionField.length
    if (start < versionField.length) return undefined
    const version = line.slice(start, line.indexOf('"', start))
    const id = echoId(version)
    const key = this.#echoes.get(id)
    if (key === undefined) return undefined
    this.#echoes.delete(id)
    const uid = uidOf(key)
    // The version alone might be a field of another object that names this one.
    if (uid === undefined || !line.includes(uid)) return undefined
    if (this.#pending.get(key) === version) this.#pending.delete(key)
    return version
  }
}

/** Versions are whole numbers with all servers we know: as such a map need not enter each one into V8's table of strings. */
function echoId(version: string): number | string {
  const id = Number(version)
  return Number.isSafeInteger(id) ? id : version
}
