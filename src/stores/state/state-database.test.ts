import { deepEqual, equal, ok, throws } from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { StateDatabase } from './state-database.ts'
import type { StateLimits, VersionKind } from './state-types.ts'

const stackUid = 'uid'
const run = (epoch: number) => ({ kind: 'Run' as const, runName: `run-${epoch}`, epoch })
const user = (id: string) => ({ kind: 'User' as const, id, who: 'ada@host', info: { ID: id } })

/** A database in a directory of its own, with shorter calls for one stack. */
function open(t: TestContext, limits?: Partial<StateLimits>) {
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-state-database-'))
  const database = new StateDatabase({ directory, key: Buffer.alloc(32, 7), limits })
  t.after(() => {
    database.close()
    rmSync(directory, { recursive: true })
  })
  const bytes = (content: string | Uint8Array) => Buffer.from(content as string)
  return {
    database,
    lock: (holder: ReturnType<typeof run> | ReturnType<typeof user>, abandonedHolder?: ReturnType<typeof run>) =>
      database.lock({ stackUid, holder, abandonedHolder }, 1_000),
    unlock: (holder: ReturnType<typeof run> | ReturnType<typeof user>) => database.unlock({ stackUid, holder }),
    write: (
      epoch: number,
      content: string | Uint8Array,
      { kind = 'terraform', sequence }: { kind?: VersionKind; sequence?: number } = {},
    ) => database.writeVersion({ stackUid, author: { ...run(epoch), sequence }, kind, bytes: bytes(content) }, 1_000),
    writeAsUser: (lockId: string | undefined, content: string) =>
      database.writeVersion({ stackUid, author: { kind: 'User', lockId }, kind: 'terraform', bytes: bytes(content) }, 1_000),
    read: (version?: number) => {
      const stored = database.readVersion({ stackUid, version, kind: 'terraform' })
      return stored && Buffer.from(stored.bytes).toString()
    },
    versions: () => database.versions(stackUid).map(({ version }) => version),
    orphans: () => database.orphans(stackUid).map(({ version }) => version),
  }
}

test('numbers versions, lists them newest first and reads each of them', t => {
  const { database, write, read } = open(t)
  equal(read(), undefined)
  deepEqual(write(1, 'one'), { kind: 'accepted', version: 1 })
  deepEqual(write(1, 'two'), { kind: 'accepted', version: 2 })
  deepEqual([read(), read(1), read(2)], ['two', 'one', 'two'])
  const info = { kind: 'terraform', epoch: 1, author: 'run-1', size: 3, createdMs: 1_000 }
  deepEqual(database.versions(stackUid), [
    { version: 2, ...info },
    { version: 1, ...info },
  ])
  deepEqual(database.versions('other'), [])
})

test('creates no version for content equal to the newest of the same epoch', t => {
  const { write } = open(t)
  write(1, 'one')
  deepEqual(write(1, 'one'), { kind: 'accepted', version: 1 })
  deepEqual(write(2, 'one'), { kind: 'accepted', version: 2 })
})

test('does not make a delayed write of the same Run current', t => {
  const { write, read } = open(t)
  write(1, 'newer', { sequence: 20 })
  deepEqual(write(1, 'older', { sequence: 10 }), { kind: 'accepted', version: 1 })
  equal(read(), 'newer')
})

test('stores the inventory separately from the state', t => {
  const { database, write, read } = open(t)
  write(1, 'state')
  write(1, 'list', { kind: 'inventory' })
  equal(read(), 'state')
  equal(Buffer.from(database.readVersion({ stackUid, kind: 'inventory' })?.bytes ?? []).toString(), 'list')
})

test('stores a write of an older epoch as an orphan, once (invariant 3)', t => {
  const { database, lock, write, read } = open(t)
  lock(run(5))
  write(5, 'current')
  const rejected = { kind: 'rejected', reason: 'StaleEpoch', orphan: 2, currentEpoch: 5, holder: run(5) }
  deepEqual(write(4, 'late'), rejected)
  deepEqual(write(4, 'late'), rejected)
  deepEqual([read(), read(2)], ['current', 'late'])
  deepEqual(database.orphans(stackUid), [
    { version: 2, kind: 'terraform', epoch: 4, author: 'run-4', size: 4, createdMs: 1_000, reason: 'StaleEpoch' },
  ])
})

test('stores a write without the lock as an orphan', t => {
  const { lock, write } = open(t)
  lock(run(2))
  deepEqual(write(3, 'other'), { kind: 'rejected', reason: 'NotLockHolder', orphan: 1, currentEpoch: 2, holder: run(2) })
})

