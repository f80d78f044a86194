import { lstat, readdir, rename, rm, rmdir, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { removeUnlessUsed } from './entry-lock.ts'
import { EvictionOrder } from './eviction-order.ts'
import { removeTree } from './run-directory.ts'
import { isAbandoned, temporaryName } from './temporary-name.ts'

/** Directories whose names start with it are trees; all others are parts of keys. */
export const entryPrefix = 'h1-'
/** The file that shows that a tree was verified. */
export const sealOf = (entry: string): string => `${entry}.seal`
/** In the directory of a store, next to the directories of its domains. */
const notDomains = ['staging', 'records', 'locks']
/** Locks are held for minutes. */
const maxLockMs = 24 * 60 * 60_000

/** A tree of a content store. `bytes` are on disk. */
export type StoredContent = {
  path: string
  domain: string
  key: string
  digest: string
  usedAtMs: number
  files: number
  bytes: number
}

/** All trees of the store in `directory`, the least recently used first. */
export async function listContent(directory: string): Promise<StoredContent[]> {
  const trees: StoredContent[] = []
  for (const domain of await domainsIn(directory)) trees.push(...(await listTrees(join(directory, domain), domain)))
  return trees.sort((a, b) => a.usedAtMs - b.usedAtMs)
}

/** Removes one tree; false if it is in use. Its parents, the parts of its key, are removed when they are empty. */
export async function removeContent(directory: string, { path, domain }: Pick<StoredContent, 'path' | 'domain'>): Promise<boolean> {
  const temporary = join(directory, 'staging', temporaryName(`removed-${globalThis.crypto.randomUUID()}`))
  if (!(await removeUnlessUsed(path, () => removeEntry(path, temporary)))) return false
  await removeEmptyParents(path, join(directory, domain))
  return true
}

/**
 * Removes trees until all domains together have at most `maxBytes`, in the {@link EvictionOrder}. What is in use is kept beyond the limit. Removes
 * copies that processes left unfinished which have ended.
 */
export async function evictTrees(directory: string, maxBytes: number): Promise<void> {
  const staging = join(directory, 'staging')
  await removeAbandoned(staging)
  await removeOldLocks(join(directory, 'locks'))
  const order = new EvictionOrder(await listContent(directory), maxBytes)
  for (let next = order.next(); next; next = order.next()) if (await removeContent(directory, next)) order.removed(next)
}

/** Renamed first: a process that ends in the middle leaves no incomplete tree under its name. */
export async function removeEntry(path: string, temporary: string): Promise<void> {
  await rename(path, temporary)
  await rm(sealOf(path), { force: true })
  await removeTree(temporary)
}

async function domainsIn(directory: string): Promise<string[]> {
  return (await directoriesIn(directory)).map(({ name }) => name).filter(name => !notDomains.includes(name))
}

async function listTrees(root: string, domain: string): Promise<StoredContent[]> {
  const trees: StoredContent[] = []
  const visit = async (directory: string): Promise<void> => {
    for (const { name } of await directoriesIn(directory)) {
      const path = join(directory, name)
      if (!name.startsWith(entryPrefix)) await visit(path)
      else {
        const stats = await stat(path).catch(() => undefined)
        const key = directory.slice(root.length + 1)
        if (stats) trees.push({ path, domain, key, digest: digestOf(name), usedAtMs: stats.mtimeMs, ...(await sizeOf(path)) })
      }
    }
  }
  await visit(root)
  return trees
}

/** As `h1-<hexadecimal>` is written in a lock file. */
const digestOf = (name: string): string => `h1:${Buffer.from(name.slice(entryPrefix.length), 'hex').toString('base64')}`

async function sizeOf(tree: string): Promise<{ files: number; bytes: number }> {
  let files = 0
  let bytes = 0
  for (const entry of await readdir(tree, { recursive: true, withFileTypes: true }).catch(() => [])) {
    bytes += ((await lstat(join(entry.parentPath, entry.name)).catch(() => undefined))?.blocks ?? 0) * 512
    files++
  }
  return { files, bytes }
}

async function removeAbandoned(staging: string): Promise<void> {
  for (const name of await readdir(staging).catch(() => [])) {
    const path = join(staging, name)
    const stats = await stat(path).catch(() => undefined)
    if (stats && isAbandoned(name, stats.mtimeMs)) await removeTree(path)
  }
}

/** Of processes that have ended while they held them. */
async function removeOldLocks(directory: string): Promise<void> {
  for (const name of await readdir(directory).catch(() => [])) {
    const path = join(directory, name)
    const stats = await stat(path).catch(() => undefined)
    if (stats && Date.now() - stats.mtimeMs > maxLockMs) await rm(path, { force: true })
  }
}

/** `rmdir` fails as long as anything is in it, such as the use of another process. */
async function removeEmptyParents(path: string, root: string): Promise<void> {
  for (let parent = dirname(path); parent.startsWith(`${root}/`); parent = dirname(parent)) {
    try {
      await rmdir(parent)
    } catch {
      return
    }
  }
}

const directoriesIn = async (directory: string) =>
  (await readdir(directory, { withFileTypes: true }).catch(() => [])).filter(entry => entry.isDirectory())
