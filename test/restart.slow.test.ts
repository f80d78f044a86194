/**
 * `oarlock up` ends during applies, by SIGTERM or SIGKILL, and is started again: every Stack becomes Ready, no step is repeated that had
 * finished, and no lock and no process remains (invariants 1 to 5).
 */
import { deepEqual, equal, ok } from 'node:assert/strict'
import { mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type StackSpec, workerPoolResource } from '../src/api/index.ts'
import { findOrphanWorkers } from '../src/app/process-pool/orphan-workers.ts'
import { eventually } from './support/eventually.ts'
import { countDone, readLedger, record } from './support/ledger.ts'
import { makeDataDir, type OarlockProcess, removeDirectory, startOarlock } from './support/oarlock-process.ts'
import { processesOfRun } from './support/processes.ts'
import { skipWithoutTerraformEngine, terraformEngine } from './support/run-program.ts'
import { StackFixture } from './support/stacks.ts'

const steps = 5
const secondsPerStep = 0.8
const settings = ['--max-workers', '5']

/** Three Stacks that take a few seconds, and one that depends on one of them. */
function fleet(ledger: string): Record<string, StackSpec> {
  const item = (stack: string, step: number) => `${stack}-${step}`
  const resources = (stack: string) =>
    Array.from(
      { length: steps },
      (_, step) => `
        resource "terraform_data" "r${step}" {
          ${step > 0 ? `depends_on = [terraform_data.r${step - 1}]` : ''}
          provisioner "local-exec" {
            command = "${record(ledger, 'begin', item(stack, step))}; sleep ${secondsPerStep}; ${record(ledger, 'done', item(stack, step))}"
          }
        }`,
    ).join('')
  // The script records its finished steps, so that it can be repeated.
  const script = Array.from({ length: steps }, (_, step) => {
    const name = item('script', step)
    return `grep -q "done ${name} " ${ledger} || { ${record(ledger, 'begin', name)}; sleep ${secondsPerStep}; ${record(ledger, 'done', name)}; }`
  }).join('\n')
  const source = (files: Record<string, string>) => ({ inline: { files } })
  return {
    tf: { engine: terraformEngine, source: source({ 'main.tf': resources('tf') }) },
    tf2: { engine: terraformEngine, source: source({ 'main.tf': resources('tf2') }) },
    script: { engine: 'command', source: source({ 'apply.sh': script }), command: { apply: ['sh', 'apply.sh'] } },
    after: {
      engine: 'command',
      source: source({ 'apply.sh': `${record(ledger, 'begin', 'after')}; ${record(ledger, 'done', 'after')}` }),
      command: { apply: ['sh', 'apply.sh'] },
      dependsOn: [{ name: 'script' }],
    },
  }
}

const areApplying = (ledger: string, stacks: readonly string[]) =>
  stacks.every(stack => readLedger(ledger).some(({ what, item }) => what === 'done' && item === `${stack}-0`))

type RestartCase = {
  name: string
  args?: string[]
  end: (oarlock: OarlockProcess) => Promise<unknown>
  /** Time between the end and the next start. */
  pauseMs: number
  /** True when a step that was in progress may be started again; depends on the time until the next process was up. */
  mayRestartSteps: (gapMs: number) => boolean
}
const restartCases: RestartCase[] = [
  { name: 'SIGTERM waits for the Runs', end: async oarlock => equal(await oarlock.stop(), 0), pauseMs: 0, mayRestartSteps: () => false },
  {
    name: 'SIGTERM with a grace period that is too short',
    args: ['--grace', '200ms'],
    end: async oarlock => equal(await oarlock.stop(), 0),
    pauseMs: 0,
    mayRestartSteps: () => true,
  },
  {
    name: 'SIGKILL and an immediate start: the workers continue',
    end: oarlock => oarlock.kill(),
    pauseMs: 0,
    // If the start takes longer than a Lease on a busy machine, the workers must stop (invariant 2).
    mayRestartSteps: gapMs => gapMs > 4_000,
  },
  {
    name: 'SIGKILL and a start after the Leases have expired',
    end: oarlock => oarlock.kill(),
    pauseMs: 12_000,
    mayRestartSteps: () => true,
  },
]

