import { deepStrictEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { decideLock, decideUnlock } from './decide-lock.ts'
import type { LockHolder } from './lock-holder.ts'

const run = (epoch: number): LockHolder => ({ kind: 'Run', runName: `net-ab-${epoch}`, epoch })
const user = (id: string): LockHolder => ({ kind: 'User', id, who: 'ada@host', info: { ID: id } })
const fence = (minEpoch: number, maxSeenEpoch: number) => ({ minEpoch, maxSeenEpoch })
const grant = (next: { minEpoch: number; maxSeenEpoch: number }, isRepeated = false) => ({ kind: 'grant', isRepeated, fence: next })

for (const { name, at, held, claim, want } of [
  { name: 'grants a free lock to a Run and raises the fence', at: fence(2, 2), held: undefined, claim: run(5), want: grant(fence(5, 5)) },
  { name: 'grants the lock again to its holder', at: fence(5, 5), held: run(5), claim: run(5), want: grant(fence(5, 5), true) },
  { name: 'rejects an older Run as stale', at: fence(5, 5), held: undefined, claim: run(4), want: { kind: 'stale', minEpoch: 5 } },
  { name: 'a newer Run waits for the holder', at: fence(5, 5), held: run(5), claim: run(6), want: { kind: 'held', holder: run(5) } },
  { name: 'a user waits for a Run', at: fence(5, 5), held: run(5), claim: user('a'), want: { kind: 'held', holder: run(5) } },
  { name: 'a Run waits for a user', at: fence(6, 5), held: user('a'), claim: run(6), want: { kind: 'held', holder: user('a') } },
  { name: "a user's lock fences every epoch seen so far", at: fence(5, 5), held: undefined, claim: user('a'), want: grant(fence(6, 5)) },
  {
    name: "a second user's lock does not fence the next Run",
    at: fence(6, 5),
    held: undefined,
    claim: user('b'),
    want: grant(fence(6, 5)),
  },
  { name: 'the next Run gets the lock after a user', at: fence(6, 5), held: undefined, claim: run(6), want: grant(fence(6, 6)) },
  {
    name: 'the previous Run does not get the lock after a user',
    at: fence(6, 5),
    held: undefined,
    claim: run(5),
    want: { kind: 'stale', minEpoch: 6 },
  },
  {
    name: 'users are identified by lock id',
    at: fence(1, 0),
    held: user('a'),
    claim: user('b'),
    want: { kind: 'held', holder: user('a') },
  },
]) {
  test(`decideLock (invariants 3, 4): ${name}`, () => deepStrictEqual(decideLock(at, held, claim), want))
}

for (const { name, held, claim, want } of [
  {
    name: 'the holder releases the lock',
    held: run(5),
    claim: { kind: 'Run' as const, runName: 'net-ab-5', epoch: 5 },
    want: { kind: 'release' },
  },
  { name: 'a repeated unlock finds the lock free', held: undefined, claim: { kind: 'User' as const, id: 'a' }, want: { kind: 'free' } },
  {
    name: 'another lock id does not release the lock',
    held: user('a'),
    claim: { kind: 'User' as const, id: 'b' },
    want: { kind: 'held', holder: user('a') },
  },
  {
    name: 'an older Run does not release the lock of a newer one',
    held: run(6),
    claim: { kind: 'Run' as const, runName: 'net-ab-5', epoch: 5 },
    want: { kind: 'held', holder: run(6) },
  },
  {
    name: 'a user does not release the lock of a Run',
    held: run(6),
    claim: { kind: 'User' as const, id: 'oarlock-run-net-ab-6' },
    want: { kind: 'held', holder: run(6) },
  },
]) {
  test(`decideUnlock: ${name}`, () => deepStrictEqual(decideUnlock(held, claim), want))
}
