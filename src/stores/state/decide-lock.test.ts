import { deepStrictEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { decideLock, decideUnlock, type Fence, type LockDecision, type UnlockClaim, type UnlockDecision } from './decide-lock.ts'
import type { LockHolder } from './lock-holder.ts'

const run = (epoch: number): LockHolder => ({ kind: 'Run', runName: `net-ab-${epoch}`, epoch })
const user = (id: string): LockHolder => ({ kind: 'User', id, who: 'ada@host', info: { ID: id } })
const fence = (minEpoch: number, maxSeenEpoch: number) => ({ minEpoch, maxSeenEpoch })
const grant = (next: Fence, isRepeated = false): LockDecision => ({ kind: 'grant', isRepeated, fence: next })

type LockCase = { name: string; at: Fence; held?: LockHolder; claim: LockHolder; abandonedHolder?: LockHolder; want: LockDecision }
const lockCases: LockCase[] = [
  { name: 'grants a free lock to a Run and raises the fence', at: fence(2, 2), claim: run(5), want: grant(fence(5, 5)) },
  { name: 'grants the lock again to its holder', at: fence(5, 5), held: run(5), claim: run(5), want: grant(fence(5, 5), true) },
  { name: 'rejects an older Run as stale', at: fence(5, 5), claim: run(4), want: { kind: 'stale', minEpoch: 5 } },
  { name: 'a newer Run waits for the holder', at: fence(5, 5), held: run(5), claim: run(6), want: { kind: 'held', holder: run(5) } },
  { name: 'a user waits for a Run', at: fence(5, 5), held: run(5), claim: user('a'), want: { kind: 'held', holder: run(5) } },
  { name: 'a Run waits for a user', at: fence(6, 5), held: user('a'), claim: run(6), want: { kind: 'held', holder: user('a') } },
  { name: "a user's lock fences every epoch seen so far", at: fence(5, 5), claim: user('a'), want: grant(fence(6, 5)) },
  {
    name: "a second user's lock does not fence the next Run",
    at: fence(6, 5),
    claim: user('b'),
    want: grant(fence(6, 5)),
  },
  { name: 'the next Run gets the lock after a user', at: fence(6, 5), claim: run(6), want: grant(fence(6, 6)) },
  {
    name: 'the previous Run does not get the lock after a user',
    at: fence(6, 5),
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
  {
    name: 'breaks the lock of an abandoned holder for a newer Run',
    at: fence(5, 5),
    held: run(5),
    claim: run(6),
    abandonedHolder: run(5),
    want: { kind: 'grant', isRepeated: false, fence: fence(6, 6), brokenHolder: run(5) },
  },
  {
    name: 'breaks the lock of an abandoned holder for a user and fences that holder',
    at: fence(5, 5),
    held: run(5),
    claim: user('a'),
    abandonedHolder: run(5),
    want: { kind: 'grant', isRepeated: false, fence: fence(6, 5), brokenHolder: run(5) },
  },
  {
    name: 'does not break the lock of a holder other than the abandoned one',
    at: fence(6, 6),
    held: run(6),
    claim: run(7),
    abandonedHolder: run(5),
    want: { kind: 'held', holder: run(6) },
  },
  {
    name: 'a stale Run does not break the lock of an abandoned holder',
    at: fence(5, 5),
    held: run(5),
    claim: run(4),
    abandonedHolder: run(5),
    want: { kind: 'stale', minEpoch: 5 },
  },
  {
    name: 'a holder that is reported as abandoned and requests its own lock again repeats its request',
    at: fence(5, 5),
    held: run(5),
    claim: run(5),
    abandonedHolder: run(5),
    want: grant(fence(5, 5), true),
  },
  {
    name: 'grants a free lock whose last holder was abandoned, without breaking it',
    at: fence(5, 5),
    claim: run(6),
    abandonedHolder: run(5),
    want: grant(fence(6, 6)),
  },
]
for (const { name, at, held, claim, abandonedHolder, want } of lockCases) {
  test(`decideLock (invariants 3, 4): ${name}`, () => deepStrictEqual(decideLock({ fence: at, held, claim, abandonedHolder }), want))
}

type UnlockCase = { name: string; held?: LockHolder; claim: UnlockClaim; abandonedHolder?: LockHolder; want: UnlockDecision }
const unlockCases: UnlockCase[] = [
  {
    name: 'the holder releases the lock',
    held: run(5),
    claim: { kind: 'Run', runName: 'net-ab-5', epoch: 5 },
    want: { kind: 'release' },
  },
  { name: 'a repeated unlock finds the lock free', claim: { kind: 'User', id: 'a' }, want: { kind: 'free' } },
  {
    name: 'another lock id does not release the lock',
    held: user('a'),
    claim: { kind: 'User', id: 'b' },
    want: { kind: 'held', holder: user('a') },
  },
  {
    name: 'an older Run does not release the lock of a newer one',
    held: run(6),
    claim: { kind: 'Run', runName: 'net-ab-5', epoch: 5 },
    want: { kind: 'held', holder: run(6) },
  },
  {
    name: 'a user does not release the lock of a Run',
    held: run(6),
    claim: { kind: 'User', id: 'oarlock-run-net-ab-6' },
    want: { kind: 'held', holder: run(6) },
  },
  {
    name: 'a user releases the lock of an abandoned Run, which is fenced',
    held: run(6),
    claim: { kind: 'User', id: 'a' },
    abandonedHolder: run(6),
    want: { kind: 'release', fence: fence(7, 6) },
  },
  {
    name: 'a user does not release the lock of a holder other than the abandoned one',
    held: run(6),
    claim: { kind: 'User', id: 'a' },
    abandonedHolder: run(5),
    want: { kind: 'held', holder: run(6) },
  },
  {
    name: 'the abandoned holder itself releases its lock without a new fence',
    held: run(6),
    claim: { kind: 'Run', runName: 'net-ab-6', epoch: 6 },
    abandonedHolder: run(6),
    want: { kind: 'release' },
  },
]
for (const { name, held, claim, abandonedHolder, want } of unlockCases) {
  test(`decideUnlock (invariant 4): ${name}`, () =>
    deepStrictEqual(decideUnlock({ fence: fence(6, 6), held, claim, abandonedHolder }), want))
}
