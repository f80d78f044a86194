/**
 * Partitions, gateways and clients while the map changes, on virtual time: with the rules by which the gateway routes, claims, lists and merges. Above 400
 * lines: each part of an installation acts on all others, and parts in several files would have to share all fields.
 */
import { decideClaim } from '../../../src/controllers/claims/index.ts'
import { createClaimed, createdTooLate } from '../../../src/gateway/creation/create-claimed.ts'
import { claimName, type NameClaim, type PartitionRole } from '../../../src/gateway/index.ts'
import { requireCurrentMap } from '../../../src/gateway/routing/current-map.ts'
import { decideOwner, partsOf, type RoutedRequest, tenantLabel } from '../../../src/gateway/routing/decide-route.ts'
import { findRoute } from '../../../src/gateway/routing/find-route.ts'
import { partsText } from '../../../src/gateway/routing/merged-parts.ts'
import { misdirected, sendToOwner } from '../../../src/gateway/routing/send-to-owner.ts'
import { EventMerge } from '../../../src/gateway/watch/merge-events.ts'
import type { TransportStreamResponse } from '../../../src/kubernetes/client/transport.ts'
import { StatusError } from '../../../src/kubernetes/object/index.ts'
import { seededRandom } from '../../../src/kubernetes/util/index.ts'
import {
  type Change,
  Client,
  Clock,
  type HomeEvent,
  type HomePartition,
  isSelected,
  Server,
  SimulatedGateway,
} from './map-simulation-world.ts'

/** A rule that is broken on purpose: the checks find it. */
export type MapFault =
  | 'a watch stays open when its partitions change'
  | 'a list does not check that the map is current'
  | 'a partition executes what it does not own'
  | 'a write without an answer is sent again'
  | 'a namespace is created without a claim'
  | 'events are passed on as they arrive'
  | 'a role is used that not all partitions know of'
  | 'a watch continues with a map that is older than that of its partitions'
  | 'a watch continues from before the removal of a partition'

/**
 * `write`: one is lost or done twice, or a name is in two partitions. `order`: the versions of a watch do not rise. `list`: a list lacks an object. `cache`: that of a client
 * is not the list.
 */
export type MapViolation = { readonly kind: 'write' | 'order' | 'list' | 'cache'; readonly text: string }

export type MapCounts = Record<
  | 'writes'
  | 'misdirected'
  | 'unanswered'
  | 'lists'
  | 'rejectedLists'
  | 'events'
  | 'expired'
  | 'reconnected'
  | 'moved'
  | 'mapChanges'
  | 'announced'
  | 'unannounced'
  | 'removed'
  | 'cuts',
  number
>

const activeMs = 120_000
const startMs = 5_000
const settleMs = 40_000
const watchCheckMs = 1_000
const epochPatienceMs = 2_000
const seedNamespaces = ['n0', 'n1', 'n2', 'n3', 'n4', 'n5', 'n6', 'n7']
const systemOnly = 'default,kube-node-lease,kube-public,kube-system,oarlock-system,oarlock-workers'
const withoutHome = systemOnly
  .split(',')
  .map(name => `metadata.namespace!=${name}`)
  .join(',')

type Answer = Pick<TransportStreamResponse, 'status' | 'headers' | 'body'>

const unavailable = (message: string) => new StatusError('ServiceUnavailable', message)

class MapSimulation {
  readonly violations: MapViolation[] = []
  readonly counts: MapCounts = {
    ...{ writes: 0, misdirected: 0, unanswered: 0, lists: 0, rejectedLists: 0, events: 0 },
    ...{ expired: 0, reconnected: 0, moved: 0, mapChanges: 0, cuts: 0 },
    ...{ announced: 0, unannounced: 0, removed: 0 },
  }
  readonly clock = new Clock()
  readonly #seed: number
  readonly #fault: MapFault | undefined
  readonly #random: () => number
  readonly #servers = new Map<string, Server>()
  readonly #home: Server
  readonly #gateways = [new SimulatedGateway(), new SimulatedGateway(), new SimulatedGateway()]
  /** At home. */
  readonly #partitions = new Map<string, HomePartition>()
  #relistFrom = 0
  readonly #claims = new Map<string, NameClaim>()
  readonly #everOwned = new Map<string, Set<string>>()
  /** By key: created and answered, and not deleted since. */
  readonly #acknowledged = new Set<string>()
  readonly #executions = new Map<number, number>()
  /** By partition: until when home does not reach it. */
  readonly #cutUntilMs = new Map<string, number>()
  readonly #copiedMs = new Map<string, number>()
  #endMs = 0
  #serverCount = 0
  #numbers = 0

