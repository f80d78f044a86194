/** A gateway before real embedded servers, all in this process. */
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { tenantResource, workerPoolResource } from '../../../src/api/index.ts'
import {
  claimObjectName,
  DiscoveredScopes,
  Gateway,
  type GatewayOptions,
  gatewayKinds,
  mayUpgrade,
  type ObjectOwner,
  Partition,
  type PartitionRole,
  partitionResource,
  RoutingState,
  SeenVersion,
} from '../../../src/gateway/index.ts'
import { type Client, createClient, installKinds } from '../../../src/kubernetes/client/index.ts'
import { issueClientCertificate, readServingCertificates, type ServerOptions, startServer } from '../../../src/kubernetes/server/index.ts'
import { eventually } from '../eventually.ts'
import { PartitionProcess, type PartitionServer } from './partition-process.ts'

type OptionsOf = (dataDir: string) => Partial<ServerOptions>

export type FixtureOptions = {
  /** In place of what the fixture sets. */
  readonly gateway?: Partial<GatewayOptions>
  /** The address at which the gateway reaches a partition, such as a proxy's. */
  addressOf?(partition: string, server: PartitionServer): Promise<string>
  /** Partitions whose servers are processes. */
  readonly processes?: readonly string[]
}

export class GatewayFixture implements AsyncDisposable {
  readonly servers = new Map<string, PartitionServer>()
  /** By table and name: what an outdated map says, until the gateway reads it again. */
  readonly outdated = new Map<string, string>()
  /** By partition that is no process: of home's Partitions, the version that it knows. */
  readonly mapEpochs = new Map<string, number>()

  connectionOf(partition: string): Partition | undefined {
    return this.#connections.get(partition)
  }

  /** The partition gets a copy of the Partitions of this version. */
  learnMap(partition: string, epoch: number): void {
    this.mapEpochs.set(partition, epoch)
    this.servers.get(partition)?.mapChanged?.()
  }
  /** Users whose credentials are not valid any more. */
  readonly revoked = new Set<string>()
  readonly logs: string[] = []
  /** How often the gateway has read its map again. */
  refreshes = 0
  url = ''
  /** Of the gateway's certificate. */
  caCertificate = ''
  client: Client = undefined as unknown as Client
  gateway: Gateway = undefined as unknown as Gateway
  /** The gateway's view of home. */
  state: RoutingState = undefined as unknown as RoutingState
  readonly #root = mkdtempSync(join(tmpdir(), 'oarlock-gateway-'))
  readonly #options = new Map<string, ServerOptions>()
  readonly #seen = new SeenVersion()
  readonly #connections = new Map<string, Partition>()
  #identity = { certificate: '', key: '' }
  readonly #stops: (() => Promise<unknown>)[] = []

  readonly #more: FixtureOptions

  constructor(more: FixtureOptions = {}) {
    this.#more = more
  }

  /** `roles` by name; the first one is home. `server`: options of every server, or by the data directory of each, which does not exist yet. */
  static async start(
    roles: Record<string, readonly PartitionRole[]>,
    server: Partial<ServerOptions> | OptionsOf = {},
    more: FixtureOptions = {},
  ): Promise<GatewayFixture> {
    const fixture = new GatewayFixture(more)
    try {
      await fixture.#start(roles, typeof server === 'function' ? server : () => server)
    } catch (error) {
      await fixture[Symbol.asyncDispose]()
      throw error
    }
    return fixture
  }

