import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Client, createClient, installKinds } from '../../src/kubernetes/client/index.ts'
import { isAtRest, readShards, type ShardOptions, type ShardView } from '../../src/kubernetes/controller/index.ts'
import { type ServerProcess, startServerProcess } from '../server-process.ts'
import { childResource, rootResource } from './kinds.ts'
import type { Entry } from './ledger.ts'
import { type FromReplica, monotonicMs, type ReplicaSettings, type ToReplica } from './messages.ts'
import { ReplicaProxy } from './proxy.ts'

export const namespace = 'default'
export const ring = { name: 'bench', namespace }

/** As bin/oarlock sets it, and docs/sharding.md recommends it for other operators. */
const malloc = { MALLOC_ARENA_MAX: '1', MALLOC_MMAP_THRESHOLD_: '32768', MALLOC_TRIM_THRESHOLD_: '131072' }

export type Measured = Extract<FromReplica, { type: 'measured' }>

/** A replica, its proxy, and what it reported. */
export class Replica {
  readonly member: string
  readonly proxy: ReplicaProxy
  readonly child: ChildProcess
  readonly #started = Promise.withResolvers<void>()
  readonly #listeners = new Set<(message: FromReplica) => void>()

  constructor(member: string, proxy: ReplicaProxy, settings: ReplicaSettings, entries: Entry[]) {
    this.member = member
    this.proxy = proxy
    this.child = fork(join(import.meta.dirname, 'replica.ts'), [JSON.stringify(settings)], {
      execArgv: ['--expose-gc', '--max-semi-space-size=8', '--max-old-space-size=256'],
      env: { ...malloc, ...process.env, NODE_COMPILE_CACHE: 'node_modules/.cache/node' },
    })
    const open = new Map<string, Entry>()
    this.child.on('message', (message: FromReplica) => {
      if (message.type === 'started') this.#started.resolve()
      if (message.type === 'begin') {
        const { key, fence, atMs } = message
        const entry: Entry = { key, member, fence, beginMs: atMs, endMs: undefined, wrote: false }
        open.set(key, entry)
        entries.push(entry)
      }
      if (message.type === 'end') {
        const entry = open.get(message.key)
        if (entry) Object.assign(entry, { endMs: message.atMs, wrote: message.wrote })
        open.delete(message.key)
      }
      for (const listener of this.#listeners) listener(message)
    })
  }

  get started(): Promise<void> {
    return this.#started.promise
  }

  async measure(): Promise<Measured> {
    const measured = Promise.withResolvers<Measured>()
    const listener = (message: FromReplica) => message.type === 'measured' && measured.resolve(message)
    this.#listeners.add(listener)
    this.child.send({ type: 'measure' } satisfies ToReplica)
    return await measured.promise.finally(() => this.#listeners.delete(listener))
  }

  signal(name: NodeJS.Signals): void {
    this.child.kill(name)
  }

  /** Gracefully; resolves when the process has ended. */
  async stop(): Promise<void> {
    await this.#end(() => this.child.send({ type: 'stop' } satisfies ToReplica))
  }

  async kill(): Promise<void> {
    await this.#end(() => this.child.kill('SIGKILL'))
  }

  async #end(ask: () => void): Promise<void> {
    if (this.child.exitCode === null && this.child.signalCode === null) {
      const exited = once(this.child, 'exit')
      ask()
      await exited
    }
    this.proxy.close()
  }
}

/** An embedded server in a process of its own, and replicas of one operator. */
export class Fleet {
  readonly client: Client
  readonly server: ServerProcess
  readonly entries: Entry[] = []
  readonly replicas: Replica[] = []
  readonly #directory: string
  readonly #killServer: () => void
  #count = 0

  private constructor(directory: string, server: ServerProcess, client: Client, killServer: () => void) {
    this.#killServer = killServer
    this.#directory = directory
    this.server = server
    this.client = client
  }

  static async start(): Promise<Fleet> {
    const directory = mkdtempSync(join(tmpdir(), 'oarlock-bench-shards-'))
    const server = await startServerProcess(join(directory, 'server'))
    // A bench that is interrupted leaves no process; replicas end with their channel to it.
    const killServer = () => process.kill(server.pid, 'SIGKILL')
    process.once('exit', killServer)
    const client = await createClient({ kubeconfig: server.kubeconfigPath, userAgent: 'bench', connections: 2 })
    await installKinds(client, [rootResource, childResource])
    return new Fleet(directory, server, client, killServer)
  }

  /** Starts a replica. With `shards` it joins the ring of this fleet. */
  async add(
    settings: Partial<Omit<ReplicaSettings, 'shards'>> & { shards: Omit<ShardOptions, 'name' | 'namespace'> | undefined },
  ): Promise<Replica> {
    const member = `m${++this.#count}`
    const path = join(this.#directory, `${member}.kubeconfig`)
    const proxy = await ReplicaProxy.start(this.server.kubeconfigPath, path)
    const replica = new Replica(
      member,
      proxy,
      {
        ...{ cpuMs: 0, maxConcurrent: 16, intervalMs: undefined, reports: false, ownsChildren: false, ...settings },
        ...{ kubeconfig: path, member, shards: settings.shards && { ...ring, identity: member, ...settings.shards } },
      },
      this.entries,
    )
    this.replicas.push(replica)
    return replica
  }

  remove(replica: Replica): void {
    this.replicas.splice(this.replicas.indexOf(replica), 1)
  }

  /** Resolves when `members` members, none of them `without`, hold all buckets and none moves. @throws {Error} after `timeoutMs`, with the ring. */
  async untilSettled(members: number, without?: Replica, timeoutMs = 60_000): Promise<ShardView> {
    const endMs = monotonicMs() + timeoutMs
    for (;;) {
      const view = await readShards(this.client, ring)
      const isIn = view?.members.some(({ session }) => session?.startsWith(`${without?.member}_`))
      if (view && !isIn && isAtRest(view, members)) return view
      if (monotonicMs() > endMs) {
        const state = view?.members.map(({ slot, session, buckets, gaining, losing }) =>
          [slot, session, buckets.length, gaining.length, losing.length].join(':'),
        )
        throw new Error(
          `the ring is not settled after ${timeoutMs} ms: version ${view?.version}, slot:member:buckets:gaining:losing ${state}`,
        )
      }
      await sleep(50)
    }
  }

  /** Creates roots `k0000` … with 18 entries of components each. */
  async createRoots(count: number): Promise<string[]> {
    const components = Array.from({ length: 18 }, (_, index) => ({ name: `component-${index}`, namespace: 'kyma-system' }))
    const uids: string[] = []
    await each(count, async index => {
      const created = await this.client.resource(rootResource).create({
        metadata: { name: rootName(index), namespace },
        spec: { revision: 0, components },
      })
      uids[index] = created.metadata.uid
    })
    return uids
  }

  async close(): Promise<void> {
    await Promise.all(this.replicas.map(replica => replica.kill()))
    await this.client.close()
    process.off('exit', this.#killServer)
    await this.server.stop()
    rmSync(this.#directory, { recursive: true, force: true })
  }
}

export const rootName = (index: number): string => `k${String(index).padStart(5, '0')}`

/** Calls `work` for 0 … count-1, 64 at a time. */
export async function each(count: number, work: (index: number) => Promise<void>): Promise<void> {
  let next = 0
  const worker = async () => {
    for (let index = next++; index < count; index = next++) await work(index)
  }
  await Promise.all(Array.from({ length: 64 }, worker))
}
