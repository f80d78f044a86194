/** `oarlock serve`, three `oarlock controller --shards 3`, hollow workers; the process that leads dispatch is killed during a burst of changes. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  isEnded,
  runResource,
  type Stack,
  stackResource,
  stackShardsName,
  systemNamespace,
  workerPoolResource,
  workerResource,
} from '../../src/api/index.ts'
import { installOarlock } from '../../src/app/controllers/install.ts'
import { type Client, createClient, leaseResource } from '../../src/kubernetes/client/index.ts'
import { bucketLabel, bucketOf, isAtRest, Manager, readShards, silentLog } from '../../src/kubernetes/controller/index.ts'
import { objectKey } from '../../src/kubernetes/index.ts'
import { controllerArgs, type RoleProcess, RoleProcesses } from '../../test/support/role-process.ts'
import { isReady } from '../../test/support/stacks.ts'
import { inDirectory } from '../faults/chain.ts'
import { startHollow } from '../leases.ts'
import { each } from './replicas.ts'

const controllers = 3
const workers = 200
const leaseSeconds = 15
const namespace = 'default'
const stackName = (index: number) => `s${String(index).padStart(4, '0')}`

export async function stacks(options: { stacks: number; times: number }): Promise<Record<string, string | number>[]> {
  return await inDirectory(async base => {
    const roles = new RoleProcesses(base)
    const api = await roles.start('api', ['serve', '--data', '.', '--listen', '127.0.0.1:0'], /kubeconfig/)
    const kubeconfigPath = join(api.directory, 'kubeconfig')
    const client = await createClient({ kubeconfig: kubeconfigPath, connections: 2 })
    const manager = new Manager({ client, log: silentLog })
    const ledger = new RunLedger(manager)
    const running = new Controllers(roles, kubeconfigPath)
    try {
      await installOarlock(client)
      await client
        .resource(workerPoolResource)
        .create({ metadata: { name: 'hollow' }, spec: { mode: 'External', lifecycle: 'Warm', max: workers } })
      await manager.start()
      for (let index = 0; index < controllers; index++) await running.start()
      await untilShared(client)
      const hollow = startHollow([
        '--kubeconfig',
        kubeconfigPath,
        '--workers',
        String(workers),
        '--duration',
        '60m',
        '--connections',
        '2',
        '-o',
        'json',
      ])
      await until(
        async () => (await client.resource(workerResource).listAll()).items.length >= workers,
        'the workers to be registered',
        120_000,
      )
      const rows = []
      for (let time = 0; time < options.times; time++) rows.push(await burst(client, ledger, running, options.stacks, time))
      process.kill(hollow.pid, 'SIGTERM')
      await hollow.ended.catch(() => undefined)
      return rows
    } finally {
      running.isEnding = true
      await manager.stop()
      await client.close()
      await roles.stopAll()
    }
  })
}

async function burst(
  client: Client,
  ledger: RunLedger,
  running: Controllers,
  count: number,
  time: number,
): Promise<Record<string, string | number>> {
  const handle = client.resource(stackResource)
  const spec = { engine: 'command', command: { apply: ['true'] }, pool: 'hollow' } as const
  const change = async (revision: string) => {
    const source = { inline: { files: { a: revision } } }
    await each(count, async index => {
      const name = stackName(index)
      if (revision === 'first')
        await handle.create({ metadata: { name, namespace }, spec: { ...spec, command: { apply: ['true'] }, source } })
      else await handle.patch(name, { spec: { source } }, { type: 'merge', namespace })
    })
  }
  if (time === 0) {
    await change('first')
    await untilReady(client, count)
  }
  const beganMs = performance.now()
  const changing = change(`burst ${time}`)
  await sleep(1_000 + Math.random() * 3_000)
  const leaderIdentity =
    (await client.resource(leaseResource).get('oarlock-controller', { namespace: systemNamespace })).spec?.holderIdentity ?? ''
  const killedMs = performance.now()
  await running.kill(leaderIdentity)
  await changing
  const changedMs = performance.now()
  await running.start()
  const notReady = await untilReady(client, count)
  const readyMs = performance.now()
  const { twice, reassigned, unlabeled, runs } = await ledger.judge(client)
  return {
    stacks: count,
    controllers,
    'Lease, s': leaseSeconds,
    'changed in, s': seconds(changedMs - beganMs),
    'killed after, s': seconds(killedMs - beganMs),
    'all Ready after the kill, s': seconds(readyMs - killedMs),
    'controllers that ended otherwise': running.ended,
    'not Ready': notReady,
    'Runs so far': runs,
    'executed twice': twice,
    'given to two workers': reassigned,
    'Runs with another bucket than their Stack': unlabeled,
  }
}

const seconds = (ms: number) => Math.round(ms / 100) / 10

/** The processes of the controllers. One that ends without a signal of this bench, because it could not renew its Lease in time, is replaced, as a Deployment does. */
class Controllers {
  isEnding = false
  ended = 0
  readonly #roles: RoleProcesses
  readonly #kubeconfig: string
  readonly #running = new Set<RoleProcess>()