  /** Starts the API server of a partition that was closed, on its data and by default on the port that it had. */
  async startPartition(name: string, port = this.servers.get(name)?.port ?? 0, skewMs = 0): Promise<PartitionServer> {
    const options = { ...(this.#options.get(name) as ServerOptions), listen: { port } }
    const isProcess = this.#more.processes?.includes(name)
    const server = isProcess ? await PartitionProcess.start({ ...options, skewMs }) : await startServer(options)
    this.servers.set(name, server)
    return server
  }

  /** Adds a partition that this fixture has not started. */
  async addPartition(name: string, { server, caCertificate }: { server: string; caCertificate: string }, number: number): Promise<void> {
    const connection = new Partition({ ...this.#identity, name, server, caCertificate }, this.#seen)
    this.#connections.set(name, connection)
    this.#stops.push(() => connection.close())
    const home = await this.direct(this.state.home)
    await home.resource(partitionResource).create({ metadata: { name }, spec: { number, server, caCertificate, roles: ['Tenants'] } })
    await home.resource(tenantResource).create({ metadata: { name, labels: { 'oarlock.dev/partition': name } }, spec: {} })
    await eventually(() => this.state.partitions.has(name) && this.state.partitionOfTenant(name) === name, 'the partition to be known')
  }

  /** Claims a name as a gateway with this view of home does. */
  async claim(table: string, name: string, owner: ObjectOwner, state = this.state): Promise<number> {
    return await claimObjectName(table, name, owner, { client: await this.direct(state.home), onClaim: claim => state.noteClaim(claim) })
  }

  /** The gateway uses another address of a partition. */
  async movePartition(name: string, { url: server, caCertificate }: { url: string; caCertificate: string }): Promise<void> {
    await this.#connections.get(name)?.move({ server, caCertificate })
  }

  /** The server of a partition that is a process. */
  processOf(name: string): PartitionProcess {
    const server = this.servers.get(name)
    if (server instanceof PartitionProcess) return server
    throw new Error(`partition ${name} is no process`)
  }

  dataDirOf(name: string): string {
    return (this.#options.get(name) as ServerOptions).dataDir
  }

  /** A client of one partition, past the gateway. */
  async direct(name: string): Promise<Client> {
    const server = this.servers.get(name) as PartitionServer
    const client = await createClient({ kubeconfig: server.kubeconfigPath })
    this.#stops.push(() => client.close())
    return client
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const stop of this.#stops.reverse()) await stop()
    rmSync(this.#root, { recursive: true, force: true })
  }

  async #start(roles: Record<string, readonly PartitionRole[]>, optionsOf: OptionsOf): Promise<void> {
    const names = Object.keys(roles)
    const [home = ''] = names
    const pki = join(this.#root, 'pki')
    mkdirSync(pki)
    const serving = await readServingCertificates(pki, '127.0.0.1', Date.now())
    const caCertificate = serving.ca
    this.caCertificate = caCertificate
    const { certificate, key } = await issueClientCertificate(pki, { name: 'gateway', groups: [], ttlMs: 3_600_000 }, Date.now())
    this.#identity = { certificate, key }
    const seen = this.#seen
    const connections = this.#connections
    for (const [number, name] of names.entries()) {
      this.#options.set(name, {
        ...{ dataDir: join(this.#root, name), partition: number, storage: { synchronous: 'OFF' } },
        frontProxy: { caCertificate, allowedNames: ['gateway'] },
        mapEpoch: () => this.mapEpochs.get(name) ?? 0,
        ...optionsOf(join(this.#root, name)),
      })
      const server = await this.startPartition(name, 0)
      this.#stops.push(async () => await this.servers.get(name)?.close({ graceMs: 10 }))
      const address = (await this.#more.addressOf?.(name, server)) ?? server.url
      const connection = new Partition({ name, server: address, caCertificate: server.caCertificate, certificate, key }, seen)
      connections.set(name, connection)
      this.#stops.push(() => connection.close())
    }
    const homeClient = await this.direct(home)
    await installKinds(homeClient, [...gatewayKinds, tenantResource, workerPoolResource])
    for (const [number, name] of names.entries()) {
      const { url: server, caCertificate: ca } = this.servers.get(name) as PartitionServer
      const spec = { number, server, caCertificate: ca, roles: [...(roles[name] ?? [])] }
      await homeClient.resource(partitionResource).create({ metadata: { name }, spec })
      // Each partition of Tenants has one with its name.
      if (roles[name]?.includes('Tenants'))
        await homeClient.resource(tenantResource).create({ metadata: { name, labels: { 'oarlock.dev/partition': name } }, spec: {} })
    }
    const log = (message: string, error?: unknown) => void this.logs.push(error instanceof Error ? `${message}: ${error.message}` : message)
    const state = new RoutingState(home, homeClient, { onPartitions: () => {}, log })
    this.state = state
    this.#stops.push(async () => state.close())
    await state.start()
    const scopes = new DiscoveredScopes(homeClient)
    const { outdated } = this
    const map = {
      ...{ home },
      get partitions() {
        return state.partitions
      },
      partitionOf: (table: string, name: string) => outdated.get(`${table} ${name}`) ?? state.partitionOf(table, name),
      hasClaims: (partition: string, table: string) => state.hasClaims(partition, table),
      partitionOfTenant: (tenant: string) => state.partitionOfTenant(tenant),
      partitionOfPool: (pool: string) => state.partitionOfPool(pool),
      tenantOf: (namespace: string) => state.tenantOf(namespace),
      copiesOfHome: () => state.copiesOfHome(),
      get relistFrom() {
        return state.relistFrom
      },
    }
    const gateway = new Gateway({
      authenticate: async ({ headers }) => {
        // `Bearer ann+ops+dev` is the user ann with the groups ops and dev.
        const [name, ...groups] = (headers.authorization?.replace(/^Bearer /, '') ?? '').split('+')
        return name && !this.revoked.has(name) ? { name, groups: name === 'admin' ? ['system:masters'] : groups } : undefined
      },
      map: () => map,
      partitionsEpoch: () => state.partitionsEpoch,
      waitForPartitions: epoch => state.waitForPartitions(epoch),
      connectionOf: name => connections.get(name),
      scopeOf: (group, plural) => scopes.scopeOf(group, plural),
      tenantsOf: async () => [...state.tenants()].map(String),
      announceRole: async () => {},
      claim: (table, name, owner) => claimObjectName(table, name, owner, { client: homeClient, onClaim: claim => state.noteClaim(claim) }),
      lookUp: (table, name) => state.lookUp(table, name),
      refreshMap: async (namespace, epoch) => {
        this.refreshes++
        outdated.clear()
        await state.refresh(namespace, epoch)
      },
      log,
      ...this.#more.gateway,
    })
    this.gateway = gateway
    this.#stops.push(async () => gateway.close())
    const listener = createServer(
      { cert: serving.certificate, key: serving.key, shouldUpgradeCallback: mayUpgrade },
      (request, response) => void gateway.serve(request, response),
    ).listen(0, '127.0.0.1')
    await once(listener, 'listening')
    listener.on('upgrade', (request, socket, head) => void gateway.upgrade(request, socket, head))
    this.#stops.push(async () => {
      gateway.close()
      listener.closeAllConnections()
      listener.close()
    })
    this.url = `https://127.0.0.1:${(listener.address() as AddressInfo).port}`
    this.client = await createClient({ cluster: { server: this.url, token: 'admin', caCertificate } })
    this.#stops.push(() => this.client.close())
  }
}
