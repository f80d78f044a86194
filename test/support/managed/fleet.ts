/** Replicas of a provider as real processes, the API server that they use, and the external system that counts what they do. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { bucketResource } from '../../../src/controllers/managed/fake-cloud.testing.ts'
import type { ManagedBody } from '../../../src/controllers/managed/index.ts'
import type { Client } from '../../../src/kubernetes/client/index.ts'
import { findCondition, type KubeObject } from '../../../src/kubernetes/object/index.ts'
import { CloudServer, type Creation } from './cloud-server.ts'
import { monotonicMs } from './monotonic-ms.ts'

export const lockNames = ['none', 'shard', 'lease'] as const
export type LockName = (typeof lockNames)[number]

/** Settings of a replica, as JSON in argv[2] of `replica-child.ts`. */
export type ReplicaSettings = {
  readonly kubeconfig: string
  readonly cloudUrl: string
  readonly member: string
  readonly lock: LockName
  readonly slots: number
  readonly leaseMs: number
  readonly isDeterministic: boolean
  readonly pollIntervalMs: number
  readonly maxConcurrent: number
  /** Whether it works on Jobs too, whose Runs are dispatched. Default false. */
  readonly hasJobs?: boolean | undefined
}

export type FleetOptions = Omit<ReplicaSettings, 'kubeconfig' | 'cloudUrl' | 'member'> & { readonly latencyMs: number }

export type Usage = { readonly rssMb: number; readonly heapMb: number; readonly cpuSeconds: number }

/** A time during which a replica could not act. */
export type Pause = { readonly member: string; readonly fromMs: number; readonly toMs: number }

export type Verdict = {
  /** Creations beyond the first of a name. */
  readonly duplicates: number
  /** Of these: the one call that a paused replica had begun and that arrived when it continued. */
  readonly begunBefore: number
  /** Resources whose creation has an unknown result, as their conditions report. */
  readonly incomplete: readonly string[]
  /** Resources of which the external system has a thing that is neither Ready nor reports a reason. */
  readonly hidden: readonly string[]
}

export class ManagedFleet {
  readonly cloud: CloudServer
  readonly members: { readonly name: string; readonly child: ChildProcess }[] = []
  readonly #client: Client
  readonly #kubeconfig: string
  readonly #options: FleetOptions
  #count = 0

  private constructor(client: Client, kubeconfig: string, cloud: CloudServer, options: FleetOptions) {
    this.#client = client
    this.#kubeconfig = kubeconfig
    this.#options = options
    this.cloud = cloud
  }

  static async start(client: Client, kubeconfig: string, options: FleetOptions): Promise<ManagedFleet> {
    return new ManagedFleet(client, kubeconfig, await CloudServer.start(options.latencyMs), options)
  }

  async add(): Promise<void> {
    const name = `m${++this.#count}`
    const { latencyMs: _, ...rest } = this.#options
    const settings: ReplicaSettings = { ...rest, kubeconfig: this.#kubeconfig, cloudUrl: this.cloud.url, member: name }
    const child = fork(join(import.meta.dirname, 'replica-child.ts'), [JSON.stringify(settings)], { execArgv: ['--expose-gc'] })
    this.members.push({ name, child })
    const [message] = await Promise.race([once(child, 'message'), once(child, 'exit')])
    if (message !== 'started') throw new Error(`replica ${name} ended with ${message} before it had started`)
  }

  async create(names: readonly string[]): Promise<void> {
    const buckets = this.#client.resource(bucketResource)
    await Promise.all(names.map(name => buckets.create({ metadata: { name, namespace: 'default' }, spec: { forProvider: {} } })))
  }

  /** SIGKILL of a member; its replacement starts immediately. */
  async kill(index: number): Promise<void> {
    const [{ child }] = this.members.splice(index, 1) as [(typeof this.members)[number]]
    const exited = once(child, 'exit')
    child.kill('SIGKILL')
    await exited
    await this.add()
  }

  /** SIGKILL of all members at the same time; as many are started. */
  async restartAll(): Promise<void> {
    const members = this.members.splice(0)
    const exits = members.map(({ child }) => once(child, 'exit'))
    for (const { child } of members) child.kill('SIGKILL')
    await Promise.all(exits)
    await Promise.all(members.map(() => this.add()))
  }

  /** SIGSTOP of a member for longer than its Lease, then SIGCONT. */
  async pause(index: number, ms: number): Promise<Pause> {
    const { name, child } = this.members[index] as { name: string; child: ChildProcess }
    const fromMs = monotonicMs()
    child.kill('SIGSTOP')
    await new Promise(resolve => setTimeout(resolve, ms))
    const toMs = monotonicMs()
    child.kill('SIGCONT')
    return { member: name, fromMs, toMs }
  }

  async stopMember(index: number): Promise<void> {
    const [{ child }] = this.members.splice(index, 1) as [(typeof this.members)[number]]
    const exited = once(child, 'exit')
    child.send('stop')
    await exited
  }

  async measure(): Promise<Usage[]> {
    return await Promise.all(
      this.members.map(async ({ child }) => {
        child.send('measure')
        const [usage] = await once(child, 'message')
        return usage as Usage
      }),
    )
  }

  async buckets(): Promise<KubeObject<ManagedBody>[]> {
    return (await this.#client.resource(bucketResource).listAll({ namespace: 'default' })).items
  }

  async judge(pauses: readonly Pause[]): Promise<Verdict> {
    const { duplicates } = this.cloud
    const isBegunBefore = ({ member, receivedMs }: Creation) =>
      pauses.some(pause => pause.member === member && receivedMs >= pause.toMs - 1 && receivedMs <= pause.toMs + 1_000)
    const begunBefore = duplicates.filter(({ name }) =>
      this.cloud.creations.some(creation => creation.name === name && isBegunBefore(creation)),
    )
    const existing = new Set(this.cloud.creations.map(({ name }) => name))
    const buckets = await this.buckets()
    const incomplete = buckets.filter(({ status }) => /is not known/.test(findCondition(status?.conditions, 'Synced')?.message ?? ''))
    const hidden = buckets.filter(bucket => {
      const isReady = findCondition(bucket.status?.conditions, 'Ready')?.status === 'True'
      return existing.has(bucket.metadata.name) && !isReady && !incomplete.includes(bucket)
    })
    const namesOf = (list: typeof buckets) => list.map(({ metadata }) => metadata.name)
    return { duplicates: duplicates.length, begunBefore: begunBefore.length, incomplete: namesOf(incomplete), hidden: namesOf(hidden) }
  }

  /** Whether every resource is Ready, or reports that the result of its creation is not known. */
  async isSettled(): Promise<boolean> {
    return (await this.buckets()).every(({ status }) => {
      const isReady = findCondition(status?.conditions, 'Ready')?.status === 'True'
      return isReady || /is not known/.test(findCondition(status?.conditions, 'Synced')?.message ?? '')
    })
  }

  async close(): Promise<void> {
    await Promise.all(
      this.members.map(async ({ child }) => {
        if (child.exitCode !== null || child.signalCode !== null) return
        const exited = once(child, 'exit')
        child.kill('SIGCONT')
        child.kill('SIGKILL')
        await exited
      }),
    )
    await this.cloud.close()
  }
}
