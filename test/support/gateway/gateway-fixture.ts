/** A gateway before real embedded servers, all in this process. */
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Gateway, type GatewayMap, Partition, type PartitionRole, SeenVersion } from '../../../src/gateway/index.ts'
import { type Client, createClient } from '../../../src/kubernetes/client/index.ts'
import { alreadyExists } from '../../../src/kubernetes/object/index.ts'
import { type ApiServer, issueClientCertificate, readServingCertificates, startServer } from '../../../src/kubernetes/server/index.ts'

const clusterKinds = new Set(['namespaces', 'nodes', 'persistentvolumes', 'storageclasses'])

export class GatewayFixture implements AsyncDisposable {
  readonly servers = new Map<string, ApiServer>()
  /** By table and name. */
  readonly claims = new Map<string, string>()
  readonly logs: string[] = []
  url = ''
  client: Client = undefined as unknown as Client
  readonly #root = mkdtempSync(join(tmpdir(), 'oarlock-gateway-'))
  readonly #stops: (() => Promise<unknown>)[] = []

  /** `roles` by name; the first one is home. */
  static async start(roles: Record<string, readonly PartitionRole[]>): Promise<GatewayFixture> {
    const fixture = new GatewayFixture()
    try {
      await fixture.#start(roles)
    } catch (error) {
      await fixture[Symbol.asyncDispose]()
      throw error
    }
    return fixture
  }

  /** A client of one partition, past the gateway. */
  async direct(name: string): Promise<Client> {
    const server = this.servers.get(name) as ApiServer
    const client = await createClient({ kubeconfig: server.kubeconfigPath })
    this.#stops.push(() => client.close())
    return client
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const stop of this.#stops.reverse()) await stop()
    rmSync(this.#root, { recursive: true, force: true })
  }

  async #start(roles: Record<string, readonly PartitionRole[]>): Promise<void> {
    const names = Object.keys(roles)
    const [home = ''] = names
    const pki = join(this.#root, 'pki')
    mkdirSync(pki)
    const { ca: caCertificate } = await readServingCertificates(pki, '127.0.0.1', Date.now())
    const { certificate, key } = await issueClientCertificate(pki, { name: 'gateway', groups: [], ttlMs: 3_600_000 }, Date.now())
    const seen = new SeenVersion()
    const connections = new Map<string, Partition>()
    for (const [number, name] of names.entries()) {
      const server = await startServer({
        ...{ dataDir: join(this.#root, name), listen: { port: 0 }, partition: number, storage: { synchronous: 'OFF' } },
        frontProxy: { caCertificate, allowedNames: ['gateway'] },
      })
      this.servers.set(name, server)
      this.#stops.push(() => server.close({ graceMs: 100 }))
      const connection = new Partition({ name, server: server.url, caCertificate: server.caCertificate, certificate, key }, seen)
      connections.set(name, connection)
      this.#stops.push(() => connection.close())
    }
    const map: GatewayMap = {
      ...{ epoch: 1, home },
      partitions: new Map(names.map(name => [name, { roles: new Set(roles[name]) }])),
      partitionOf: (table, name) => this.claims.get(`${table} ${name}`),
      partitionOfTenant: tenant => (names.includes(tenant) ? tenant : undefined),
      partitionOfPool: () => undefined,
    }
    const gateway = new Gateway({
      authenticate: async ({ headers }) => {
        const name = headers.authorization?.replace(/^Bearer /, '')
        return name ? { name, groups: name === 'admin' ? ['system:masters'] : [] } : undefined
      },
      map: () => map,
      connectionOf: name => connections.get(name),
      scopeOf: async (_group, plural) => (clusterKinds.has(plural) ? 'Cluster' : 'Namespaced'),
      tenantsOf: async () => names.filter(name => roles[name]?.includes('Tenants')),
      claim: async (table, name, partition) => {
        const owner = this.claims.get(`${table} ${name}`)
        if (owner !== undefined) throw alreadyExists({ group: '', plural: table }, name)
        this.claims.set(`${table} ${name}`, partition)
      },
      log: (message, error) => void this.logs.push(error instanceof Error ? `${message}: ${error.message}` : message),
    })
    const listener = createServer((request, response) => void gateway.serve(request, response)).listen(0, '127.0.0.1')
    await once(listener, 'listening')
    this.#stops.push(async () => {
      listener.closeAllConnections()
      listener.close()
    })
    this.url = `http://127.0.0.1:${(listener.address() as AddressInfo).port}`
    this.client = await createClient({ cluster: { server: this.url, token: 'admin' } })
    this.#stops.push(() => this.client.close())
  }
}
