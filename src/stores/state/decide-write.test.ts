import { deepStrictEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { decideWrite, type NewestVersion, type OrphanReason, type WriteAuthor } from './decide-write.ts'
import type { LockHolder } from './lock-holder.ts'

const fence = (minEpoch: number, maxSeenEpoch: number) => ({ minEpoch, maxSeenEpoch })
const runLock = (epoch: number): LockHolder => ({ kind: 'Run', runName: `r${epoch}`, epoch })
const userLock: LockHolder = { kind: 'User', id: 'a', who: 'ada', info: { ID: 'a' } }
const run = (epoch: number, sequence?: number): WriteAuthor => ({ kind: 'Run', runName: `r${epoch}`, epoch, sequence })
const user = (lockId?: string): WriteAuthor => ({ kind: 'User', lockId })
const newest = (epoch: number, digest: string, sequence?: number): NewestVersion => ({ version: 7, epoch, digest, sequence })
const orphan = (epoch: number, reason: string) => ({ kind: 'orphan', epoch, reason })
type Case = {
  name: string
  at: ReturnType<typeof fence>
  lock?: LockHolder
  newest?: NewestVersion
  author: WriteAuthor
  reason?: OrphanReason
  want: unknown
}

const cases: Case[] = [
  {
    name: 'accepts a write of the lock holder',
    at: fence(5, 5),
    lock: runLock(5),
    author: run(5),
    want: { kind: 'accept', epoch: 5, fence: fence(5, 5) },
  },
  {
    name: 'stores a write of an older epoch as an orphan',
    at: fence(6, 6),
    lock: runLock(6),
    author: run(5),
    want: orphan(5, 'StaleEpoch'),
  },
  {
    name: 'stores a write of an older epoch as an orphan when the lock is free',
    at: fence(6, 6),
    author: run(5),
    want: orphan(5, 'StaleEpoch'),
  },
  {
    name: 'accepts the last upload after the unlock',
    at: fence(5, 5),
    author: run(5),
    want: { kind: 'accept', epoch: 5, fence: fence(5, 5) },
  },
  { name: 'rejects the last upload after a user has locked', at: fence(6, 5), author: run(5), want: orphan(5, 'StaleEpoch') },
  {
    name: 'rejects a newer Run that does not hold the lock',
    at: fence(5, 5),
    lock: runLock(5),
    author: run(6),
    want: orphan(6, 'NotLockHolder'),
  },
  { name: 'rejects a Run while a user holds the lock', at: fence(6, 5), lock: userLock, author: run(6), want: orphan(6, 'NotLockHolder') },
  {
    name: 'creates no version for unchanged content',
    at: fence(5, 5),
    lock: runLock(5),
    newest: newest(5, 'd'),
    author: run(5),
    want: { kind: 'keep', version: 7, reason: 'unchanged', fence: fence(5, 5) },
  },
  {
    name: 'creates a version for unchanged content in a new epoch',
    at: fence(6, 6),
    lock: runLock(6),
    newest: newest(5, 'd'),
    author: run(6),
    want: { kind: 'accept', epoch: 6, fence: fence(6, 6) },
  },
  {
    name: 'ignores a delayed copy of an older write',
    at: fence(5, 5),
    lock: runLock(5),
    newest: newest(5, 'x', 9),
    author: run(5, 8),
    want: { kind: 'keep', version: 7, reason: 'superseded', fence: fence(5, 5) },
  },
  {
    name: 'accepts the next write of the same Run',
    at: fence(5, 5),
    lock: runLock(5),
    newest: newest(5, 'x', 9),
    author: run(5, 10),
    want: { kind: 'accept', epoch: 5, fence: fence(5, 5) },
  },
  {
    name: 'accepts a write of a user who holds the lock',
    at: fence(6, 5),
    lock: userLock,
    author: user('a'),
    want: { kind: 'accept', epoch: 5, fence: fence(6, 5) },
  },
  { name: 'rejects a user with another lock id', at: fence(6, 5), lock: userLock, author: user('b'), want: orphan(5, 'NotLockHolder') },
  { name: 'rejects a user whose lock does not exist any more', at: fence(6, 5), author: user('a'), want: orphan(5, 'NotLockHolder') },
  {
    name: 'rejects a user without a lock id while a Run holds the lock',
    at: fence(5, 5),
    lock: runLock(5),
    author: user(),
    want: orphan(5, 'NotLockHolder'),
  },
  {
    name: 'a write of a user without a lock fences earlier Runs',
    at: fence(5, 5),
    author: user(),
    want: { kind: 'accept', epoch: 5, fence: fence(6, 5) },
  },
  {
    name: 'stores a write of an ended Run as an orphan, even if it holds the lock',
    at: fence(5, 5),
    lock: runLock(5),
    newest: newest(5, 'x'),
    author: run(5),
    reason: 'RunEnded',
    want: orphan(5, 'RunEnded'),
  },
  {
    name: 'keeps what an ended Run has stored before',
    at: fence(5, 5),
    newest: newest(5, 'd'),
    author: run(5),
    reason: 'RunEnded',
    want: { kind: 'keep', version: 7, reason: 'unchanged', fence: fence(5, 5) },
  },
]
for (const { name, at, lock, newest, author, reason, want } of cases) {
  test(`decideWrite (invariant 3): ${name}`, () => deepStrictEqual(decideWrite({ fence: at, lock, newest }, author, 'd', reason), want))
}
