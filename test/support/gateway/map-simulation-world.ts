/** What `map-simulation.ts` consists of: virtual time, partitions, what a gateway knows, and the cache of a client. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { PartitionRole } from '../../../src/gateway/index.ts'
import { ClaimIndex } from '../../../src/gateway/routing/claim-index.ts'
import type { GatewayMap } from '../../../src/gateway/routing/gateway-map.ts'
import { Heap, nextRevision, revisionEpochMs } from '../../../src/kubernetes/util/index.ts'

export type Change = { readonly revision: number; readonly key: string; readonly isDeleted: boolean }

/** Virtual time: what waits is resumed in the order of its times. */
export class Clock {
  nowMs = 1_000_000
  readonly #waiting = new Heap<{ readonly atMs: number; readonly order: number; readonly resume: () => void }>(
    (a, b) => a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order),
  )
  #order = 0

  at(atMs: number, resume: () => void): void {
    this.#waiting.push({ atMs: Math.max(atMs, this.nowMs), order: this.#order++, resume })
  }

  sleep(ms: number): Promise<void> {
    return new Promise(resolve => this.at(this.nowMs + ms, resolve))
  }

  async run(untilMs: number): Promise<void> {
    for (;;) {
      await nextTurn()
      const next = this.#waiting.pop()
      if (!next || next.atMs > untilMs) {
        if (next) this.#waiting.push(next)
        this.nowMs = untilMs
        return
      }
      this.nowMs = next.atMs
      next.resume()
    }
  }
}

export class Server {
  readonly name: string
  readonly number: number
  readonly namespaces = new Set<string>()
  readonly log: Change[] = []
  readonly objects = new Set<string>()
  /** Open watches. */
  readonly streams = new Set<{ change(change: Change): void; mapChanged(epoch: number): void }>()
  readonly #clock: Clock
  readonly #skewMs: number
  #version = 0
  #epoch = 0

  constructor(name: string, number: number, clock: Clock, skewMs: number) {
    this.name = name
    this.number = number
    this.#clock = clock
    this.#skewMs = skewMs
  }

  get wallMs(): number {
    return revisionEpochMs + this.#clock.nowMs + this.#skewMs
  }

  get version(): number {
    return this.#version
  }

  /** Of the Partitions that it has copies of. */
  get epoch(): number {
    return this.#epoch
  }

  /** A copy has arrived. */
  learn(epoch: number): void {
    if (epoch <= this.#epoch) return
    this.#epoch = epoch
    for (const stream of this.streams) stream.mapChanged(epoch)
  }

  raise(version: number): number {
    this.#version = Math.max(this.#version, version)
    return this.#version
  }

  /** The next version, without using it. */
  get upcoming(): number {
    return nextRevision(this.#version, this.wallMs, this.number)
  }

  next(): number {
    this.#version = this.upcoming
    return this.#version
  }

  write(key: string, isDeleted: boolean): void {
    const change = { revision: this.next(), key, isDeleted }
    this.log.push(change)
    if (isDeleted) this.objects.delete(key)
    else this.objects.add(key)
    for (const stream of this.streams) stream.change(change)
  }

  deleteNamespace(name: string): readonly string[] {
    const keys = [...this.objects].filter(key => key.startsWith(`${name}/`))
    for (const key of keys) this.write(key, true)
    this.namespaces.delete(name)
    return keys
  }

  /** What was there at the version. */
  at(version: number): Set<string> {
    const keys = new Set<string>()
    for (const { revision, key, isDeleted } of this.log) {
      if (revision > version) break
      if (isDeleted) keys.delete(key)
      else keys.add(key)
    }
    return keys
  }
}

export type HomeEvent = { readonly kind: 'partitions' | 'claims' | 'tenants'; apply(gateway: SimulatedGateway): void }

/** A Partition, as it is at home. */
export type HomePartition = {
  readonly roles: ReadonlySet<PartitionRole>
  readonly announced: ReadonlySet<PartitionRole>
  /** Of the last change of its roles. */
  readonly rolesVersion: number
  readonly isDeleting: boolean
}

/** What a gateway knows of home, by watches of its own. */
export class SimulatedGateway {
  readonly claims = new ClaimIndex()
  readonly tenants = new Map<string, string>()
  partitions: ReadonlyMap<string, HomePartition> = new Map()
  /** Watches from before begin again with a list. */
  relistFrom = 0
  epoch = 0
  seen = 0
  /** Home does not reach it until then. */
  cutUntilMs = 0
  readonly deliveredMs = new Map<string, number>()
  readonly map: GatewayMap

  constructor() {
    const of = () => this
    this.map = {
      home: 'home',
      get partitions() {
        return of().partitions
      },
      partitionOf: (table, name) => this.claims.ownerOf(table, name)?.partition,
      hasClaims: (partition, table) => this.claims.hasClaims(partition, table),
      partitionOfTenant: tenant => this.tenants.get(tenant),
      partitionOfPool: () => undefined,
      tenantOf: () => undefined,
      copiesOfHome: () => [],
      get relistFrom() {
        return of().relistFrom
      },
    }
  }
}

/** The cache of an informer. */
export class Client {
  readonly isWithoutHome: boolean
  readonly keys = new Set<string>()
  version = 0
  readonly #violated: (kind: 'order' | 'cache', text: string) => void

  constructor(isWithoutHome: boolean, violated: (kind: 'order' | 'cache', text: string) => void) {
    this.isWithoutHome = isWithoutHome
    this.#violated = violated
  }

  replace({ version, keys }: { readonly version: number; readonly keys: ReadonlySet<string> }): void {
    this.version = version
    this.keys.clear()
    for (const key of keys) this.keys.add(key)
  }

  receive({ revision, key, isDeleted }: Change): void {
    if (revision <= this.version) this.#violated('order', `a client gets ${revision} after ${this.version}`)
    if (this.keys.has(key) !== isDeleted) {
      const what = isDeleted ? 'deleted, and does not have it' : 'added, and has it'
      this.#violated('cache', `a client gets ${key} as ${what}`)
    }
    this.version = revision
    if (isDeleted) this.keys.delete(key)
    else this.keys.add(key)
  }

  bookmark(version: number): void {
    this.version = Math.max(this.version, version)
  }
}

export const isSelected = (key: string, partition: string, excluded: readonly string[], isWithoutHome: boolean): boolean => {
  const [namespace = ''] = key.split('/')
  return !excluded.includes(namespace) && !(isWithoutHome && partition === 'home' && namespace === 'default')
}
