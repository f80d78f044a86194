import { equal } from 'node:assert/strict'
import { test } from 'node:test'
import { decideRing, type RingFacts, type Slot } from './decide-ring.ts'
import { noReport } from './member-report.ts'
import { type Ring, unknownRing, unknownSlot } from './ring.ts'

test('after a lost ring a bucket waits for the member whose Lease was deleted before it acknowledged the new ring', () => {
  const slotOf = (slot: number): Slot => ({
    uid: `u${slot}`,
    session: `m${slot}.1`,
    report: { ...noReport, ring: 'r', stopped: 1, prepared: 1 },
  })
  const members = new Map([0, 1].map(slot => [slot, { session: `m${slot}.1`, uid: `u${slot}`, since: 1 }]))
  const ring: Ring = { ...unknownRing(1), members }
  const holderAfter = (facts: Partial<RingFacts>) =>
    decideRing({ ringUid: 'r', ring, knownVersion: 1, slots: new Map([[0, slotOf(0)]]), hasEnded: () => false, ...facts })?.holders[0]
  equal(holderAfter({}), unknownSlot)
  equal(holderAfter({ hasEnded: () => true }), 0)
  equal(holderAfter({ slots: new Map([0, 1].map(slot => [slot, slotOf(slot)])) })! >= 0, true)
})