  constructor(roles: RoleProcesses, kubeconfigPath: string) {
    this.#roles = roles
    this.#kubeconfig = readFileSync(kubeconfigPath, 'utf8')
  }

  async start(): Promise<void> {
    const name = `controller-${crypto.randomUUID().slice(0, 8)}`
    const file = this.#roles.file(name, 'kubeconfig', this.#kubeconfig)
    const args = [...controllerArgs, '--shards', String(controllers), '--lease-duration', `${leaseSeconds}s`, '--no-default-pool']
    const process = await this.#roles.start(name, [...args, '--kubeconfig', file, '--data', '.'], /^ *identity /m)
    this.#running.add(process)
    const replace = () => {
      if (this.isEnding || !this.#running.delete(process)) return
      this.ended++
      globalThis.process.stderr.write(`\na controller has ended: ${process.output().trim().split('\n').at(-1)}\n`)
      void this.start()
    }
    process.child.once('exit', replace)
    if (process.child.exitCode !== null) replace()
  }

  async kill(identity: string): Promise<void> {
    const found = [...this.#running].find(each => each.printed('identity') === identity)
    if (!found) throw new Error(`no controller has the identity ${identity} of the leader`)
    this.#running.delete(found)
    await found.stop('SIGKILL')
  }
}

async function untilShared(client: Client): Promise<void> {
  await until(
    async () => isAtRest(await readShards(client, { name: stackShardsName, namespace: systemNamespace }), controllers),
    'the Stacks to be shared',
    60_000,
  )
}

/** How many Stacks are not Ready after ten minutes, or 0 as soon as all are. */
async function untilReady(client: Client, count: number): Promise<number> {
  const endMs = performance.now() + 600_000
  for (;;) {
    const { items } = await client.resource(stackResource).listAll({ namespace })
    const ready = (items as Stack[]).filter(isReady).length
    process.stderr.write(`\r${ready}/${count} Ready `)
    if (ready >= count || performance.now() > endMs) return count - ready
    await sleep(1_000)
  }
}

async function until(holds: () => Promise<boolean>, what: string, timeoutMs: number): Promise<void> {
  const endMs = performance.now() + timeoutMs
  while (!(await holds())) {
    if (performance.now() > endMs) throw new Error(`timed out after ${timeoutMs} ms waiting for ${what}`)
    await sleep(200)
  }
}

/** Every Run that there was, by an independent watch: also those that were deleted as old. */
class RunLedger {
  readonly #workersOf = new Map<string, Set<string>>()
  /** By Stack and generation: the Runs that succeeded. */
  readonly #succeeded = new Map<string, Set<string>>()
  #unlabeled = 0

  constructor(manager: Manager) {
    const see = (run: {
      metadata: { uid: string; labels?: Record<string, string> | undefined; name: string }
      spec: unknown
      status?: unknown
    }) => {
      const { spec, status } = run as unknown as import('../../src/api/index.ts').Run
      if (spec.workerName) add(this.#workersOf, run.metadata.uid, spec.workerName)
      if (status?.phase === 'Succeeded' && spec.type === 'Apply')
        add(this.#succeeded, `${spec.stackRef.uid} ${spec.stackRef.generation}`, run.metadata.uid)
    }
    manager.informer(runResource).onChange({
      added: run => {
        if (run.metadata.labels?.[bucketLabel] !== String(bucketOf(run.spec.stackRef.uid))) this.#unlabeled++
        see(run)
      },
      updated: (_, run) => see(run),
    })
  }

  async judge(client: Client) {
    const { items } = await client.resource(runResource).listAll({ namespace })
    const active = items.filter(run => !isEnded(run)).map(objectKey)
    if (active.length > 0) process.stderr.write(`still active: ${active.slice(0, 5).join(', ')}\n`)
    const many = (sets: Map<string, Set<string>>) => [...sets.values()].filter(set => set.size > 1).length
    return { twice: many(this.#succeeded), reassigned: many(this.#workersOf), unlabeled: this.#unlabeled, runs: this.#workersOf.size }
  }
}

function add(sets: Map<string, Set<string>>, key: string, value: string): void {
  const set = sets.get(key)
  if (set) set.add(value)
  else sets.set(key, new Set([value]))
}
