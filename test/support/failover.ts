import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { isEnded, type Run, runResource, stackResource, stackShardsName, systemNamespace, workerPoolResource } from '../../src/api/index.ts'
import { installOarlock } from '../../src/app/controllers/install.ts'
import { type Client, leaseResource } from '../../src/kubernetes/client/index.ts'
import { isAtRest, Manager, readShards, type ShardView, silentLog } from '../../src/kubernetes/controller/index.ts'
import { objectKey } from '../../src/kubernetes/object/index.ts'
import { eventually } from './eventually.ts'
import { controllerArgs, type RoleProcess, RoleProcesses } from './role-process.ts'
import { ScriptedWorkers, succeeds } from './scripted-workers.ts'
import { isReady, StackFixture } from './stacks.ts'

export const failoverLeaseMs = 6_000
/** The takeover budget of DESIGN: the Lease and two seconds. */
export const takeoverBudgetMs = failoverLeaseMs + 2_000

export type FailoverOutcome = {
  /** From the signal until another process held the Lease. */
  takeoverMs: number
  /** From the signal until every Stack was Ready. */
  readyMs: number
  /** Runs that were executed more than once, or assigned to more than one worker. */
  duplicates: number
  /** Writes of the previous leader that changed an object after it resumed. */
  lateWrites: number
  /** Exit code of the previous leader after SIGTERM, which it gets after SIGCONT when it contends again. Undefined after SIGKILL. */
  exitCode: number | null | undefined
}

export type FailoverOptions = {
  /** Default: 2. */
  controllers?: number
  /** Whether they share the Stacks, with as many shards as processes. Default: the leader works on all. */
  isSharded?: boolean
}

/**
 * Several `oarlock controller` processes on one API server, and scripted workers. Each trial stops the leader with a signal while Runs are in
 * every phase, and counts what went wrong.
 */
export class Failover {
  readonly #client: Client
  readonly #roles: RoleProcesses
  readonly #kubeconfig: string
  readonly #workers: ScriptedWorkers
  readonly #contenders: RoleProcess[] = []
  /** By key of a Run: every worker that it was assigned to. */
  readonly #assigned = new Map<string, Set<string>>()
  readonly #manager: Manager
  readonly #controllers: number
  readonly #isSharded: boolean
  #count = 0

