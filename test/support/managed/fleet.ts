/** Replicas of a provider as real processes, the API server that they use, and the external system that counts what they do. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { type BucketBody, bucketResource } from '../../../src/controllers/managed/fake-cloud.testing.ts'
import { externalNameOf, type ManagedBody } from '../../../src/controllers/managed/index.ts'
import type { Client } from '../../../src/kubernetes/client/index.ts'
import { findCondition, type KubeObject } from '../../../src/kubernetes/object/index.ts'
import { eventually } from '../eventually.ts'
import { CloudServer } from './cloud-server.ts'
import { type Duplicates, judgeDuplicates, type Pause } from './judge-duplicates.ts'
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

type Bucket = KubeObject<ManagedBody>

export type Verdict = {
  readonly duplicates: Duplicates
  /** Resources whose creation has an unknown result, as their conditions report. */
  readonly incomplete: readonly string[]
  /** The other resources that are not Ready, or have no thing in the external system. */
  readonly unaccounted: readonly string[]
}

/** How often the thing of each resource is found after a fault before what happened is judged. */
const observations = 3

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

  /** Buckets whose external thing is left when they are deleted. */
  async create(names: readonly string[]): Promise<void> {
    const buckets = this.#client.resource(bucketResource)
    const spec: BucketBody['spec'] = { forProvider: {}, managementPolicies: ['Observe', 'Create', 'Update', 'LateInitialize'] }
    for (let first = 0; first < names.length; first += 500) {
      await Promise.all(names.slice(first, first + 500).map(name => buckets.create({ metadata: { name, namespace: 'default' }, spec })))
    }
  }

  /** Creates this many buckets, and waits until each has been created and observed. */
  async createAll(count: number): Promise<void> {
    await this.create(Array.from({ length: count }, (_, index) => `b${index}`))
    const areCreated = () => this.cloud.creations.length >= count && this.cloud.observed.size >= count
    await eventually(areCreated, 'the creation of every bucket', 1_200_000)
  }

  /** Deletes all buckets; the external things are left. */
  async deleteAll(): Promise<void> {
    const buckets = this.#client.resource(bucketResource)
    await Promise.all((await this.buckets()).map(({ metadata }) => buckets.delete(metadata.name, { namespace: 'default' })))
    await eventually(async () => (await this.buckets()).length === 0, 'the deletion of every bucket', 60_000)
  }

  /** The index of the member whose creation arrives after `count` others; its call is in flight when this resolves. */
  async untilCreating(count: number): Promise<number> {
    const { member } = await this.cloud.nextCreation(count)
    return this.members.findIndex(({ name }) => name === member)
  }

  /** SIGKILL of a member; its replacement starts immediately. Returns the names whose creation was in flight. */
  async kill(index: number): Promise<string[]> {
    const [{ name, child }] = this.members.splice(index, 1) as [(typeof this.members)[number]]
    const exited = once(child, 'exit')
    child.kill('SIGKILL')
    const inFlight = [...this.cloud.inFlight].filter(({ member }) => member === name).map(creation => creation.name)
    await exited
    this.cloud.forgetFound()
    await this.add()
    return inFlight
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
    child.kill('SIGSTOP')
    const fromMs = monotonicMs()
    await new Promise(resolve => setTimeout(resolve, ms))
    const toMs = monotonicMs()
    this.cloud.forgetFound()
    child.kill('SIGCONT')
    return { member: name, fromMs, toMs }
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

  async buckets(): Promise<Bucket[]> {
    return (await this.#client.resource(bucketResource).listAll({ namespace: 'default' })).items
  }

  /**
   * Waits until no creation is in flight, and each resource reports an incomplete creation or was found so often since the last fault.
   * @throws {Error} after `timeoutMs`, naming the resources.
   */
  async settle(timeoutMs = 60_000): Promise<void> {
    let late: string[] = []
    const isSettled = async () => {
      const buckets = (await this.buckets()).filter(bucket => !isIncomplete(bucket))
      late = buckets.map(({ metadata }) => metadata.name).filter(name => this.cloud.foundCountOf(name) < observations)
      return late.length === 0 && this.cloud.inFlight.size === 0
    }
    await eventually(isSettled, 'every thing to be found', timeoutMs).catch(error => {
      throw new Error(`${error.message}; not found ${observations} times: ${late.join(', ')}; in flight: ${this.cloud.inFlight.size}`)
    })
  }

  /** What the resources report, against what the external system has. */
  async judge(pauses: readonly Pause[]): Promise<Verdict> {
    const { isDeterministic, maxConcurrent } = this.#options
    const isCreated = (bucket: Bucket) => {
      const creations = this.cloud.things.get(bucket.metadata.name) ?? []
      return isDeterministic ? creations.length > 0 : creations.some(({ id }) => id === externalNameOf(bucket))
    }
    const buckets = await this.buckets()
    const incomplete = buckets.filter(isIncomplete)
    const unaccounted = buckets.filter(bucket => {
      const isReady = findCondition(bucket.status?.conditions, 'Ready')?.status === 'True'
      return !isIncomplete(bucket) && !(isReady && isCreated(bucket))
    })
    const namesOf = (list: Bucket[]) => list.map(({ metadata }) => metadata.name)
    return {
      duplicates: judgeDuplicates(this.cloud.things, pauses, maxConcurrent),
      incomplete: namesOf(incomplete),
      unaccounted: namesOf(unaccounted),
    }
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

/** Whether it reports that the result of its creation is not known. */
const isIncomplete = ({ status }: Bucket): boolean => /is not known/.test(findCondition(status?.conditions, 'Synced')?.message ?? '')
