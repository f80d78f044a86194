import { createReadStream } from 'node:fs'
import { lstat, open, readdir, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { ifMissing, makeDirectories, type RootDirectory, sha256 } from '../../../kubernetes/util/index.ts'
import { EvictionOrder, isAbandoned, temporaryName, touch } from '../../workspace/index.ts'

/** Of all archives. What is removed is downloaded again. */
const defaultBytes = 2 * 1024 ** 3
/** Between two pauses of this thread. */
const hashedBytes = 4 * 1024 ** 2
/** Of one archive. */
export const maxArchiveBytes = 256 * 1024 ** 2
const nameSyntax = /^([0-9a-f]{128})-([0-9a-f]{8})$/

type Archive = { readonly digest: string; readonly path: string; readonly domain: string }

/**
 * Archives of packages that all trust domains of a host share, by the SHA-512 of their content: `<directory>/<2 digits>/<digest>-<who added it>`.
 * The worker computes the digest from the bytes that it stores, and again from those that it gives to a Run, so whatever a program of any
 * domain has left under a name, another domain gets it only if its own lock file has the digest of exactly these bytes. No
 * program can read or write the store. The size is limited, and the domain that has added the most gives way first.
 */
export class ArchiveStore {
  readonly #directory: string
  readonly #adder: string
  readonly #maxBytes: number
  #found: Promise<Map<string, Archive>> | undefined

  constructor({ directory, domain, maxBytes = defaultBytes }: { directory: string; domain: string; maxBytes?: number }) {
    this.#directory = directory
    this.#adder = sha256(domain).slice(0, 8)
    this.#maxBytes = maxBytes
  }

  async has(digest: string): Promise<boolean> {
    return (await this.#archives()).has(digest)
  }

  /** Writes the archive with this digest to `path` of a Run. False if the store does not have it; a damaged one is removed. */
  async copyTo(digest: string, files: RootDirectory, path: string): Promise<boolean> {
    const archive = (await this.#archives()).get(digest)
    if (!archive) return false
    const pieces: Buffer[] = []
    try {
      for await (const piece of createReadStream(archive.path)) pieces.push(piece as Buffer)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false
      throw error
    }
    const content = Buffer.concat(pieces)
    if ((await sha512(content)) !== digest) {
      await rm(archive.path, { force: true })
      return false
    }
    await touch(archive.path).catch(ifMissing(undefined))
    await files.write(path, content, 0o644)
    return true
  }

  /**
   * Adds what a program has left at `path`, if it has this digest and at most `maxBytes`. Returns the number of bytes that were read, also
   * if it was not added.
   */
  async add(
    digest: string,
    files: RootDirectory,
    path: string,
    maxBytes = maxArchiveBytes,
  ): Promise<{ isAdded: boolean; readBytes: number }> {
    const content = await files.read(path, { maxBytes: Math.min(maxBytes, maxArchiveBytes) })
    const readBytes = content?.byteLength ?? 0
    if (!content || (await sha512(content)) !== digest) return { isAdded: false, readBytes }
    const directory = join(this.#directory, digest.slice(0, 2))
    const staging = join(this.#directory, 'staging')
    for (const each of [directory, staging]) makeDirectories(each, 0o700)
    // Another worker may have added it since the list was read.
    if ((await readdir(directory)).some(name => name.startsWith(`${digest}-`))) return { isAdded: false, readBytes }
    const temporary = join(staging, temporaryName(globalThis.crypto.randomUUID()))
    try {
      const file = await open(temporary, 'wx', 0o600)
      await file.writeFile(content).finally(() => file.close())
      await rename(temporary, join(directory, `${digest}-${this.#adder}`))
    } finally {
      await rm(temporary, { force: true })
    }
    return { isAdded: true, readBytes }
  }

  /** Reduces the store to its limit, and removes what processes left unfinished which have ended. */
  async evict(): Promise<void> {
    const staging = join(this.#directory, 'staging')
    for (const name of await readdir(staging).catch(ifMissing([]))) {
      const stats = await lstat(join(staging, name)).catch(ifMissing(undefined))
      if (stats && isAbandoned(name, stats.mtimeMs)) await rm(join(staging, name), { force: true })
    }
    this.#found = undefined
    const entries: { path: string; domain: string; bytes: number; usedAtMs: number }[] = []
    for (const archive of await this.#list()) {
      const stats = await stat(archive.path).catch(ifMissing(undefined))
      if (stats) entries.push({ ...archive, bytes: stats.size, usedAtMs: stats.mtimeMs })
    }
    const order = new EvictionOrder(entries, this.#maxBytes)
    for (let next = order.next(); next; next = order.next()) {
      await rm(next.path, { force: true })
      order.removed(next)
    }
    this.#found = undefined
  }

  /** What all archives together take; undefined if there are none. */
  async summarize(): Promise<{ path: string; files: number; bytes: number; usedAtMs: number } | undefined> {
    let [files, bytes, usedAtMs] = [0, 0, 0]
    for (const { path } of await this.#list()) {
      const stats = await stat(path).catch(ifMissing(undefined))
      if (!stats) continue
      files++
      bytes += stats.size
      usedAtMs = Math.max(usedAtMs, stats.mtimeMs)
    }
    return files === 0 ? undefined : { path: this.#directory, files, bytes, usedAtMs }
  }

  /** Removes all archives. A Run that copies one meanwhile gets it, or downloads it. */
  async clear(): Promise<void> {
    for (const { path } of await this.#list()) await rm(path, { force: true })
    this.#found = undefined
  }

  /** Listed once: a lock file names thousands. */
  #archives(): Promise<Map<string, Archive>> {
    this.#found ??= this.#list().then(archives => new Map(archives.map(archive => [archive.digest, archive])))
    return this.#found
  }

  /** Of one digest there are several if workers added it at the same time. */
  async #list(): Promise<Archive[]> {
    const found: Archive[] = []
    for (const prefix of await readdir(this.#directory).catch(ifMissing([]))) {
      if (!/^[0-9a-f]{2}$/.test(prefix)) continue
      for (const name of await readdir(join(this.#directory, prefix)).catch(ifMissing([]))) {
        const [, digest, domain = ''] = nameSyntax.exec(name) ?? []
        if (digest !== undefined) found.push({ digest, path: join(this.#directory, prefix, name), domain })
      }
    }
    return found
  }
}

/** In pieces: the thread also renews the lease of the worker. */
async function sha512(content: Uint8Array): Promise<string> {
  const hash = process.getBuiltinModule('node:crypto').createHash('sha512')
  for (let at = 0; at < content.byteLength; at += hashedBytes) {
    hash.update(content.subarray(at, at + hashedBytes))
    if (at + hashedBytes < content.byteLength) await new Promise(resolve => setImmediate(resolve))
  }
  return hash.digest('hex')
}
