import { lstat, readdir, rename, rmdir, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { removeUnlessUsed } from './entry-lock.ts'
import { removeTree } from './run-directory.ts'
import { isAbandoned, temporaryName } from './temporary-name.ts'

/** What the cache keeps (invariant 10). What is in use is kept beyond it. */
export type GitCacheLimits = {
  /** Of the packs and all other files, each counted once: commits of one repository share packs. */
  bytes: number
  /** Different repositories and credentials. */
  repositories: number
  /** Commits of one repository. */
  commits: number
}

/** One commit in the cache. */
type Cached = { path: string; parent: string; usedAtMs: number; files: ReadonlyMap<string, number> }

/** Removes the least recently used commits until the cache in `directory` is within its limits. */
export async function evictCommits(directory: string, limits: GitCacheLimits): Promise<void> {
  const cached = await listCommits(directory)
  const references = new Map<string, number>()
  let bytes = 0
  for (const { files } of cached) {
    for (const [file, size] of files) {
      const count = references.get(file) ?? 0
      references.set(file, count + 1)
      if (count === 0) bytes += size
    }
  }
  const commits = new Map<string, number>()
  for (const { parent } of cached) commits.set(parent, (commits.get(parent) ?? 0) + 1)
  const mostRecent = [...new Set(cached.toReversed().map(({ parent }) => parent))]
  const excess = new Set(mostRecent.slice(limits.repositories))
  for (const { path, parent, files } of cached) {
    const isExcess = bytes > limits.bytes || excess.has(parent) || commits.get(parent)! > limits.commits
    if (!isExcess || !(await removeUnlessUsed(path, () => removeCommit(path)))) continue
    commits.set(parent, commits.get(parent)! - 1)
    for (const [file, size] of files) {
      const count = references.get(file)! - 1
      references.set(file, count)
      if (count === 0) bytes -= size
    }
    // Fails as long as anything is in it, such as the use of a process that is about to fetch.
    await rmdir(parent).catch(() => {})
  }
}

/** Renamed first: a process that ends in the middle leaves no incomplete repository under its name. */
async function removeCommit(path: string): Promise<void> {
  const removed = join(dirname(path), temporaryName(`removed-${crypto.randomUUID()}`))
  await rename(path, removed)
  await removeTree(removed)
}

/** Least recently used first. Removes what processes left behind that have ended. */
async function listCommits(directory: string): Promise<Cached[]> {
  const cached: Cached[] = []
  for (const name of await readdir(directory)) {
    const parent = join(directory, name)
    for (const entry of await readdir(parent).catch(() => [])) {
      const path = join(parent, entry)
      const stats = await stat(path).catch(() => undefined)
      if (!stats?.isDirectory()) continue
      if (entry.endsWith('.git')) cached.push({ path, parent, usedAtMs: stats.mtimeMs, files: await sizesOf(path) })
      else if (isAbandoned(entry, stats.mtimeMs)) await removeTree(path)
    }
  }
  return cached.sort((a, b) => a.usedAtMs - b.usedAtMs)
}

/** The size on disk of each file, by what hard links have in common. */
async function sizesOf(directory: string): Promise<Map<string, number>> {
  const sizes = new Map<string, number>()
  for (const entry of await readdir(directory, { recursive: true, withFileTypes: true }).catch(() => [])) {
    if (!entry.isFile()) continue
    const stats = await lstat(join(entry.parentPath, entry.name)).catch(() => undefined)
    if (stats) sizes.set(`${stats.dev}:${stats.ino}`, stats.blocks * 512)
  }
  return sizes
}
