import { equal, ok } from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Client, configMapResource, namespaceResource } from '../../src/kubernetes/client/index.ts'
import { Informer, isAtRest, readShards } from '../../src/kubernetes/controller/index.ts'
import { isReason } from '../../src/kubernetes/object/index.ts'
import { eventually } from './eventually.ts'
import { type NetworkProxy, startProxy } from './proxy.ts'
import { shardedDurations } from './sharded-durations.ts'

const namespace = 'sharded'
const ring = { name: 'processes', namespace }

type Line = { key: string; fence: number; atNs: bigint; identity: string }
type Member = { identity: string; child: ChildProcess; proxy: NetworkProxy }

/**
 * Members of a ring as real processes, each with a network of its own, which reconcile the same objects, and what they wrote: a ledger that
 * checks nothing, and objects that check the version.
 */
export class ShardedProcesses {
  readonly #client: Client
  readonly #kubeconfig: string
  readonly #directory: string
  readonly #members = new Map<string, Member>()
  readonly #watching = new AbortController()
  readonly keys: string[] = []
  /** Fences that went down at an object. */
  readonly loweredFences: string[] = []
  readonly #fences = new Map<string, number>()

  private constructor(client: Client, kubeconfig: string, directory: string) {
    this.#client = client
    this.#kubeconfig = kubeconfig
    this.#directory = directory
  }

