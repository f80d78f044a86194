import { readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { ifMissing } from '../../../kubernetes/util/index.ts'
import { EvictionOrder, isAbandoned, removeTree, removeUnlessUsed, temporaryName } from '../../workspace/index.ts'
import { removeOldLocks } from './install-lock.ts'
import { parseTreeRecord, recordName, type TreeRecord } from './tree-record.ts'

/** In the directory of a store, next to the directories of its domains. */
const notDomains = ['staging', 'locks', 'archives']
/** Of notes, locks, and of what an installer that was killed has reported. */
const maxFileAgeMs = 30 * 24 * 3_600_000

/** A tree that is in the store. `record` is undefined if it is damaged. */
export type StoredEntry = { path: string; domain: string; digest: string; usedAtMs: number; bytes: number; record: TreeRecord | undefined }

/** All trees, the least recently used first. */
export async function listDependencies(directory: string): Promise<StoredEntry[]> {
  const entries: StoredEntry[] = []
  for (const domain of await domainsIn(directory)) {
    for (const digest of await readdir(join(directory, domain)).catch(ifMissing([]))) {
      if (!/^[0-9a-f]{64}$/.test(digest)) continue
      const path = join(directory, domain, digest)
      const stats = await stat(path).catch(ifMissing(undefined))
      const text = await readFile(join(path, recordName), 'utf8').catch(() => '')
      const record = parseTreeRecord(text, digest)
      if (stats) entries.push({ path, domain, digest, usedAtMs: stats.mtimeMs, bytes: record?.bytes ?? 0, record })
    }
  }
  return entries.sort((a, b) => a.usedAtMs - b.usedAtMs)
}

/**
 * Removes trees until all domains together have at most `maxBytes`, in the {@link EvictionOrder}. What is in use is kept beyond the limit. Removes
 * what processes left unfinished which have ended. Returns the bytes that were removed.
 */
export async function evictDependencies(directory: string, maxBytes: number): Promise<number> {
  const staging = join(directory, 'staging')
  await removeAbandoned(staging)
  await removeOldFiles(directory)
  await removeOldLocks(join(directory, 'locks'), maxFileAgeMs)
  const order = new EvictionOrder(await listDependencies(directory), maxBytes)
  let removedBytes = 0
  for (let next = order.next(); next; next = order.next()) {
    if (!(await removeEntry(next.path, staging))) continue
    order.removed(next)
    removedBytes += next.bytes
  }
  return removedBytes
}

/** Removes one tree; false if it is in use. Renamed first: a process that ends in the middle leaves no incomplete tree. */
export async function removeEntry(path: string, staging: string): Promise<boolean> {
  const temporary = join(staging, temporaryName(`removed-${globalThis.crypto.randomUUID()}`))
  return await removeUnlessUsed(path, async () => {
    await rename(path, temporary)
    await removeTree(temporary)
  })
}

async function domainsIn(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { withFileTypes: true }).catch(ifMissing([]))
  return entries.filter(entry => entry.isDirectory() && !notDomains.includes(entry.name)).map(({ name }) => name)
}

async function removeAbandoned(staging: string): Promise<void> {
  for (const name of await readdir(staging).catch(() => [])) {
    const path = join(staging, name)
    const stats = await stat(path).catch(() => undefined)
    if (stats && isAbandoned(name, stats.mtimeMs)) await removeTree(path)
  }
}

async function removeOldFiles(directory: string): Promise<void> {
  for (const domain of await domainsIn(directory)) {
    for (const name of await readdir(join(directory, domain)).catch(ifMissing([]))) {
      if (!name.startsWith('note-') && !name.endsWith('.progress')) continue
      const path = join(directory, domain, name)
      const stats = await stat(path).catch(() => undefined)
      if (stats && Date.now() - stats.mtimeMs > maxFileAgeMs) await rm(path, { force: true })
    }
  }
}
