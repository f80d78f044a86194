/** Locks and uses of entries of a cache that several processes share: an entry is a directory, its lock and its uses are files next to it. */
import { link, lstat, readdir, readFile, stat, unlink, utimes, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { ifMissing } from '../../kubernetes/util/index.ts'
import { readStartTime } from './process/index.ts'

/** Ends a lock or a use. Does not fail. */
export type Release = () => Promise<void>

const lockPollMs = 50
const removalPollMs = 2
/** How long to wait for another process that creates the same entry before creating it here. */
const lockWaitMs = 120_000
/** A use of a process that cannot be seen, in another container, counts for this long since it was written or renewed. */
const maxUseMs = 15 * 60_000
const renewUseMs = 5 * 60_000

const lockOf = (entry: string) => `${entry}.lock`
const usesOf = (entry: string) => `${basename(entry)}.use-`
const isMissing = (error: unknown) => (error as NodeJS.ErrnoException).code === 'ENOENT'
/** Identifies this process; a later one with the same PID has another start time. */
const owner = () => `${process.pid} ${readStartTime(process.pid) ?? ''}`

function isAlive(ownerText: string): boolean {
  const [pid = '', startTime = ''] = ownerText.split(' ')
  return readStartTime(Number(pid)) === (startTime || undefined)
}

/**
 * Takes an entry into use if it is in the cache: it is not removed before the returned function is called. A use is a file next to it.
 * Who removes an entry locks it and then looks for uses; a use is written before one looks for the lock: one of the two sees the other.
 */
export async function takeIntoUse(entry: string): Promise<Release | undefined> {
  const release = await useLocked(entry)
  const isThere = !(await exists(lockOf(entry))) && (await exists(entry))
  if (isThere) return release
  await release()
  return undefined
}

/** As {@link takeIntoUse}, after the lock of a process that has ended was removed. */
export async function takeEntry(entry: string): Promise<Release | undefined> {
  // A use is a file next to the entry.
  if (!(await exists(entry))) return undefined
  const take = () => takeIntoUse(entry).catch(ifMissing(undefined))
  const release = await take()
  if (release) return release
  await removeStaleLock(entry).catch(ifMissing(undefined))
  return await take()
}

/** The same as {@link takeIntoUse} for an entry that this process has locked. */
export async function useLocked(entry: string): Promise<Release> {
  const use = join(dirname(entry), `${usesOf(entry)}${globalThis.crypto.randomUUID()}`)
  await writeFile(use, owner())
  const renewal = setInterval(() => void touch(use).catch(() => {}), renewUseMs).unref()
  return async () => {
    clearInterval(renewal)
    await unlink(use).catch(() => {})
  }
}

/** Marks it as the most recently used one. */
export async function touch(entry: string): Promise<void> {
  const now = new Date()
  await utimes(entry, now, now)
}

/** True if a process uses it, or may: uses of processes that have ended are removed. */
export async function isInUse(entry: string): Promise<boolean> {
  const directory = dirname(entry)
  const uses = (await readdir(directory)).filter(name => name.startsWith(usesOf(entry)))
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

/** Calls `remove` while no process uses the entry or can begin to; false if it is in use or locked, true if another process removed it. */
export async function removeUnlessUsed(entry: string, remove: () => Promise<void>): Promise<boolean> {
  let unlock: Release | undefined
  try {
    unlock = await tryLock(lockOf(entry))
    if (!unlock || (await isInUse(entry))) return false
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
 * Waits until the entry is in the cache, and takes it into use; or locks it so that this process can create it. After two minutes the
 * latter without a lock, which only saves work then.
 */
export async function takeOrLock(entry: string, signal: AbortSignal): Promise<{ release: Release } | { unlock: Release }> {
  const path = lockOf(entry)
  for (const deadline = performance.now() + lockWaitMs; ; ) {
    const release = await takeIntoUse(entry)
    if (release) return { release }
    const unlock = await tryLock(path)
    // It may have been added between the two.
    if (unlock && !(await exists(entry))) return { unlock }
    await unlock?.()
    if (unlock) continue
    if (performance.now() >= deadline) return { unlock: async () => {} }
    await delay(lockPollMs, undefined, { signal })
  }
}

/** Undefined when a process that exists has the lock. */
async function tryLock(path: string): Promise<Release | undefined> {
  const lock = await lockOrHolder(path)
  return 'unlock' in lock ? lock.unlock : undefined
}

/**
 * Locks `path`, or returns the `description` of who has the lock. A holder that has ended loses it, and after `maxHoldMs` also one that has
 * not: whether a process in another container has ended is not visible everywhere.
 */
export async function lockOrHolder(
  path: string,
  { description = '', maxHoldMs = Number.POSITIVE_INFINITY } = {},
): Promise<{ unlock: Release } | { holder: string }> {
  const id = globalThis.crypto.randomUUID()
  const own = `${path}-${id}`
  const text = `${owner()} ${id} ${description}`
  await writeFile(own, text)
  try {
    for (;;) {
      try {
        // A link instead of an exclusive create: the lock never exists without its content.
        await link(own, path)
        return { unlock: () => unlock(path, text) }
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      }
      const holder = await readFile(path, 'utf8').catch(() => '')
      const isExpired = Date.now() - ((await stat(path).catch(() => undefined))?.mtimeMs ?? Date.now()) > maxHoldMs
      if (holder === '' || (isAlive(holder) && !isExpired)) return { holder: holder.split(' ').slice(3).join(' ') }
      await removeLock(path, holder)
    }
  } finally {
    await unlink(own).catch(() => {})
  }
}

/** Not the lock of a process that took it over. */
async function unlock(path: string, text: string): Promise<void> {
  if ((await readFile(path, 'utf8').catch(() => '')) === text) await unlink(path).catch(() => {})
}

/**
 * Removes the lock of `holder`, which has ended. One process at a time does: another one could otherwise rename a lock that was taken
 * meanwhile, and while it puts that back a third one would get the lock too.
 */
async function removeLock(path: string, holder: string): Promise<void> {
  const guard = `${path}-removal`
  const own = `${guard}-${globalThis.crypto.randomUUID()}`
  await writeFile(own, owner())
  try {
    await link(own, guard)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    // Held for the few calls below, unless its process was killed there.
    const other = await readFile(guard, 'utf8').catch(() => '')
    if (other !== '' && !isAlive(other)) await unlink(guard).catch(() => {})
    else await delay(removalPollMs)
    return
  } finally {
    await unlink(own).catch(() => {})
  }
  try {
    if ((await readFile(path, 'utf8').catch(() => '')) === holder) await unlink(path).catch(() => {})
  } finally {
    await unlink(guard).catch(() => {})
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

/** Removes the lock of a process that has ended, which {@link takeIntoUse} respects. */
async function removeStaleLock(entry: string): Promise<void> {
  const unlock = await tryLock(lockOf(entry))
  await unlock?.()
}
