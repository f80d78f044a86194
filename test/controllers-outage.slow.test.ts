/** `oarlock controller` while the API server is away for longer than its Leases: the same processes continue when it is back. */
import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fetch } from 'undici'
import { type StackSpec, stackShardsName, systemNamespace, workerPoolResource } from '../src/api/index.ts'
import { isAtRest, readShards } from '../src/kubernetes/controller/index.ts'
import { objectKey } from '../src/kubernetes/object/index.ts'
import { eventually } from './support/eventually.ts'
import { freePorts } from './support/free-ports.ts'
import { makeDataDir, removeDirectory } from './support/oarlock-process.ts'
import { controllerArgs, type RoleProcess, RoleProcesses, startApiRole } from './support/role-process.ts'
import { ScriptedWorkers, succeeds } from './support/scripted-workers.ts'
import { isReady, StackFixture } from './support/stacks.ts'

/** The shortest that is allowed: it is lost 2 s after its last renewal. */
const leaseArgs = ['--lease-duration', '3s']
const outageMs = 8_000
const stacks = 12

const countOf = (role: RoleProcess, pattern: RegExp) => role.output().match(pattern)?.length ?? 0
/** What a kubelet asks: it restarts the container of a process that does not answer. */
const livez = async (role: RoleProcess) => (await fetch(`${role.printed('health')}/livez`)).status

for (const { name, processes, shardArgs, leading } of [
  { name: 'the only controller', processes: 1, shardArgs: [], leading: /^leading: running the controllers$/gm },
  { name: 'three controllers, one of which leads,', processes: 3, shardArgs: [], leading: /^leading: running the controllers$/gm },
  { name: 'two controllers with --shards 2', processes: 2, shardArgs: ['--shards', '2'], leading: /^leading: running dispatch$/gm },
])
  test(`${name} survives an API server that is away for longer than its Leases, and works on every Stack when it is back`, async t => {
    const base = makeDataDir()
    const roles = new RoleProcesses(base)
    t.after(async () => {
      await roles.stopAll()
      removeDirectory(base)
    })
    const [port = 0] = await freePorts(1)
    const { api, client, restart } = await startApiRole(roles, `127.0.0.1:${port}`)
    t.after(() => client.close())
    const kubeconfig = readFileSync(join(api.directory, 'kubeconfig'), 'utf8')
    const pool = await client.resource(workerPoolResource).create({ metadata: { name: 'scripted' }, spec: { mode: 'External' } })
    const fixture = new StackFixture(client)
    const spec: StackSpec = { engine: 'command', source: { inline: { files: { a: '' } } }, command: { apply: ['true'] }, pool: 'scripted' }
    const controllers: RoleProcess[] = []
    for (let index = 0; index < processes; index++) {
      const file = roles.file(`controller-${index}`, 'kubeconfig', kubeconfig)
      const args = [...controllerArgs, ...leaseArgs, ...shardArgs, '--kubeconfig', file, '--data', '.']
      controllers.push(await roles.start(`controller-${index}`, args, /^ready: /m))
    }
    const isShared = async () =>
      isAtRest(await readShards(client, { name: stackShardsName, namespace: systemNamespace }), processes) || undefined
    if (shardArgs.length > 0) await eventually(isShared, 'each process to have a share', 60_000)
    for (let index = 0; index < stacks; index++) await fixture.create(`before-${index}`, spec)
    const queued = async () => (await Promise.all(names('before').map(each => fixture.runsOf(each)))).every(runs => runs.length === 1)
    await eventually(queued, 'a Run of each Stack', 30_000)
    const leader = (await eventually(async () => controllers.find(each => countOf(each, leading) === 1), 'one of them to lead'))!

    await api.stop('SIGKILL')
    const endMs = performance.now() + outageMs
    const statuses = new Set<number>()
    while (performance.now() < endMs) {
      for (const each of controllers) statuses.add(await livez(each))
      await sleep(100)
    }
    match(leader.output(), /^lost the Lease: (the controllers|dispatch) stopped, contending again$/m)
    deepEqual([...statuses], [200])
    await restart()

    await eventually(
      () => controllers.some(each => countOf(each, leading) > (each === leader ? 1 : 0)),
      'one of them to lead again',
      30_000,
    )
    if (shardArgs.length > 0) await eventually(isShared, 'each process to have a share again', 60_000)
    // Each executes one Run.
    const all = [...names('before'), ...names('after')]
    // Those of the last Runs wait for longer than a Lease on a busy machine.
    const workers = new ScriptedWorkers(client, 2_000)
    t.after(() => workers.close())
    workers.script = () => succeeds()
    for (const each of all) await workers.start(pool, `w-${each}`)
    for (let index = 0; index < stacks; index++) await fixture.create(`after-${index}`, spec)
    await Promise.all(all.map(each => fixture.until(each, 'Ready', isReady, 60_000)))
    const accepted = workers.accepted.map(objectKey)
    deepEqual([accepted.length, new Set(accepted).size], [all.length, all.length], 'each Run was executed once')
    for (const each of controllers) {
      equal(each.child.exitCode, null, each.output())
      ok(countOf(each, leading) <= 2)
      equal(await each.stop(), 0)
    }
  })

const names = (prefix: string) => Array.from({ length: stacks }, (_, index) => `${prefix}-${index}`)
