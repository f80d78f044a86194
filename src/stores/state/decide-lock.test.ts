import { deepStrictEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { decideLock, decideUnlock } from './decide-lock.ts'
import type { LockHolder } from './lock-holder.ts'

const run = (epoch: number): LockHolder => ({ kind: 'Run', runName: `net-ab-${epoch}`, epoch })
const person = (id: string): LockHolder => ({ kind: 'Person', id, who: 'ada@host', info: { ID: id } })
const fence = (minEpoch: number, maxSeenEpoch: number) => ({ minEpoch, maxSeenEpoch })
const grant = (next: { minEpoch: number; maxSeenEpoch: number }, again = false) => ({ kind: 'grant', again, fence: next })

for (const { name, at, held, claim, want } of [
  { name: 'a free lock goes to a run and raises the fence', at: fence(2, 2), held: undefined, claim: run(5), want: grant(fence(5, 5)) },
  { name: 'the same run may ask again', at: fence(5, 5), held: run(5), claim: run(5), want: grant(fence(5, 5), true) },
  { name: 'an older run is stale, held or not', at: fence(5, 5), held: undefined, claim: run(4), want: { kind: 'stale', minEpoch: 5 } },
  { name: 'a newer run waits for the holder', at: fence(5, 5), held: run(5), claim: run(6), want: { kind: 'held', holder: run(5) } },
  { name: 'a person waits for a run', at: fence(5, 5), held: run(5), claim: person('a'), want: { kind: 'held', holder: run(5) } },
  { name: 'a run waits for a person', at: fence(6, 5), held: person('a'), claim: run(6), want: { kind: 'held', holder: person('a') } },
  { name: 'a person fences every run seen so far', at: fence(5, 5), held: undefined, claim: person('a'), want: grant(fence(6, 5)) },
  {
    name: 'a second person does not shut the next run out',
    at: fence(6, 5),
    held: undefined,
    claim: person('b'),
    want: grant(fence(6, 5)),
  },
  { name: 'the next run comes after the person', at: fence(6, 5), held: undefined, claim: run(6), want: grant(fence(6, 6)) },
  { name: 'the run before the person does not', at: fence(6, 5), held: undefined, claim: run(5), want: { kind: 'stale', minEpoch: 6 } },
  {
    name: 'people are told apart by lock id',
    at: fence(1, 0),
    held: person('a'),
    claim: person('b'),
    want: { kind: 'held', holder: person('a') },
  },
]) {
  test(`lock (invariants 3, 4): ${name}`, () => deepStrictEqual(decideLock(at, held, claim), want))
}

for (const { name, held, claim, want } of [
  { name: 'the holder releases', held: run(5), claim: { kind: 'Run' as const, runName: 'net-ab-5', epoch: 5 }, want: { kind: 'release' } },
  { name: 'a repeated unlock finds it free', held: undefined, claim: { kind: 'Person' as const, id: 'a' }, want: { kind: 'free' } },
  {
    name: 'another lock id does not release',
    held: person('a'),
    claim: { kind: 'Person' as const, id: 'b' },
    want: { kind: 'held', holder: person('a') },
  },
  {
    name: 'an old run does not release a newer one',
    held: run(6),
    claim: { kind: 'Run' as const, runName: 'net-ab-5', epoch: 5 },
    want: { kind: 'held', holder: run(6) },
  },
  {
    name: 'a person does not release a run',
    held: run(6),
    claim: { kind: 'Person' as const, id: 'oarlock-run-net-ab-6' },
    want: { kind: 'held', holder: run(6) },
  },
]) {
  test(`unlock: ${name}`, () => deepStrictEqual(decideUnlock(held, claim), want))
}
