/** `oarlock up --worker-lease-duration`: a restart that takes longer than the default allows interrupts no Run. */
import { deepEqual, equal, ok } from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { systemNamespace } from '../src/api/index.ts'
import { leaseResource } from '../src/kubernetes/client/index.ts'
import { eventually } from './support/eventually.ts'
import { makeDataDir, removeDirectory, startOarlock } from './support/oarlock-process.ts'
import { processesOfRun } from './support/processes.ts'
import { StackFixture } from './support/stacks.ts'

/** By default, workers interrupt their engines after 6 s. */
const downMs = 7_500

test('workers continue while oarlock up is down, and a next one with the default waits for them (invariant 2)', async () => {
  const dataDir = makeDataDir()
  const finish = join(dataDir, 'finish')
  let oarlock = await startOarlock(dataDir, ['--worker-lease-duration', '1m'])
  try {
    const stacks = new StackFixture(oarlock.client)
    await stacks.create('patient', {
      engine: 'command',
      source: { inline: { files: { 'run.sh': '' } } },
      command: { apply: ['sh', '-c', `while [ ! -e ${finish} ]; do sleep 0.1; done`] },
    })
    const run = await eventually(async () => {
      const [first] = await stacks.runsOf('patient')
      return first && processesOfRun(first.metadata.uid).length > 0 && first
    }, 'the engine to run')
    const { workerName = '' } = run.spec
    const lease = await oarlock.client.resource(leaseResource).get(workerName, { namespace: systemNamespace })
    equal(lease.spec?.leaseDurationSeconds, 60)

    await oarlock.kill()
    // Nothing happens meanwhile: that is the point.
    await sleep(downMs)
    ok(processesOfRun(run.metadata.uid).length > 0, 'the engine was interrupted')
    oarlock = await startOarlock(dataDir)
    const restarted = new StackFixture(oarlock.client)
    writeFileSync(finish, '')
    await restarted.untilReady('patient')
    const runs = await restarted.runsOf('patient')
    deepEqual(
      runs.map(({ metadata, status }) => [metadata.uid, status?.phase]),
      [[run.metadata.uid, 'Succeeded']],
    )
  } finally {
    writeFileSync(finish, '')
    await oarlock.stop()
    removeDirectory(dataDir)
  }
})
