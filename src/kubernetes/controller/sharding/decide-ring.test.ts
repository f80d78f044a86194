import { deepEqual, equal } from 'node:assert/strict'
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
    decideRing({ ringUid: 'r', ring, knownVersion: 1, slots: new Map([[0, slotOf(0)]]), slotCount: 2, hasEnded: () => false, ...facts })
      ?.holders[0]
  equal(holderAfter({}), unknownSlot)
  equal(holderAfter({ hasEnded: () => true }), 0)
  equal(holderAfter({ slots: new Map([0, 1].map(slot => [slot, slotOf(slot)])) })! >= 0, true)
})

const settled = { ringUid: 'r', knownVersion: 0, slotCount: 2, hasEnded: () => false }
const slotWith = (name: string, report = noReport): Slot => ({ uid: `u-${name}`, session: `${name}.1`, report })

test('a slot beyond those of the settings gets no new member, and one that is a member stays until it has ended', () => {
  const slots = new Map([0, 1, 2, 40].map(slot => [slot, slotWith(`m${slot}`)]))
  deepEqual([...decideRing({ ...settled, ring: undefined, slots })!.members.keys()], [0, 1])
  const member = { session: 'm2.1', uid: 'u-m2', since: 1 }
  const ring: Ring = { ...unknownRing(1), members: new Map([[2, member]]) }
  deepEqual([...decideRing({ ...settled, ring, slots })!.members.keys()].sort(), [0, 1, 2])
})

test('versions start again at 1 after the highest one, and what was acknowledged before does not count', () => {
  const highest = 2 ** 31 - 2
  const acknowledged = slotWith('m0', { ...noReport, ring: 'r', stopped: highest, prepared: highest })
  const slots = new Map([[0, acknowledged]])
  const ring = { ...unknownRing(highest), members: new Map([[0, { session: 'm0.1', uid: 'u-m0', since: 1 }]]) }
  const first = decideRing({ ...settled, ring, slots })!
  deepEqual([first.version, first.members.get(0)?.since, first.holders[0]], [1, 1, unknownSlot])
  equal(decideRing({ ...settled, ring: first, slots }), undefined)
  const again = slotWith('m0', { ...noReport, ring: 'r', stopped: 1, prepared: 1 })
  equal(decideRing({ ...settled, ring: first, slots: new Map([[0, again]]) })?.holders[0], 0)
  // A report can name such a version, too, and then the ring is lost.
  equal(decideRing({ ...settled, ring: undefined, knownVersion: highest, slots })?.version, 1)
})

test('after a lost ring a bucket waits for each member that is busy with it', () => {
  const report = { ...noReport, ring: 'r', stopped: 1, prepared: 1 }
  const members = new Map([0, 1].map(slot => [slot, { session: `m${slot}.1`, uid: `u-m${slot}`, since: 1 }]))
  const ring: Ring = { ...unknownRing(1), members }
  const slots = new Map([
    [0, slotWith('m0', report)],
    [1, slotWith('m1', { ...report, busy: [7] })],
  ])
  const next = decideRing({ ...settled, ring, slots })!
  deepEqual([next.holders[7], next.holders[6]! >= 0], [unknownSlot, true])
})