  constructor(seed: number, fault: MapFault | undefined) {
    this.#seed = seed
    this.#fault = fault
    this.#random = seededRandom(seed)
    this.#home = this.#addServer('home')
    this.#home.namespaces.add('default')
  }

  async run(): Promise<void> {
    const { clock } = this
    this.#endMs = clock.nowMs + startMs + activeMs
    for (const name of ['home', 't1', 't2']) this.#setPartition(name, { roles: new Set(name === 'home' ? [] : ['Tenants']) })
    for (const [tenant, partition] of [
      ['a', 't1'],
      ['b', 't2'],
      ['c', 't3'],
    ] as const)
      this.#homeWrite({ kind: 'tenants', apply: gateway => void gateway.tenants.set(tenant, partition) })
    // Each gateway begins when it has read everything.
    await clock.run(clock.nowMs + startMs)
    this.#every(200, 2_000, () => this.#createNamespace())
    this.#every(1_000, 10_000, () => this.#deleteNamespace())
    for (let writer = 0; writer < 2; writer++) this.#every(200, 3_000, () => this.#writeObject())
    this.#every(500, 5_000, () => this.#list(this.#pick(this.#gateways), this.#number(2) === 0).catch(() => {}))
    this.#every(5_000, 30_000, () => this.#changeMap())
    this.#every(5_000, 40_000, () => this.#cut())
    const clients = [0, 1].map(index => this.#follow(index === 1))
    await clock.run(this.#endMs + settleMs)
    for (const client of clients) this.#checkCache(client)
    this.#checkWrites()
  }

  // ---- randomness and time

  #number = (below: number) => Math.floor(this.#random() * below)
  #between = (low: number, high: number) => low + this.#number(high - low)
  #pick = <T>(some: readonly T[]): T => some[this.#number(some.length)] as T
  /** Mostly a network that is fast. */
  #delayMs = () => (this.#number(20) === 0 ? this.#between(50, 3_000) : this.#between(1, 40))
  #travel = () => this.clock.sleep(this.#delayMs())

  #every(low: number, high: number, run: () => unknown): void {
    const again = () => {
      if (this.clock.nowMs >= this.#endMs) return
      run()
      this.clock.at(this.clock.nowMs + this.#between(low, high), again)
    }
    this.clock.at(this.clock.nowMs + this.#between(0, high), again)
  }

  #violated(kind: MapViolation['kind'], text: string): void {
    this.violations.push({ kind, text: `seed ${this.#seed}, ${this.clock.nowMs} ms: ${text}` })
  }

  // ---- home

  #addServer(name: string): Server {
    const server = new Server(name, this.#serverCount++, this.clock, this.#between(-1_500, 1_500))
    this.#servers.set(name, server)
    return server
  }

  /** `isCopied`: the other partitions have copies of what has changed; not of the status, and not of a deletion. */
  #homeWrite({ kind, apply }: HomeEvent, isCopied = false): number {
    const version = this.#home.next()
    for (const gateway of this.#gateways) {
      const atMs = Math.max(this.clock.nowMs + this.#delayMs(), gateway.cutUntilMs, gateway.deliveredMs.get(kind) ?? 0)
      gateway.deliveredMs.set(kind, atMs)
      this.clock.at(atMs, () => {
        apply(gateway)
        if (kind === 'partitions') gateway.epoch = version
      })
    }
    if (kind !== 'partitions') return version
    for (const [name, server] of this.#servers) {
      if (name !== 'home' && !isCopied) continue
      const delayMs = name === 'home' ? 0 : this.#delayMs()
      const atMs = Math.max(this.clock.nowMs + delayMs, this.#cutUntilMs.get(name) ?? 0, this.#copiedMs.get(name) ?? 0)
      this.#copiedMs.set(name, atMs)
      this.clock.at(atMs, () => server.learn(version))
    }
    return version
  }

  /** Undefined: it is removed. */
  #setPartition(name: string, change: Partial<HomePartition> | undefined): void {
    if (change && !this.#servers.has(name)) this.#control(this.#addServer(name))
    const before = this.#partitions.get(name)
    const version = this.#home.upcoming
    const rolesVersion = change?.roles ? version : (before?.rolesVersion ?? version)
    const first = { roles: new Set<PartitionRole>(), announced: new Set<PartitionRole>(), isDeleting: false }
    if (change) this.#partitions.set(name, { ...first, ...before, ...change, rolesVersion })
    else this.#partitions.delete(name)
    this.#partitionsChanged(change?.roles !== undefined)
  }

  #partitionsChanged(isCopied: boolean): void {
    const [partitions, relistFrom] = [new Map(this.#partitions), this.#relistFrom]
    this.#homeWrite({ kind: 'partitions', apply: gateway => Object.assign(gateway, { partitions, relistFrom }) }, isCopied)
  }

  #changeMap(): void {
    this.counts.mapChanges++
    const name = this.#pick(['t1', 't2', 't3', 't4'])
    const partition = this.#partitions.get(name)
    const tenants: ReadonlySet<PartitionRole> = new Set(['Tenants'])
    if (!partition) this.#setPartition(name, { roles: this.#number(2) === 0 ? tenants : new Set() })
    else if (this.#number(3) === 0) this.#setPartition(name, { isDeleting: true })
    else this.#setPartition(name, { roles: partition.roles.size > 0 ? new Set() : tenants })
  }

  /** A Partition that is being deleted is removed by its own server, when it has nothing and nothing is claimed for it. Before that, it stops. */
  #removeDeleted(server: Server): void {
    const { name } = server
    if (!this.#partitions.get(name)?.isDeleting || (this.#cutUntilMs.get(name) ?? 0) > this.clock.nowMs || server.namespaces.size > 0)
      return
    if ([...this.#claims.values()].some(({ spec }) => spec.partition === name)) return
    this.counts.removed++
    this.#servers.delete(name)
    this.#home.raise(server.version)
    this.#relistFrom = this.#home.upcoming
    this.#partitionsChanged(true)
    this.#setPartition(name, undefined)
  }

  /** Home does not reach some of the gateways, or of the partitions too, which reach each other. */
  #cut(): void {
    this.counts.cuts++
    const untilMs = this.clock.nowMs + this.#between(500, 30_000)
    for (const gateway of this.#gateways) if (this.#number(2) === 0) gateway.cutUntilMs = untilMs
    if (this.#number(2) === 0) return
    for (const name of this.#servers.keys()) if (name !== 'home' && this.#number(2) === 0) this.#cutUntilMs.set(name, untilMs)
  }

  async #reachHome(gateway: SimulatedGateway): Promise<void> {
    await this.#travel()
    if (gateway.cutUntilMs > this.clock.nowMs) throw unavailable('home does not answer')
  }

  #claimChanged(claim: NameClaim): NameClaim {
    const version = this.#homeWrite({ kind: 'claims', apply: gateway => gateway.claims.set(stored) })
    const stored = { ...claim, metadata: { ...claim.metadata, resourceVersion: String(version) } }
    this.#claims.set(claim.metadata.name, stored)
    return stored
  }

  async #claim(gateway: SimulatedGateway, name: string, partition: string): Promise<number> {
    await this.#reachHome(gateway)
    const key = claimName('namespaces', name)
    const existing = this.#claims.get(key)
    const isOther = existing && existing.spec.partition !== partition
    if (isOther && this.#fault !== 'a namespace is created without a claim') throw new StatusError('AlreadyExists', name)
    const owner = this.#partitions.get(partition)
    const isAnnounced = owner?.announced.has('Tenants') || this.#fault === 'a role is used that not all partitions know of'
    if (!owner || owner.isDeleting || !isAnnounced) throw new StatusError('Forbidden', `${partition} is not announced`)
    const metadata = { ...existing?.metadata, name: key, uid: existing?.metadata.uid ?? String(++this.#numbers) }
    const claim = this.#claimChanged({ metadata, spec: { resource: 'namespaces', name, partition } } as NameClaim)
    await this.#travel()
    gateway.claims.set(claim)
    return Number(claim.metadata.resourceVersion)
  }

  async #lookUp(gateway: SimulatedGateway, table: string, name: string): Promise<void> {
    await this.#reachHome(gateway)
    const key = claimName(table, name)
    const before = gateway.claims.ownerOf(table, name)
    const claim = this.#claims.get(key)
    await this.#travel()
    if (claim) gateway.claims.set(claim)
    else if (gateway.claims.ownerOf(table, name) === before) gateway.claims.delete(key)
  }

  async #waitForPartitions(gateway: SimulatedGateway, epoch: number): Promise<void> {
    const untilMs = this.clock.nowMs + epochPatienceMs
    while (gateway.epoch < epoch && this.clock.nowMs < untilMs) await this.clock.sleep(20)
  }

  /** Before the first use of a role of a partition: all partitions know of it, so that a gateway that does not is rejected by each. */
  async #announce(gateway: SimulatedGateway, name: string): Promise<void> {
    const partition = gateway.partitions.get(name)
    if (!partition || partition.announced.has('Tenants')) return
    const { rolesVersion } = partition
    const reached = await Promise.all(
      [...gateway.partitions.keys()].map(each => this.#request(gateway, each, ({ epoch, version }) => ({ epoch, version }))),
    )
    if (reached.some(({ epoch }) => epoch < rolesVersion)) {
      this.counts.unannounced++
      throw unavailable('not all partitions know of it')
    }
    // What it gets is newer than anything that a partition has shown before it knew.
    await this.#request(gateway, name, server => server.raise(gateway.seen))
    await this.#reachHome(gateway)
    const now = this.#partitions.get(name)
    if (now?.rolesVersion !== rolesVersion) throw new StatusError('Conflict', `partition ${name} has changed`)
    this.#home.raise(gateway.seen)
    this.counts.announced++
    this.#setPartition(name, { announced: new Set(['Tenants']) })
    await this.#travel()
  }

  /** The controllers of a partition. */
  #control(server: Server): void {
    const { name } = server
    const control = () => {
      this.#removeDeleted(server)
      if (this.#servers.get(name) !== server) return
      for (const [key, seen] of this.#claims) {
        const { spec, metadata } = seen
        if (spec.partition !== name) continue
        const version = Number(metadata.resourceVersion)
        const isHere = () => server.namespaces.has(spec.name)
        if (decideClaim({ version, isHere: isHere(), nowMs: server.wallMs }).kind !== 'read') continue
        const missingAt = server.next()
        if (decideClaim({ version, isHere: isHere(), nowMs: server.wallMs, missingAt }).kind !== 'remove') continue
        this.clock.at(this.clock.nowMs + this.#delayMs(), () => {
          const now = this.#claims.get(key)
          if (now?.metadata.resourceVersion !== metadata.resourceVersion) return
          this.#claims.delete(key)
          this.#homeWrite({ kind: 'claims', apply: gateway => gateway.claims.delete(key) })
        })
      }
      if (this.clock.nowMs < this.#endMs) this.clock.at(this.clock.nowMs + this.#between(1_000, 5_000), control)
    }
    this.clock.at(this.clock.nowMs + this.#between(0, 5_000), control)
  }

  // ---- writes

  /** A request to a partition: it sees the versions that the gateway has seen, and the gateway that of the answer. */
  async #request<T>(gateway: SimulatedGateway, partition: string, execute: (server: Server) => T): Promise<T> {
    const { seen } = gateway
    await this.#travel()
    const server = this.#servers.get(partition)
    if (!server) throw unavailable(`partition ${partition} does not answer`)
    server.raise(seen)
    const result = execute(server)
    const { version } = server
    await this.#travel()
    gateway.seen = Math.max(gateway.seen, version)
    return result
  }

  async #createNamespace(): Promise<void> {
    const gateway = this.#pick(this.#gateways)
    const name = this.#pick(seedNamespaces)
    const tenant = this.#pick(['a', 'b', 'c'])
    try {
      const { partition } = decideOwner('namespaces', { name, labels: { [tenantLabel]: tenant } }, [tenant], gateway.map)
      const send = (headers: Readonly<Record<string, string>>) =>
        this.#request(gateway, partition, server => {
          if (server.upcoming > Number(headers['x-oarlock-not-after'])) return answerOf(createdTooLate)
          if (server.namespaces.has(name)) return answerOf(409)
          server.next()
          server.namespaces.add(name)
          const others = [...this.#servers.values()].filter(other => other !== server && other.namespaces.has(name))
          if (others.length > 0) this.#violated('write', `namespace ${name} is in ${server.name} and ${others[0]?.name}`)
          const owners = this.#everOwned.get(name) ?? new Set()
          this.#everOwned.set(name, owners.add(server.name))
          if (owners.size > 1) this.counts.moved++
          return answerOf(201)
        })
      if (this.#fault !== 'a role is used that not all partitions know of') await this.#announce(gateway, partition)
      await createClaimed(partition, () => this.#claim(gateway, name, partition), send)
    } catch (error) {
      if (!(error instanceof StatusError)) throw error
    }
  }

  #deleteNamespace(): void {
    const server = this.#pick([...this.#servers.values()])
    const name = this.#pick(seedNamespaces)
    if (!server.namespaces.has(name)) return
    for (const key of server.deleteNamespace(name)) this.#acknowledged.delete(key)
    server.next()
  }

  async #writeObject(): Promise<void> {
    const gateway = this.#pick(this.#gateways)
    const namespace = this.#pick([...seedNamespaces, 'default'])
    const isDeletion = this.#number(3) === 0
    const known = [...this.#acknowledged].filter(key => key.startsWith(`${namespace}/`))
    const id = ++this.#numbers
    const key = isDeletion && known.length > 0 ? this.#pick(known) : `${namespace}/o${id}`
    if (isDeletion && known.length === 0) return
    if (isDeletion) this.#acknowledged.delete(key)
    const name = key.slice(namespace.length + 1)
    const about = { group: '', plural: 'configmaps', namespace, scope: 'Namespaced' } as const
    const routed: RoutedRequest = isDeletion
      ? { ...about, verb: 'delete', name }
      : { ...about, verb: 'create', name: '', created: { name } }
    const find = () => findRoute(routed, { map: () => gateway.map, lookUp: (table, of) => this.#lookUp(gateway, table, of) })
    const attempt = async (partition: string): Promise<Answer> => {
      const isLost = this.#number(30) === 0
      const answer = await this.#request(gateway, partition, server => {
        if (!server.namespaces.has(namespace) && this.#fault !== 'a partition executes what it does not own') return this.#misdirect(server)
        if (isDeletion && !server.objects.has(key)) return answerOf(404)
        const executions = (this.#executions.get(id) ?? 0) + 1
        this.#executions.set(id, executions)
        if (executions > 1) this.#violated('write', `${key} is written twice`)
        server.write(key, isDeletion)
        return answerOf(isDeletion ? 200 : 201)
      })
      if (!isLost) return answer
      this.counts.unanswered++
      if (this.#fault !== 'a write without an answer is sent again') throw unavailable('the connection was closed')
      return await attempt(partition)
    }
    try {
      const target = await find()
      if (target.kind !== 'one') throw new Error(`bug: ${key} goes to ${target.kind}`)
      const answer = await sendToOwner<Answer>(target.partition, {
        send: attempt,
        namespace,
        isCurrent: epoch => gateway.epoch >= epoch,
        again: async epoch => {
          this.counts.misdirected++
          await this.#lookUp(gateway, 'namespaces', namespace)
          await this.#waitForPartitions(gateway, epoch)
          const next = await find()
          return next.kind === 'one' ? next.partition : undefined
        },
        nodeAddress: () => Promise.reject(new Error('bug: no Node is asked for')),
      })
      if (answer.status >= 300) return
      this.counts.writes++
      if (isDeletion) return
      // Its namespace may be gone by the time of the answer.
      if ([...this.#servers.values()].some(({ objects }) => objects.has(key))) this.#acknowledged.add(key)
    } catch (error) {
      if (!(error instanceof StatusError)) throw error
    }
  }

  #misdirect({ epoch }: Server): Answer {
    return answerOf(misdirected, { details: epoch > 0 ? { causes: [{ field: 'mapEpoch', message: String(epoch) }] } : {} })
  }

  /** Everything that was answered is where the claim of its namespace says. */
  #checkWrites(): void {
    for (const key of this.#acknowledged) {
      const [namespace = ''] = key.split('/')
      const partition = namespace === 'default' ? 'home' : this.#claims.get(claimName('namespaces', namespace))?.spec.partition
      if (!this.#servers.get(partition ?? '')?.objects.has(key)) this.#violated('write', `${key} was created and is not in ${partition}`)
    }
  }

  // ---- lists and watches

  #collection = (isWithoutHome: boolean): RoutedRequest => ({
    ...{ verb: 'list', group: '', plural: 'configmaps', namespace: '', name: '', scope: 'Namespaced' },
    ...(isWithoutHome && { selection: { fieldSelector: withoutHome } }),
  })

  /** As `readMergedList`. @throws {StatusError} if it is rejected. */
  async #list(
    gateway: SimulatedGateway,
    isWithoutHome: boolean,
  ): Promise<{ readonly version: number; readonly keys: ReadonlySet<string> }> {
    const before = [...this.#acknowledged]
    const routed = this.#collection(isWithoutHome)
    try {
      const parts = partsOf(routed, gateway.map)
      const reached = await Promise.all(
        parts.map(({ partition }) => this.#request(gateway, partition, ({ version, epoch }) => ({ version, epoch }))),
      )
      const version = Math.max(...reached.map(each => each.version))
      if (this.#fault !== 'a list does not check that the map is current')
        await requireCurrentMap({
          ...{ home: 'home', routed: parts, epoch: Math.max(...reached.map(({ epoch }) => epoch)) },
          knownEpoch: () => gateway.epoch,
          waitFor: epoch => this.#waitForPartitions(gateway, epoch),
          partsNow: () => partsOf(routed, gateway.map),
        })
      const keys = await Promise.all(
        parts.map(({ partition, excludedNamespaces }) =>
          this.#request(gateway, partition, server => {
            server.raise(version)
            return [...server.at(version)].filter(key => isSelected(key, partition, excludedNamespaces, isWithoutHome))
          }),
        ),
      )
      this.counts.lists++
      const found = new Set(keys.flat())
      for (const key of before)
        if (this.#acknowledged.has(key) && !(isWithoutHome && key.startsWith('default/')) && !found.has(key))
          this.#violated(
            'list',
            `a list over ${parts.map(({ partition }) => partition)} at ${version} lacks ${key}, which was created before`,
          )
      return { version, keys: found }
    } catch (error) {
      this.counts.rejectedLists++
      throw error
    }
  }

  #follow(isWithoutHome: boolean): Client {
    const client = new Client(isWithoutHome, (kind, text) => this.#violated(kind, text))
    void this.#informer(client)
    return client
  }

  /** As an informer of client-go: it lists once, and watches from the last version that it has, through any gateway, until it gets 410. */
  async #informer(client: Client): Promise<void> {
    for (;;) {
      try {
        client.replace(await this.#list(this.#pick(this.#gateways), client.isWithoutHome))
      } catch (error) {
        if (!(error instanceof StatusError)) throw error
        await this.clock.sleep(this.#between(100, 1_000))
        continue
      }
      for (;;) {
        const end = await this.#watch(this.#pick(this.#gateways), client)
        if (end === 'expired') {
          this.counts.expired++
          break
        }
        this.counts.reconnected++
        await this.clock.sleep(this.#between(1, 3_000))
      }
    }
  }

  /** As `serveWatch` of a client that has a watch of its own. */
  async #watch(gateway: SimulatedGateway, client: Client): Promise<'expired' | 'broken'> {
    const { isWithoutHome, version: from } = client
    const routed = { ...this.#collection(isWithoutHome), verb: 'watch' } as const
    const parts = partsOf(routed, gateway.map)
    const where = partsText(parts)
    const reach = (partition: string, version: number) => this.#request(gateway, partition, server => server.raise(version))
    if (from < gateway.relistFrom && this.#fault !== 'a watch continues from before the removal of a partition') return 'expired'
    try {
      await Promise.all(parts.map(({ partition }) => reach(partition, from)))
    } catch {
      return 'broken'
    }
    const merge = new EventMerge(
      parts.map(({ partition }) => partition),
      from,
      { maxBufferedBytes: () => Number.POSITIVE_INFINITY },
    )
    const ended = Promise.withResolvers<'expired' | 'broken'>()
    let isOpen = true
    const end = (how: 'expired' | 'broken') => {
      isOpen = false
      ended.resolve(how)
    }
    const deliveries = new Map<string, number>()
    /** In order. */
    const arrive = (partition: string, then: () => void) => {
      const atMs = Math.max(this.clock.nowMs + this.#delayMs(), deliveries.get(partition) ?? 0)
      deliveries.set(partition, atMs)
      this.clock.at(atMs, () => {
        if (!isOpen) return
        then()
        settle()
      })
    }
    const keyOf = new Map<number, Change>()
    /** Nothing is passed on while the partitions know more than the gateway. */
    let wantedEpoch = 0
    const isChanged = () =>
      where !== partsText(partsOf(routed, gateway.map)) && this.#fault !== 'a watch stays open when its partitions change'
    const mapChanged = (epoch: number) => {
      if (this.#fault === 'a watch continues with a map that is older than that of its partitions') return
      wantedEpoch = Math.max(wantedEpoch, epoch)
      const untilMs = this.clock.nowMs + epochPatienceMs
      const wait = () => {
        if (!isOpen) return
        if (gateway.epoch >= epoch) {
          if (isChanged()) end('expired')
          else settle()
        } else if (this.clock.nowMs > untilMs) end('broken')
        else this.clock.at(this.clock.nowMs + 20, wait)
      }
      wait()
    }
    const settle = () => {
      if (gateway.epoch < wantedEpoch || !isOpen) return
      for (const { revision } of merge.take()) {
        this.counts.events++
        if (this.#fault !== 'events are passed on as they arrive') client.receive(keyOf.get(revision) as Change)
      }
      if (this.#number(10) === 0) client.bookmark(merge.watermark)
      for (const { source, revision } of merge.progressRequests())
        void this.#travel().then(() => {
          const server = this.#servers.get(source)
          if (server) arrive(source, advance(source, server.raise(revision)))
        })
    }
    const advance = (source: string, version: number) => () => merge.advance(source, version)
    const opened: (() => void)[] = []
    for (const { partition, excludedNamespaces } of parts) {
      const server = this.#servers.get(partition)
      if (!server) {
        end('broken')
        break
      }
      const change = (each: Change) => {
        if (!isSelected(each.key, partition, excludedNamespaces, isWithoutHome)) return
        keyOf.set(each.revision, each)
        arrive(partition, () => {
          if (this.#fault === 'events are passed on as they arrive') client.receive(each)
          merge.add(partition, { revision: each.revision, line: new Uint8Array(1) })
        })
      }
      const stream = { change, mapChanged: (epoch: number) => arrive(partition, () => mapChanged(epoch)) }
      stream.mapChanged(server.epoch)
      for (const each of server.log) if (each.revision > from) change(each)
      server.streams.add(stream)
      opened.push(() => server.streams.delete(stream))
    }
    const check = () => {
      if (!isOpen) return
      if (isChanged()) end('expired')
      else this.clock.at(this.clock.nowMs + watchCheckMs, check)
    }
    this.clock.at(this.clock.nowMs + watchCheckMs, check)
    this.clock.at(this.clock.nowMs + this.#between(1_000, 40_000), () => isOpen && this.clock.nowMs < this.#endMs && end('broken'))
    const how = await ended.promise
    for (const close of opened) close()
    return how
  }

  #checkCache({ isWithoutHome, keys }: Client): void {
    const expected = [...this.#servers.values()]
      .flatMap(({ objects }) => [...objects])
      .filter(key => !(isWithoutHome && key.startsWith('default/')))
    const text = (some: Iterable<string>) => [...some].sort().join(' ')
    if (text(keys) !== text(expected)) this.#violated('cache', `the cache of a client has "${text(keys)}" and not "${text(expected)}"`)
  }
}

function answerOf(status: number, body: object = {}): Answer {
  const chunks = [Buffer.from(JSON.stringify(body))]
  return {
    ...{ status, headers: {} },
    body: (async function* () {
      yield* chunks
    })(),
  }
}

/** One run. @returns what was violated, and what has happened, so that a run that does nothing is seen. */
export async function simulateMapChanges(
  seed: number,
  fault?: MapFault,
): Promise<{ readonly violations: readonly MapViolation[]; readonly counts: MapCounts }> {
  const simulation = new MapSimulation(seed, fault)
  await simulation.run()
  return simulation
}