test('a worker that had not registered when oarlock was killed counts against the maximum of the pool', async t => {
  const dataDir = makeDataDir()
  const workers = () => findOrphanWorkers(join(dataDir, 'workers'))
  let oarlock = await startOarlock(dataDir, ['--max-workers', '1'])
  t.after(async () => {
    for (const { pid } of workers()) process.kill(pid, 'SIGCONT')
    await oarlock.stop()
    removeDirectory(dataDir)
  })
  const source = { inline: { files: { a: '' } } }
  await new StackFixture(oarlock.client).create('one', { engine: 'command', source, command: { apply: ['true'] } })
  const [child] = await eventually(() => workers().length > 0 && workers(), 'a worker to be started')
  process.kill(child!.pid, 'SIGSTOP')
  await oarlock.kill()
  oarlock = await startOarlock(dataDir, ['--max-workers', '1'])
  const stacks = new StackFixture(oarlock.client)
  const pool = async () => (await oarlock.client.resource(workerPoolResource).get('default')).status
  const isCounted = (status: Awaited<ReturnType<typeof pool>>) => (status?.starting ?? 0) + (status?.workers ?? 0) === 1
  await eventually(async () => isCounted(await pool()), 'the pool to report one worker')
  deepEqual(workers(), [child])
  process.kill(child!.pid, 'SIGCONT')
  await stacks.untilReady('one')
  equal((await stacks.runsOf('one'))[0]?.spec.workerName, child!.name)
})

describe('a restart during applies', { skip: skipWithoutTerraformEngine, concurrency: true }, () => {
  for (const { name, args = [], end, pauseMs, mayRestartSteps } of restartCases) {
    test(name, async () => {
      const dataDir = makeDataDir()
      mkdirSync(join(dataDir, 'work'))
      const ledger = join(dataDir, 'work', 'ledger')
      const stacks = fleet(ledger)
      const first = await startOarlock(dataDir, [...settings, ...args])
      const before = new StackFixture(first.client)
      for (const [stack, spec] of Object.entries(stacks)) await before.create(stack, spec)
      const long = Object.keys(stacks).filter(stack => stack !== 'after')
      await eventually(() => areApplying(ledger, long), 'the first step of every long Stack', 60_000)
      const running = (await before.runs.listAll()).items
      const endedAtMs = Date.now()
      await end(first)
      await sleep(pauseMs) // Real time: without a server no process could report that a Lease has expired.
      if (pauseMs > 0) {
        // Invariant 2: the workers and their engines ended, because no one renews their Leases.
        for (const { metadata } of running) deepEqual(processesOfRun(metadata.uid), [], `processes of ${metadata.name} outlive its Lease`)
      }

      const second = await startOarlock(dataDir, settings)
      const gapMs = Date.now() - endedAtMs
      try {
        const stacksAfter = new StackFixture(second.client)
        for (const stack of Object.keys(stacks)) await stacksAfter.until(stack, 'Ready', now => now.status?.applied !== undefined, 60_000)
        const lines = readLedger(ledger)
        deepEqual(
          Object.entries(countDone(lines)).filter(([, times]) => times !== 1),
          [],
          'a finished step was repeated',
        )
        equal(Object.keys(countDone(lines)).length, long.length * steps + 1)
        const started = lines.filter(({ what }) => what === 'begin')
        if (!mayRestartSteps(gapMs)) equal(started.length, long.length * steps + 1, 'a step was started again')
        // At most the step in progress of each Stack is started again.
        ok(started.length <= long.length * (steps + 1) + 1, `${started.length} started`)

        const runs = (await stacksAfter.runs.listAll()).items
        const formatRuns = () => runs.map(({ metadata, status }) => `${metadata.name} ${status?.phase} ${status?.reason ?? ''}`).join(', ')
        if (!mayRestartSteps(gapMs)) equal(runs.length, Object.keys(stacks).length, `one Run each after ${gapMs} ms, got ${formatRuns()}`)
        for (const run of runs) deepEqual(processesOfRun(run.metadata.uid), [], `processes of ${run.metadata.name} remain`)
        for (const stack of Object.keys(stacks)) {
          const response = await second.client.request({ method: 'GET', path: `/state/default/${stack}/lock` })
          deepEqual(await response.json(), {}, `the lock of ${stack} remains`)
        }
        await eventually(() => readdirSync(join(dataDir, 'runs')).length === 0, 'the deletion of the Run directories')
        console.log(
          `# ${name}: all Ready ${((Date.now() - endedAtMs) / 1_000).toFixed(1)} s after the end, ${runs.length} Runs, ${gapMs} ms until the next process was up`,
        )
      } finally {
        equal(await second.stop(), 0)
        removeDirectory(dataDir)
      }
    })
  }
})