  /** `kubeconfigPath` names a server on this machine. */
  static async start(client: Client, kubeconfigPath: string, objects: number): Promise<ShardedProcesses> {
    const directory = await mkdtemp(join(tmpdir(), 'oarlock-sharded-'))
    const processes = new ShardedProcesses(client, await readFile(kubeconfigPath, 'utf8'), directory)
    try {
      await client.resource(namespaceResource).create({ metadata: { name: namespace } })
    } catch (error) {
      if (!isReason(error, 'AlreadyExists')) throw error
    }
    const maps = client.resource(configMapResource)
    for (let index = 0; index < objects; index++) {
      await maps.create({ metadata: { name: `map-${index}`, namespace } })
      processes.keys.push(`${namespace}/map-${index}`)
    }
    const informer = new Informer({ client, resource: configMapResource, namespace })
    informer.onChange({
      changed: ({ type, object }) => {
        const fence = Number(object.data?.fence ?? 0)
        const before = processes.#fences.get(object.metadata.name) ?? 0
        if (type !== 'deleted' && fence < before) processes.loweredFences.push(`${object.metadata.name}: ${before}, then ${fence}`)
        processes.#fences.set(object.metadata.name, fence)
      },
    })
    void informer.start(processes.#watching.signal)
    return processes
  }

  async startMember(identity: string): Promise<void> {
    const port = Number(/"?server"?: ?"?https:\/\/[^\s:]+:(\d+)/.exec(this.#kubeconfig)?.[1])
    ok(port > 0, 'the kubeconfig names no port')
    const proxy = await startProxy(port)
    const path = join(this.#directory, `${identity}.kubeconfig`)
    await writeFile(path, this.#kubeconfig.replaceAll(`:${port}`, `:${proxy.port}`), { mode: 0o600 })
    const program = join(import.meta.dirname, 'sharded-child.ts')
    const child = spawn(process.execPath, [program, path, identity, join(this.#directory, 'ledger')], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    this.#members.set(identity, { identity, child, proxy })
  }

  signal(identity: string, signal: NodeJS.Signals): void {
    this.#member(identity).child.kill(signal)
  }

  /** Resolves with its exit code. */
  async stopMember(identity: string): Promise<number | null> {
    const { child, proxy } = this.#member(identity)
    const ended = new Promise<number | null>(resolve => child.once('exit', resolve))
    child.kill('SIGTERM')
    const code = await ended
    proxy.close()
    return code
  }

  cut(identity: string): void {
    this.#member(identity).proxy.cut()
  }

  restore(identity: string): void {
    this.#member(identity).proxy.restore()
  }

  /** Resolves when `members` have all buckets between them and nothing is moving. */
  async settled(members: number): Promise<void> {
    await eventually(async () => isAtRest(await readShards(this.#client, ring), members), `${members} members with all buckets`, 30_000)
  }

  /** Resolves when each key was reconciled after the first `count` lines of the ledger. */
  async reconciledSince(count: number): Promise<void> {
    const isComplete = async () => {
      const reconciled = new Set((await this.lines()).slice(count).map(({ key }) => key))
      return this.keys.every(key => reconciled.has(key))
    }
    await eventually(isComplete, 'all keys', 30_000)
  }

  async lines(): Promise<Line[]> {
    const text = await readFile(join(this.#directory, 'ledger'), 'utf8').catch(() => '')
    return text
      .split('\n')
      .filter(line => line.endsWith('}'))
      .map(line => JSON.parse(line) as Omit<Line, 'atNs'> & { atNs: string })
      .map(line => ({ ...line, atNs: BigInt(line.atNs) }))
  }

  /**
   * Point 2 of the guarantee: at every key, no member believed that it owns it after one with a higher fence did, and
   * no object got a lower fence; and no key was idle for longer than Lease + 2 s. On a loaded machine a process may stand still on its own:
   * twice the longest time is added for which a member that had no fault did no work.
   */
  async check(faulted: readonly string[]): Promise<{ longestIdleMs: number; lines: number; owners: number }> {
    const lines = (await this.lines()).sort((a, b) => (a.atNs < b.atNs ? -1 : 1))
    const last = new Map<string, Line>()
    const lastOfMember = new Map<string, Line>()
    let longestIdleMs = 0
    let longestStallMs = 0
    for (const line of lines) {
      const before = last.get(line.key)
      if (before) {
        ok(
          line.fence >= before.fence,
          `${line.identity} worked on ${line.key} with fence ${line.fence} after ${before.identity} with ${before.fence}`,
        )
        ok(
          line.identity === before.identity || line.fence > before.fence,
          `${line.identity} and ${before.identity} have one fence for ${line.key}`,
        )
        longestIdleMs = Math.max(longestIdleMs, Number(line.atNs - before.atNs) / 1e6)
      }
      last.set(line.key, line)
      const previous = lastOfMember.get(line.identity)
      if (previous && !faulted.includes(line.identity)) longestStallMs = Math.max(longestStallMs, Number(line.atNs - previous.atNs) / 1e6)
      lastOfMember.set(line.identity, line)
    }
    ok(this.loweredFences.length === 0, this.loweredFences.join())
    const boundMs = shardedDurations.leaseDurationMs + 2_000 + 2 * longestStallMs
    ok(
      longestIdleMs <= boundMs,
      `a key was idle for ${Math.round(longestIdleMs)} ms, the bound is ${Math.round(boundMs)} ms with stalls of ${Math.round(longestStallMs)} ms`,
    )
    return { longestIdleMs, lines: lines.length, owners: new Set(lines.map(({ identity }) => identity)).size }
  }

  /** Kills a member, stops and continues one, cuts one off, restarts one, and checks what they did. */
  async surviveFaults(): Promise<{ longestIdleMs: number; lines: number }> {
    for (const identity of ['one', 'two', 'three']) await this.startMember(identity)
    await this.settled(3)
    await this.reconciledSince(0)

    this.signal('one', 'SIGKILL')
    await this.settled(2)
    await this.startMember('four')
    await this.settled(3)

    this.signal('two', 'SIGSTOP')
    await this.settled(2)
    this.signal('two', 'SIGCONT')
    await this.settled(3)

    this.cut('three')
    await this.settled(2)
    const whileCut = (await this.lines()).length
    await eventually(async () => (await this.lines()).length > whileCut + 200, 'work of the others')
    this.restore('three')
    await this.settled(3)

    equal(await this.stopMember('four'), 0)
    await this.settled(2)
    await this.reconciledSince((await this.lines()).length)
    const { owners, ...checked } = await this.check(['two', 'three'])
    equal(owners, 4)
    return checked
  }

  async close(): Promise<void> {
    this.#watching.abort()
    for (const { child, proxy } of this.#members.values()) {
      const ended = child.exitCode !== null || child.signalCode !== null ? undefined : new Promise(resolve => child.once('exit', resolve))
      child.kill('SIGKILL')
      await ended
      proxy.close()
    }
    await rm(this.#directory, { recursive: true, force: true })
  }

  #member(identity: string): Member {
    const member = this.#members.get(identity)
    if (!member) throw new RangeError(`no member ${identity}`)
    return member
  }
}
