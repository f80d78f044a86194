/** The same ledger for the three locks of managed resources: replicas as processes are killed and paused while they create (issue 17). */
import { deepEqual, ok } from 'node:assert/strict'
import { describe, test } from 'node:test'
import { bucketResource } from '../src/controllers/managed/fake-cloud.testing.ts'
import { startTestServer } from '../src/kubernetes/testing/index.ts'
import { type LockName, lockNames, ManagedFleet } from './support/managed/fleet.ts'
import { judgeDuplicates } from './support/managed/judge-duplicates.ts'

const leaseMs = 2_000
const settings = { leaseMs, slots: 2, latencyMs: 60, pollIntervalMs: 1_000, maxConcurrent: 4 }
const names = Array.from({ length: 40 }, (_, index) => `b${index}`)

for (const lock of lockNames) {
  for (const isDeterministic of [true, false]) {
    describe(`lock ${lock}, names ${isDeterministic ? 'known before' : 'assigned by the external system'}`, () => {
      test('a replica that is killed while it creates leaves no duplicate, and every creation in flight is reported (guarantees 2 and 3)', async () => {
        const { inFlight, duplicates, incomplete, unaccounted } = await withFleet(lock, isDeterministic, async (fleet, index) => {
          const inFlight = await fleet.kill(index)
          await fleet.settle()
          return { inFlight, ...(await fleet.judge([])) }
        })
        deepEqual({ duplicates, unaccounted }, { duplicates: { total: 0, begunBefore: 0, forbidden: [] }, unaccounted: [] })
        ok(inFlight.length > 0, 'it was killed while it created')
        if (isDeterministic) deepEqual(incomplete, [])
        else {
          const silent = inFlight.filter(name => !incomplete.includes(name))
          deepEqual(silent, [], 'no other process knows the result')
          // The other ones were marked, and their call had not arrived, or its answer was not written yet.
          ok(incomplete.length <= settings.maxConcurrent, `incomplete: ${incomplete}`)
        }
      })

      test('a replica that is paused while it creates makes at most the calls that it had begun (guarantee 3)', async () => {
        const { duplicates, incomplete, unaccounted } = await withFleet(lock, isDeterministic, async (fleet, index) => {
          const pause = await fleet.pause(index, leaseMs + 1_500)
          await fleet.settle()
          return await fleet.judge([pause])
        })
        deepEqual({ forbidden: duplicates.forbidden, unaccounted }, { forbidden: [], unaccounted: [] })
        if (isDeterministic) deepEqual(incomplete, [])
        else ok(incomplete.length <= settings.maxConcurrent, `incomplete: ${incomplete}`)
      })
    })
  }
}

/** Calls `fault` with the index of a member whose creation is in flight. */
async function withFleet<T>(
  lock: LockName,
  isDeterministic: boolean,
  fault: (fleet: ManagedFleet, index: number) => Promise<T>,
): Promise<T> {
  await using api = await startTestServer({ kinds: [bucketResource] })
  const fleet = await ManagedFleet.start(api.client, api.kubeconfigPath, { ...settings, lock, isDeterministic })
  try {
    await fleet.add()
    await fleet.add()
    const [result] = await Promise.all([fleet.untilCreating(4).then(index => fault(fleet, index)), fleet.create(names)])
    return result
  } finally {
    await fleet.close()
  }
}

describe('judgeDuplicates', () => {
  const pause = { member: 'm1', fromMs: 100, toMs: 200 }
  const late = { name: 'a', id: 'late', member: 'm1', begunMs: 99, receivedMs: 201, observedMs: 90 }
  const other = { name: 'a', id: 'other', member: 'm2', begunMs: 160, receivedMs: 161, observedMs: 155 }
  const judge = (...creations: (typeof late)[]) =>
    judgeDuplicates(
      Map.groupBy(creations, ({ name }) => name),
      [pause],
      1,
    )

  test('permits the call that a replica had begun before its pause, whichever arrives first', () => {
    deepEqual(judge(other, late), { total: 1, begunBefore: 1, forbidden: [] })
    deepEqual(judge(late, { ...other, observedMs: 199, begunMs: 202, receivedMs: 203 }), { total: 1, begunBefore: 1, forbidden: [] })
  })

  test('forbids a call that was begun after the pause, however soon', () => {
    deepEqual(judge(other, { ...late, begunMs: 200.1 }), { total: 1, begunBefore: 0, forbidden: ['a'] })
  })

  test('forbids a second creation beside the one that is permitted', () => {
    deepEqual(judge(other, late, { ...late, begunMs: 201 }).forbidden, ['a'])
    deepEqual(judge(other, late, late).forbidden, ['a'])
    deepEqual(judge(late, late).forbidden, ['a'])
  })

  test('forbids a creation by a replica that looked when the late call had arrived, or that did not look', () => {
    deepEqual(judge(late, { ...other, observedMs: 202, receivedMs: 203 }).forbidden, ['a'])
  })

  test('forbids more calls of one pause than a replica has at the same time', () => {
    deepEqual(judge(other, late, { ...other, name: 'b' }, { ...late, name: 'b' }), { total: 2, begunBefore: 2, forbidden: ['b'] })
  })
})
