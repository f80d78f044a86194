import { deepStrictEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { decideWrite, type NewestVersion, type WriteAuthor } from './decide-write.ts'
import type { LockHolder } from './lock-holder.ts'

const fence = (minEpoch: number, maxSeenEpoch: number) => ({ minEpoch, maxSeenEpoch })
const runLock = (epoch: number): LockHolder => ({ kind: 'Run', runName: `r${epoch}`, epoch })
const personLock: LockHolder = { kind: 'Person', id: 'a', who: 'ada', info: { ID: 'a' } }
const run = (epoch: number, sequence?: number): WriteAuthor => ({ kind: 'Run', runName: `r${epoch}`, epoch, sequence })
const person = (lockId?: string): WriteAuthor => ({ kind: 'Person', lockId })
const newest = (epoch: number, digest: string, sequence?: number): NewestVersion => ({ version: 7, epoch, digest, sequence })
const orphan = (epoch: number, reason: string) => ({ kind: 'orphan', epoch, reason })
type Case = { name: string; at: ReturnType<typeof fence>; lock?: LockHolder; newest?: NewestVersion; author: WriteAuthor; want: unknown }

const cases: Case[] = [
  { name: 'the holder writes', at: fence(5, 5), lock: runLock(5), author: run(5), want: { kind: 'accept', epoch: 5, fence: fence(5, 5) } },
  { name: 'an older epoch is kept aside', at: fence(6, 6), lock: runLock(6), author: run(5), want: orphan(5, 'StaleEpoch') },
  { name: 'and also when nobody holds the lock', at: fence(6, 6), author: run(5), want: orphan(5, 'StaleEpoch') },
  {
    name: 'a last upload after the unlock counts',
    at: fence(5, 5),
    author: run(5),
    want: { kind: 'accept', epoch: 5, fence: fence(5, 5) },
  },
  { name: 'but not after a person was there', at: fence(6, 5), author: run(5), want: orphan(5, 'StaleEpoch') },
  { name: 'a newer run cannot write past the lock', at: fence(5, 5), lock: runLock(5), author: run(6), want: orphan(6, 'NotLockHolder') },
  { name: 'nor past a person', at: fence(6, 5), lock: personLock, author: run(6), want: orphan(6, 'NotLockHolder') },
  {
    name: 'the same content again is no new version',
    at: fence(5, 5),
    lock: runLock(5),
    newest: newest(5, 'd'),
    author: run(5),
    want: { kind: 'keep', version: 7, why: 'same', fence: fence(5, 5) },
  },
  {
    name: 'the same content in a new epoch is one',
    at: fence(6, 6),
    lock: runLock(6),
    newest: newest(5, 'd'),
    author: run(6),
    want: { kind: 'accept', epoch: 6, fence: fence(6, 6) },
  },
  {
    name: 'a late copy of an older write',
    at: fence(5, 5),
    lock: runLock(5),
    newest: newest(5, 'x', 9),
    author: run(5, 8),
    want: { kind: 'keep', version: 7, why: 'superseded', fence: fence(5, 5) },
  },
  {
    name: 'the next write',
    at: fence(5, 5),
    lock: runLock(5),
    newest: newest(5, 'x', 9),
    author: run(5, 10),
    want: { kind: 'accept', epoch: 5, fence: fence(5, 5) },
  },
  {
    name: 'a person with the lock',
    at: fence(6, 5),
    lock: personLock,
    author: person('a'),
    want: { kind: 'accept', epoch: 5, fence: fence(6, 5) },
  },
  { name: 'a person with another lock id', at: fence(6, 5), lock: personLock, author: person('b'), want: orphan(5, 'NotLockHolder') },
  { name: 'a person whose lock is gone', at: fence(6, 5), author: person('a'), want: orphan(5, 'NotLockHolder') },
  { name: 'a person without a lock id past a run', at: fence(5, 5), lock: runLock(5), author: person(), want: orphan(5, 'NotLockHolder') },
  {
    name: 'a person without any lock fences late runs',
    at: fence(5, 5),
    author: person(),
    want: { kind: 'accept', epoch: 5, fence: fence(6, 5) },
  },
]
for (const { name, at, lock, newest, author, want } of cases) {
  test(`write (invariant 3): ${name}`, () => deepStrictEqual(decideWrite({ fence: at, lock, newest }, author, 'd'), want))
}
