/** The same ledger for the three locks of managed resources: replicas as processes are killed and paused while they create (issue 17). */
import { deepEqual, equal, ok } from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { bucketResource } from '../src/controllers/managed/fake-cloud.testing.ts'
import { startTestServer } from '../src/kubernetes/testing/index.ts'
import { eventually } from './support/eventually.ts'
import { lockNames, ManagedFleet, type Pause } from './support/managed/fleet.ts'

const leaseMs = 2_000
const settings = { leaseMs, slots: 2, latencyMs: 60, pollIntervalMs: 1_000, maxConcurrent: 4 }
const names = Array.from({ length: 40 }, (_, index) => `b${index}`)

for (const lock of lockNames) {
  for (const isDeterministic of [true, false]) {
    describe(`lock ${lock}, names ${isDeterministic ? 'known before' : 'assigned by the external system'}`, () => {
      test('a replica that is killed while it creates leaves no duplicate, and nothing hidden', async () => {
        const verdict = await withFleet(lock, isDeterministic, async fleet => {
          await fleet.kill(0)
          return []
        })
        equal(verdict.duplicates, 0)
        deepEqual(verdict.hidden, [])
        if (isDeterministic) deepEqual(verdict.incomplete, [])
        else ok(verdict.incomplete.length <= settings.maxConcurrent)
      })

      test('a replica that is paused while it creates makes at most the call that it had begun', async () => {
        const verdict = await withFleet(lock, isDeterministic, async fleet => [await fleet.pause(0, leaseMs + 1_500)])
        equal(verdict.duplicates - verdict.begunBefore, 0)
        deepEqual(verdict.hidden, [])
      })
    })
  }
}

async function withFleet(lock: (typeof lockNames)[number], isDeterministic: boolean, fault: (fleet: ManagedFleet) => Promise<Pause[]>) {
  await using api = await startTestServer({ kinds: [bucketResource] })
  const fleet = await ManagedFleet.start(api.client, api.kubeconfigPath, { ...settings, lock, isDeterministic })
  try {
    await fleet.add()
    await fleet.add()
    await fleet.create(names)
    await eventually(() => fleet.cloud.creations.length >= 4, 'the first creations', 60_000)
    const pauses = await fault(fleet)
    await eventually(() => fleet.isSettled(), 'every resource to be ready, or to report its reason', 60_000)
    // What a paused replica had begun arrives by now.
    await sleep(300)
    return await fleet.judge(pauses)
  } finally {
    await fleet.close()
  }
}