test('stores incomplete content as an orphan, and the fence does not change', t => {
  const { database, lock, write } = open(t)
  lock(run(1))
  const request = { stackUid, author: run(9), kind: 'terraform' as const, bytes: Buffer.from('{"ser'), orphanReason: 'Incomplete' as const }
  const result = database.writeVersion(request, 1_000)
  deepEqual(result, { kind: 'rejected', reason: 'Incomplete', orphan: 1, currentEpoch: 1, holder: run(1) })
  equal(write(1, '{}').kind, 'accepted')
})

test('grants a lock repeatedly to its holder and to no one else', t => {
  const { lock, unlock } = open(t)
  deepEqual(lock(run(1)), { kind: 'granted' })
  deepEqual(lock(run(1)), { kind: 'granted' })
  deepEqual(lock(run(2)), { kind: 'rejected', reason: 'Held', holder: run(1), sinceMs: 1_000 })
  deepEqual(unlock(run(2)), { kind: 'rejected', holder: run(1) })
  deepEqual(unlock(run(1)), { kind: 'released' })
  deepEqual(unlock(run(1)), { kind: 'free' })
})

test('breaks the lock of an abandoned holder and fences that holder (invariant 4)', t => {
  const { lock, write } = open(t)
  lock(run(1))
  deepEqual(lock(run(2), run(1)), { kind: 'granted', brokenHolder: run(1) })
  deepEqual(lock(run(1), run(2)), { kind: 'rejected', reason: 'StaleEpoch', currentEpoch: 2 })
  equal(write(1, 'late').kind, 'rejected')
})

test('does not break a lock that another holder has acquired meanwhile (invariant 4)', t => {
  const { lock } = open(t)
  lock(run(2))
  deepEqual(lock(run(3), run(1)), { kind: 'rejected', reason: 'Held', holder: run(2), sinceMs: 1_000 })
})

test('releases an abandoned lock for a user and fences its holder', t => {
  const { database, lock, write } = open(t)
  lock(run(1))
  deepEqual(database.unlock({ stackUid, holder: user('a'), abandonedHolder: run(1) }), { kind: 'released' })
  equal(write(1, 'late').kind, 'rejected')
  equal(write(2, 'next').kind, 'accepted')
})

test("a user's lock fences the previous Run, and accepts writes with its lock id only", t => {
  const { database, lock, unlock, write, writeAsUser, read } = open(t)
  lock(run(1))
  unlock(run(1))
  lock(user('a'))
  deepEqual(database.currentLock(stackUid), { holder: user('a'), sinceMs: 1_000 })
  equal(lock(run(2)).kind, 'rejected')
  deepEqual(writeAsUser('a', 'p'), { kind: 'accepted', version: 1 })
  equal(database.versions(stackUid)[0]?.author, 'user')
  equal(writeAsUser('b', 'q').kind, 'rejected')
  unlock(user('a'))
  equal(write(1, 'late').kind, 'rejected')
  equal(lock(run(2)).kind, 'granted')
  equal(read(), 'p')
})

test('deletes the oldest versions and orphans beyond their limits and counts them (invariant 10)', t => {
  const { database, write, versions, orphans } = open(t, { versionsPerStack: 3, orphansPerStack: 2 })
  for (let i = 1; i <= 6; i++) write(9, `v${i}`)
  for (let i = 1; i <= 5; i++) write(3, `o${i}`)
  deepEqual(versions(), [6, 5, 4])
  deepEqual(orphans(), [11, 10])
  const { droppedVersions, droppedOrphans, stacks } = database.stats()
  deepEqual({ droppedVersions, droppedOrphans, stacks }, { droppedVersions: 3, droppedOrphans: 3, stacks: 1 })
})

test('deletes the oldest versions beyond bytesPerStack, never the newest of a kind', t => {
  const { write, versions } = open(t, { bytesPerStack: 100 })
  write(1, randomBytes(2_000), { kind: 'inventory' })
  for (let i = 0; i < 4; i++) write(1, randomBytes(2_000))
  deepEqual(versions(), [5, 1])
})

test('keeps the newest plans by digest', t => {
  const { database } = open(t, { plansPerStack: 2 })
  for (const digest of ['a', 'b', 'c']) database.putPlan({ stackUid, digest, runName: 'run-1', bytes: Buffer.from(`plan ${digest}`) }, 0)
  equal(database.getPlan(stackUid, 'a'), undefined)
  equal(Buffer.from(database.getPlan(stackUid, 'c')?.bytes ?? []).toString(), 'plan c')
})

