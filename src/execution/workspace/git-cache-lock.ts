import { link, lstat, readdir, readFile, stat, unlink, utimes, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { readStartTime } from './process/index.ts'

/** Ends a lock or a use. Does not fail. */
export type Release = () => Promise<void>

const lockPollMs = 50
/** How long to wait for another process that fetches the same commit before fetching it here. */
const lockWaitMs = 120_000
/** A use of a process that cannot be seen, in another container, counts for this long: longer than a call of git may take. */
const maxUseMs = 15 * 60_000

const lockOf = (repository: string) => `${repository}.lock`
const usesOf = (repository: string) => `${basename(repository)}.use-`
const isMissing = (error: unknown) => (error as NodeJS.ErrnoException).code === 'ENOENT'
/** Identifies this process; a later one with the same PID has another start time. */
const owner = () => `${process.pid} ${readStartTime(process.pid) ?? ''}`

function isAlive(ownerText: string): boolean {
  const [pid = '', startTime = ''] = ownerText.split(' ')
  return readStartTime(Number(pid)) === (startTime || undefined)
}

/**
 * Takes a repository into use if it is in the cache: it is not removed before the returned function is called. A use is a file next to it.
 * Who removes a repository locks it and then looks for uses; a use is written before one looks for the lock: one of the two sees the other.
 */
export async function takeIntoUse(repository: string): Promise<Release | undefined> {
  const release = await useLocked(repository)
  const isThere = !(await exists(lockOf(repository))) && (await exists(repository))
  if (isThere) return release
  await release()
  return undefined
}

/** The same for a repository that this process has locked. */
export async function useLocked(repository: string): Promise<Release> {
  const use = join(dirname(repository), `${usesOf(repository)}${globalThis.crypto.randomUUID()}`)
  await writeFile(use, owner())
  return () => unlink(use).catch(() => {})
}

/** Marks it as the most recently used one. */
export async function touch(repository: string): Promise<void> {
  const now = new Date()
  await utimes(repository, now, now)
}

/** True if a process uses it, or may: uses of processes that have ended are removed. */
async function isInUse(repository: string): Promise<boolean> {
  const directory = dirname(repository)
  const uses = (await readdir(directory)).filter(name => name.startsWith(usesOf(repository)))
  const live = await Promise.all(uses.map(name => isLiveUse(join(directory, name))))
  return live.includes(true)
}

async function isLiveUse(path: string): Promise<boolean> {
  try {
    const text = await readFile(path, 'utf8')
    // Where processes cannot be seen at all, only time tells.
    if ((!text.endsWith(' ') && isAlive(text)) || Date.now() - (await stat(path)).mtimeMs < maxUseMs) return true
    await unlink(path)
    return false
  } catch (error) {
    if (isMissing(error)) return false
    throw error
  }
}

/** Calls `remove` while no process uses the repository or can begin to; false if it is in use or locked, true if another process removed it. */
export async function removeUnlessUsed(repository: string, remove: () => Promise<void>): Promise<boolean> {
  let unlock: Release | undefined
  try {
    unlock = await tryLock(lockOf(repository))
    if (!unlock || (await isInUse(repository))) return false
    await remove()
    return true
  } catch (error) {
    if (isMissing(error)) return true
    throw error
  } finally {
    await unlock?.()
  }
}

/**
 * Waits until the repository is in the cache, and takes it into use; or locks it so that this process can fetch it. After two minutes the
 * latter without a lock, which only saves work then.
 */
export async function takeOrLock(repository: string, signal: AbortSignal): Promise<{ release: Release } | { unlock: Release }> {
  const path = lockOf(repository)
  for (const deadline = performance.now() + lockWaitMs; ; ) {
    const release = await takeIntoUse(repository)
    if (release) return { release }
    const unlock = await tryLock(path)
    // It may have been added between the two.
    if (unlock && !(await exists(repository))) return { unlock }
    await unlock?.()
    if (unlock) continue
    if (performance.now() >= deadline) return { unlock: async () => {} }
    await delay(lockPollMs, undefined, { signal })
  }
}

/** Undefined when a process that exists has the lock. */
async function tryLock(path: string): Promise<Release | undefined> {
  const own = `${path}-${globalThis.crypto.randomUUID()}`
  await writeFile(own, owner())
  try {
    for (;;) {
      try {
        // A link instead of an exclusive create: the lock never exists without its content.
        await link(own, path)
        return () => unlink(path).catch(() => {})
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      }
      const holder = await readFile(path, 'utf8').catch(() => '')
      if (holder === '' || isAlive(holder)) return undefined
      await unlink(path).catch(() => {})
    }
  } finally {
    await unlink(own).catch(() => {})
  }
}

async function exists(path: string): Promise<boolean> {
  try {
    await lstat(path)
    return true
  } catch (error) {
    if (isMissing(error)) return false
    throw error
  }
}
