/** `oarlock up --worker-lease-duration`: a restart that takes longer than the default allows interrupts no Run. */
import { deepEqual, equal, ok } from 'node:assert/strict'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
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
  const [finish, steps, interrupted] = ['finish', 'steps', 'interrupted'].map(name => join(dataDir, name)) as [string, string, string]
  const untilFinished = `trap 'touch ${interrupted}; exit 1' INT TERM; while [ ! -e ${finish} ]; do date +%s%3N >> ${steps}; sleep 0.1; done`
  let oarlock = await startOarlock(dataDir, ['--worker-lease-duration', '1m'])
  try {
    const stacks = new StackFixture(oarlock.client)
    await stacks.create('patient', {
      engine: 'command',
      source: { inline: { files: { 'run.sh': '' } } },
      command: { apply: ['sh', '-c', untilFinished] },
    })
    const run = await eventually(async () => {
      const [first] = await stacks.runsOf('patient')
      return first && existsSync(steps) && processesOfRun(first.metadata.uid).length > 0 && first
    }, 'a first step of the engine')
    const { workerName = '' } = run.spec
    const lease = await oarlock.client.resource(leaseResource).get(workerName, { namespace: systemNamespace })
    equal(lease.spec?.leaseDurationSeconds, 60)

    await oarlock.kill()
    // The engine counts its steps: each one after the default would have interrupted it shows that it continues.
    const killedAtMs = Date.now()
    const stepsUntil = () => readFileSync(steps, 'utf8').trim().split('\n').map(Number)
    await eventually(() => stepsUntil().some(stepMs => stepMs > killedAtMs + downMs), 'a step of the engine after the default', 30_000)
    ok(processesOfRun(run.metadata.uid).length > 0, 'the engine was interrupted')
    ok(!existsSync(interrupted), 'the engine got a signal')
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
