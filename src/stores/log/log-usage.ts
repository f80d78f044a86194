import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'

/** The logs on disk with their stored bytes, compared with the limits over all logs (invariant 10). */
export class LogUsage {
  readonly #limits: { totalBytes: number; retainedRuns: number }
  readonly #sizes = new Map<string, number>()
  #totalBytes = 0

  constructor(limits: { totalBytes: number; retainedRuns: number }) {
    this.#limits = limits
  }

  get logs(): number {
    return this.#sizes.size
  }

  get bytes(): number {
    return this.#totalBytes
  }

  has(path: string): boolean {
    return this.#sizes.has(path)
  }

  paths(): string[] {
    return [...this.#sizes.keys()]
  }

  set(path: string, size: number): void {
    this.#totalBytes += size - (this.#sizes.get(path) ?? 0)
    this.#sizes.set(path, size)
  }

  delete(path: string): void {
    this.#totalBytes -= this.#sizes.get(path) ?? 0
    this.#sizes.delete(path)
  }

  /** True when more than this fraction of a limit is used. */
  exceeds(fraction: number): boolean {
    const { totalBytes, retainedRuns } = this.#limits
    return this.#totalBytes > totalBytes * fraction || this.#sizes.size > Math.floor(retainedRuns * fraction)
  }

  /** Adds the logs below `directory` that are not known yet. */
  async scan(directory: string): Promise<void> {
    for (const namespace of await readdir(directory, { withFileTypes: true })) {
      if (!namespace.isDirectory()) continue
      const folder = join(directory, namespace.name)
      for (const name of await readdir(folder).catch(() => [])) {
        const path = join(folder, name.replace(/\.(log|meta|times)$/, ''))
        if (this.has(path)) continue
        const { size } = await stat(`${path}.log`).catch(() => ({ size: 0 }))
        if (!this.has(path)) this.set(path, size)
      }
    }
  }

  /** Paths of the logs, least recently written first. */
  async oldestFirst(): Promise<{ path: string; mtimeMs: number }[]> {
    const logs = await Promise.all(
      [...this.#sizes.keys()].map(async path => ({ path, mtimeMs: (await stat(`${path}.meta`).catch(() => ({ mtimeMs: 0 }))).mtimeMs })),
    )
    return logs.sort((a, b) => a.mtimeMs - b.mtimeMs)
  }
}