test('stores a plan once: no Run replaces the bytes under a digest that may have been approved', t => {
  const { database } = open(t)
  const put = (text: string, runName: string) => database.putPlan({ stackUid, digest: 'd', runName, bytes: Buffer.from(text) }, 0)
  put('shown', 'run-1')
  put('shown', 'run-2')
  throws(() => put('other', 'run-2'), { code: 'PlanExists', message: 'Run run-1 has stored another plan under digest d' })
  equal(Buffer.from(database.getPlan(stackUid, 'd')?.bytes ?? []).toString(), 'shown')
  database.putPlan({ stackUid: 'other', digest: 'd', runName: 'run-1', bytes: Buffer.from('of another Stack') }, 0)
})

test('keeps the newest diffs within both limits, each stored once, and deletes them with the Stack', t => {
  const { database } = open(t, { diffsPerStack: 3, diffBytesPerStack: 5_000 })
  const put = (runName: string, bytes: Uint8Array) => database.putDiff({ stackUid, runName, bytes }, 0)
  const stored = () => ['a', 'b', 'c', 'd', 'e'].filter(name => database.getDiff(stackUid, name) !== undefined)
  for (const name of ['a', 'b', 'c', 'd']) put(name, Buffer.from(`diff ${name}`))
  deepEqual(stored(), ['b', 'c', 'd'])
  put('d', Buffer.from('diff d'))
  throws(() => put('d', Buffer.from('other')), { code: 'PlanExists', message: 'Run d has stored another diff of its plan' })
  put('e', randomBytes(6_000))
  deepEqual(stored(), ['e'], 'the newest one is larger than the limit')
  database.deleteStack(stackUid)
  deepEqual(stored(), [])
})

test('rejects content above maxBytes and invalid arguments', t => {
  const { database, write } = open(t, { maxBytes: 100 })
  throws(() => write(1, 'x'.repeat(101)), { code: 'TooLarge', message: 'the state has 101 bytes, at most 100 are allowed' })
  throws(() => write(-1, 'x'), { code: 'InvalidArgument', message: 'epoch must be a whole number >= 0, got -1' })
  throws(() => database.versions(''), { code: 'InvalidArgument' })
  equal(write(1, 'fits').kind, 'accepted')
})

test('rejects writes above totalBytes, keeps what is stored, and accepts writes after a deletion', t => {
  const { database, write, read } = open(t, { totalBytes: 400_000, maxBytes: 60_000 })
  write(1, 'first')
  const author = run(1)
  const fill = () => {
    for (let i = 0; i < 200; i++) {
      const request = { stackUid: 'big', author, kind: 'terraform' as const, bytes: randomBytes(30_000) }
      database.transaction(() => database.writeVersion(request, 0))
    }
  }
  throws(fill, { code: 'QuotaExceeded' })
  equal(read(), 'first')
  database.transaction(() => database.deleteStack('big'))
  equal(database.transaction(() => write(1, 'second')).kind, 'accepted')
})

test('a failed transaction changes nothing', t => {
  const { database, write, versions } = open(t)
  write(1, 'one')
  throws(
    () =>
      database.transaction(() => {
        write(1, 'two')
        throw new Error('boom')
      }),
    { code: 'Unavailable' },
  )
  deepEqual(versions(), [1])
})

test('deletes all data of a stack', t => {
  const { database, lock, write } = open(t)
  lock(run(1))
  write(1, 'one')
  database.deleteStack(stackUid)
  const { versions, locks, stacks, bytes } = database.stats()
  deepEqual({ versions, locks, stacks }, { versions: 0, locks: 0, stacks: 0 })
  ok(bytes > 0)
})

test('keeps what the newest Run applies, until its Stack is deleted; an older Run does not replace it', t => {
  const { database, lock } = open(t)
  const put = (epoch: number, content: string) => database.putConfiguration({ stackUid, epoch, bytes: Buffer.from(content) }, 0)
  const get = () => {
    const bytes = database.getConfiguration(stackUid)
    return bytes && Buffer.from(bytes).toString()
  }
  equal(get(), undefined)
  lock(run(2))
  deepEqual(put(2, 'a'), { kind: 'stored' })
  deepEqual(put(2, 'a'), { kind: 'stored' })
  deepEqual(put(1, 'late'), { kind: 'rejected', reason: 'StaleEpoch', currentEpoch: 2 })
  equal(get(), 'a')
  deepEqual(put(3, 'b'), { kind: 'stored' })
  equal(get(), 'b')
  // It is no version: whether a state is missing does not depend on it.
  equal(database.newestVersion(stackUid), 0)
  database.deleteStack(stackUid)
  equal(get(), undefined)
})
