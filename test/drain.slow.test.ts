/** Workers that drain during a real apply, after a signal or `oarlock drain`. */
import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { isEnded, type Run, runResource, stackResource, workerPoolResource, workerResource } from '../src/api/index.ts'
import { eventually } from './support/eventually.ts'
import { makeDataDir, type OarlockProcess, removeDirectory, startOarlock } from './support/oarlock-process.ts'
import { isAlive, processesOfRun } from './support/processes.ts'
import { buildCache, runProgram } from './support/run-program.ts'
import { StackFixture } from './support/stacks.ts'

const tofu = join(buildCache, 'bin')
const mirror = join(buildCache, 'mirror')
const skip =
  existsSync(join(tofu, 'tofu')) && existsSync(mirror) ? false : 'scripts/build-tofu.sh and scripts/build-providers.sh were not run'

/** Resource `first` is created immediately; resource `wait` takes `seconds`. */
const configuration = (seconds: number) => `
terraform {
  required_providers {
    time = { source = "hashicorp/time" }
  }
}
resource "terraform_data" "first" {
  input = "1"
}
resource "time_sleep" "wait" {
  depends_on      = [terraform_data.first]
  create_duration = "${seconds}s"
}
`

describe('a worker that drains during an apply', { skip }, () => {
  let oarlock: OarlockProcess
  let fixture: StackFixture
  const dataDir = makeDataDir()

  before(async () => {
    const config = join(dataDir, 'tofu.rc')
    writeFileSync(config, `provider_installation {\n  filesystem_mirror { path = "${mirror}" }\n}\n`)
    const env = { PATH: `${tofu}:${process.env.PATH}`, TF_CLI_CONFIG_FILE: config }
    oarlock = await startOarlock(dataDir, [], env)
    fixture = new StackFixture(oarlock.client)
    const pools = oarlock.client.resource(workerPoolResource)
    await pools.create({ metadata: { name: 'patient' }, spec: { mode: 'Process', drainGrace: '5m' } })
    await pools.create({ metadata: { name: 'hasty' }, spec: { mode: 'Process', drainGrace: '500ms' } })
  })
  after(async () => {
    await oarlock?.stop()
    removeDirectory(dataDir)
  })

  /** Creates a Stack and waits until its Run has created the first resource. Returns the Run and the pid of its worker. */
  async function applying(name: string, pool: string, seconds: number): Promise<{ run: Run; pid: number }> {
    const source = { inline: { files: { 'main.tf': configuration(seconds) } } }
    await fixture.create(name, { engine: 'opentofu', source, pool, retry: { limit: 1, initial: '1h' } })
    const run = await eventually(
      async () => {
        const { items } = await oarlock.client.resource(runResource).listAll({ namespace: fixture.namespace })
        // The first resource is created and its state is saved; the second is in progress.
        return items.find(({ spec, status }) => spec.stackRef.name === name && status?.phase === 'Applying' && status.progress?.done === 1)
      },
      `${name} to apply`,
      60_000,
    )
    // The Run reports its creations in progress before the worker reports that it is busy.
    const worker = await eventually(
      () => oarlock.client.resource(workerResource).get(run.spec.workerName!),
      ({ status }) => status?.phase === 'Busy',
      30_000,
    )
    // Suspended, because an interrupted Run would be retried immediately and would disturb the other tests.
    await oarlock.client.resource(stackResource).patch(name, { spec: { suspend: true } }, { type: 'merge', namespace: fixture.namespace })
    return { run, pid: worker.status!.pid! }
  }

  const ended = async ({ metadata }: Run): Promise<Run> =>
    await eventually(
      async () => {
        const run = await oarlock.client.resource(runResource).get(metadata.name, { namespace: metadata.namespace })
        return isEnded(run) ? run : undefined
      },
      `${metadata.name} to end`,
      60_000,
    )

  const oarlockCli = (...args: string[]) =>
    runProgram(process.execPath, [join(import.meta.dirname, '..', 'bin', 'oarlock.js'), ...args, '--kubeconfig', oarlock.kubeconfig])

  test('SIGTERM: the apply finishes within the drain grace, then the worker exits', async () => {
    const { run, pid } = await applying('graceful', 'patient', 4)
    process.kill(pid, 'SIGTERM')
    await eventually(
      async () => {
        const worker = await oarlock.client.resource(workerResource).getOrUndefined(run.spec.workerName!)
        return worker?.status?.phase === 'Draining' && worker.status.reason === 'Signal'
      },
      'the worker to drain',
      60_000,
    )
    const { status } = await ended(run)
    deepEqual([status?.phase, status?.resources], ['Succeeded', 2])
    await eventually(async () => !isAlive(pid), 'the process to end', 60_000)
    equal(await oarlock.client.resource(workerResource).getOrUndefined(run.spec.workerName!), undefined)
  })

  test('after the drain grace the engine is interrupted: state is saved, the lock is released and no process remains', async () => {
    const { run, pid } = await applying('beyond', 'hasty', 3_600)
    process.kill(pid, 'SIGTERM')
    const { status } = await ended(run)
    deepEqual([status?.phase, status?.reason, status?.retryable], ['Failed', 'WorkerDrained', true])
    await eventually(async () => !isAlive(pid), 'the process to end', 60_000)
    deepEqual(processesOfRun(run.metadata.uid), [])
    const state = await oarlock.client.request({ method: 'GET', path: `/state/${fixture.namespace}/beyond` })
    match(await state.text(), /"name": ?"first"/)
    // The lock is free: another client may write the state immediately.
    const lock = await oarlock.client
      .request({ method: 'GET', path: `/state/${fixture.namespace}/beyond/lock` })
      .catch((error: unknown) => error)
    ok(!/"runName"/.test(JSON.stringify(lock)), JSON.stringify(lock))
  })

  test('a second SIGTERM interrupts the engine immediately', async () => {
    const { run, pid } = await applying('twice', 'patient', 3_600)
    process.kill(pid, 'SIGTERM')
    await eventually(
      async () => {
        return (await oarlock.client.resource(workerResource).getOrUndefined(run.spec.workerName!))?.status?.phase === 'Draining'
      },
      'the worker to drain',
      60_000,
    )
    process.kill(pid, 'SIGTERM')
    equal((await ended(run)).status?.reason, 'WorkerDrained')
  })

  test('oarlock drain prints active Runs and waits until the worker is deleted', async () => {
    const { run } = await applying('drained', 'patient', 4)
    const name = run.spec.workerName!
    const { code, stdout, stderr } = await oarlockCli('drain', name)
    equal(code, 0, stderr)
    equal(stdout, `worker/${name} draining\nworker/${name} deleted\n`)
    match(stderr, new RegExp(`${name} is finishing ${run.metadata.namespace}/${run.metadata.name}`))
    equal((await ended(run)).status?.phase, 'Succeeded')
    const missing = await oarlockCli('drain', name)
    equal(missing.code, 3)
    match(missing.stderr, new RegExp(`worker "${name}" not found`))
  })

  test('oarlock uncordon cancels a drain that was requested, but not one caused by a signal', async () => {
    const { run, pid } = await applying('uncordoned', 'patient', 8)
    const name = run.spec.workerName!
    equal((await oarlockCli('uncordon', name)).stdout, `worker/${name} is neither cordoned nor draining\n`)
    equal((await oarlockCli('drain', name, '--no-wait')).code, 0)
    const { code, stdout, stderr } = await oarlockCli('uncordon', name)
    equal(code, 0, stderr)
    equal(stdout, `worker/${name} uncordoned\n`)
    match(stderr, /it executes at most one Run in total/)
    equal((await oarlock.client.resource(workerResource).get(name)).status?.phase, 'Busy')
    process.kill(pid, 'SIGTERM')
    equal((await oarlockCli('drain', name, '--no-wait')).code, 0)
    const rejected = await oarlockCli('uncordon', name)
    equal(rejected.code, 4)
    match(rejected.stderr, /it drains for reason Signal/)
    equal((await ended(run)).status?.phase, 'Succeeded')
    equal((await oarlockCli('uncordon', 'missing')).code, 3)
  })

  test('oarlock drain --pool: --timeout ends the wait, not the drain', async () => {
    const { run } = await applying('pooled', 'patient', 6)
    const late = await oarlockCli('drain', '--pool', 'patient', '--timeout', '1s')
    equal(late.code, 6, late.stderr)
    match(late.stderr, /did not exit within 1s/)
    equal((await oarlockCli('drain', '--pool', 'patient')).code, 0)
    equal((await ended(run)).status?.phase, 'Succeeded')
    equal((await oarlockCli('drain', '--pool', 'missing')).code, 3)
  })
})