  private constructor(client: Client, base: string, kubeconfig: string, { controllers = 2, isSharded = false }: FailoverOptions) {
    this.#controllers = controllers
    this.#isSharded = isSharded
    this.#client = client
    this.#roles = new RoleProcesses(base)
    this.#kubeconfig = kubeconfig
    this.#workers = new ScriptedWorkers(client, 2_000)
    this.#manager = new Manager({ client, log: silentLog })
    this.#manager.informer(runResource).onChange({
      added: run => this.#recordAssignment(run),
      updated: (_, run) => this.#recordAssignment(run),
    })
  }

  /** @param kubeconfig the text of a kubeconfig for the controllers. */
  static async start(client: Client, base: string, kubeconfig: string, options: FailoverOptions = {}): Promise<Failover> {
    await installOarlock(client)
    const failover = new Failover(client, base, kubeconfig, options)
    await failover.#manager.start()
    await client.resource(workerPoolResource).create({ metadata: { name: 'scripted' }, spec: { mode: 'External' } })
    for (let index = 0; index < failover.#controllers; index++) await failover.#contend()
    return failover
  }

  async close(): Promise<void> {
    await this.#manager.stop()
    await this.#workers.close()
    await this.#roles.stopAll()
  }

  /** One takeover with `runs` Runs under way. */
  async trial(signal: 'SIGKILL' | 'SIGSTOP' | 'SIGTERM', runs: number): Promise<FailoverOutcome> {
    const prefix = `${signal.toLowerCase()}-${++this.#count}`
    const names = Array.from({ length: runs }, (_, index) => `${prefix}-${index}`)
    const { script, release } = this.#holdRuns(prefix)
    this.#workers.script = script
    const pool = await this.#client.resource(workerPoolResource).get('scripted')
    const fixture = new StackFixture(this.#client)
    const command = { apply: ['true'] }
    // Half of the Runs are running when the leader is stopped; the others are queued, being assigned, or not decided yet.
    const half = names.slice(0, runs / 2)
    for (const name of half) await this.#workers.start(pool, `w-${name}`)
    const source = { inline: { files: { a: '' } } }
    const create = (name: string) => fixture.create(name, { engine: 'command', source, command, pool: 'scripted' })
    await Promise.all(half.map(create))
    await eventually(
      async () => (await this.#runsOf(prefix)).filter(({ status }) => status?.phase === 'Applying').length >= half.length / 2,
      'half of the first Runs to be running',
      60_000,
    )
    const making = Promise.all(names.slice(runs / 2).map(create))
    for (const name of names.slice(runs / 2)) await this.#workers.start(pool, `w-${name}`)
    await sleep(Math.random() * 300)

    const leader = await this.#leader()
    const leaderIdentity = leader.printed('identity')
    const stoppedMs = performance.now()
    leader.child.kill(signal)
    await making
    release()
    await eventually(async () => (await this.#holder()) !== leaderIdentity, 'another process to lead', 60_000)
    const takeoverMs = performance.now() - stoppedMs
    await Promise.all(names.map(name => fixture.until(name, 'Ready', isReady, 60_000)))
    const readyMs = performance.now() - stoppedMs

    const before = await this.#snapshot()
    let exitCode: number | null | undefined
    if (signal !== 'SIGKILL') {
      const { child } = leader
      const exited = child.exitCode === null ? once(child, 'exit') : undefined
      if (signal === 'SIGSTOP') {
        child.kill('SIGCONT')
        await eventually(() => /^lost the Lease: /m.test(leader.output()), 'the previous leader to stop its work', 20_000)
        child.kill('SIGTERM')
      }
      await exited
      exitCode = leader.child.exitCode
    }
    const after = await this.#snapshot()
    const lateWrites = [...before].filter(([key, version]) => after.get(key) !== version).length
    this.#contenders.splice(this.#contenders.indexOf(leader), 1)
    await this.#contend()
    if (this.#isSharded) await this.untilShared()

    const keys = (await this.#runsOf(prefix)).map(objectKey)
    const accepted = this.#workers.accepted.map(objectKey).filter(key => keys.includes(key))
    const twice = accepted.length - new Set(accepted).size
    const reassigned = keys.filter(key => (this.#assigned.get(key)?.size ?? 0) > 1).length
    const extra = keys.length - names.length
    return { takeoverMs, readyMs, duplicates: twice + reassigned + extra, lateWrites, exitCode }
  }

  /** Resolves when each process works on a share of the Stacks, and none moves. */
  async untilShared(): Promise<ShardView> {
    return await eventually(
      async () => {
        const view = await readShards(this.#client, { name: stackShardsName, namespace: systemNamespace })
        return isAtRest(view, this.#controllers) ? view : undefined
      },
      'each controller to have a share of the Stacks',
      60_000,
    )
  }

  /** Runs of this trial stay in phase Applying until `release`. */
  #holdRuns(prefix: string) {
    const released = Promise.withResolvers<void>()
    const script = async (run: Run) => {
      if (run.metadata.name.startsWith(prefix)) await released.promise
      return succeeds()
    }
    return { script, release: () => released.resolve() }
  }

  async #contend(): Promise<void> {
    const name = `controller-${crypto.randomUUID().slice(0, 8)}`
    const file = this.#roles.file(name, 'kubeconfig', this.#kubeconfig)
    const shards = this.#isSharded ? ['--shards', String(this.#controllers)] : []
    const args = [...controllerArgs, '--lease-duration', `${failoverLeaseMs / 1_000}s`, ...shards]
    this.#contenders.push(await this.#roles.start(name, [...args, '--kubeconfig', file, '--data', '.'], /^ *identity /m))
  }

  async #leader(): Promise<RoleProcess> {
    const holder = await eventually(async () => {
      const identity = await this.#holder()
      return this.#contenders.find(each => each.printed('identity') === identity)
    }, 'one of the controllers to lead')
    return holder
  }

  async #holder(): Promise<string | undefined> {
    const lease = await this.#client.resource(leaseResource).getOrUndefined('oarlock-controller', { namespace: systemNamespace })
    return lease?.spec?.holderIdentity ?? undefined
  }

  async #runsOf(prefix: string): Promise<Run[]> {
    const { items } = await this.#client.resource(runResource).listAll({ namespace: 'default' })
    return items.filter(({ metadata }) => metadata.name.startsWith(`${prefix}-`))
  }

  /** Versions of every Run and Stack that has ended its work: nothing may change any more. */
  async #snapshot(): Promise<Map<string, string>> {
    const runs = (await this.#client.resource(runResource).listAll()).items.filter(isEnded)
    const stacks = (await this.#client.resource(stackResource).listAll()).items.filter(isReady)
    return new Map([...runs, ...stacks].map(({ kind, metadata }) => [`${kind} ${metadata.name}`, metadata.resourceVersion ?? '']))
  }

  /** An informer, because a server ends each watch after some minutes. */
  #recordAssignment(run: Pick<Run, 'metadata' | 'spec'>): void {
    const { workerName } = run.spec
    if (!workerName) return
    const key = objectKey(run)
    this.#assigned.set(key, (this.#assigned.get(key) ?? new Set()).add(workerName))
  }
}
