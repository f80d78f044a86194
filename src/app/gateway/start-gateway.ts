/**
 * @module app/gateway: the gateway as a role. Start reading here.
 * In: a configuration that home has issued, an address. Out: one Kubernetes API for all partitions.
 * Out of scope: where a request belongs, and how lists and watches are merged (`gateway/`).
 */
import { homeGenerationOf, notEstablishedIn } from '../../controllers/replication/index.ts'
import {
  Announcements,
  type ClientRequest,
  claimObjectName,
  DiscoveredScopes,
  Gateway,
  type GatewayUser,
  gatewayUser,
  mayUpgrade,
  Partition,
  type PartitionObject,
  type RequestLimitOptions,
  RoutingState,
  SeenVersion,
} from '../../gateway/index.ts'
import { type Client, createClient } from '../../kubernetes/client/index.ts'
import type { Log } from '../../kubernetes/controller/index.ts'
import { StatusError } from '../../kubernetes/object/index.ts'
import { ConnectionLimiter, connectionLimits } from '../../kubernetes/util/index.ts'
import { type Address, urlOf } from '../address.ts'
import { AccessReviewer } from '../delegated-auth/access-reviewer.ts'
import { authenticateByTokenReview, ttlMs } from '../delegated-auth/authenticate-by-token-review.ts'
import { makeRegistry } from '../endpoints/metrics.ts'
import { createMetricsHandler } from '../endpoints/metrics-endpoint.ts'
import type { GatewayConfiguration } from '../partition/configuration.ts'
import type { RoleProcess } from '../role-process.ts'
import { AccountPartitions } from './account-partitions.ts'
import { authenticate, connectionTrustMs } from './authenticate.ts'
import { ClientOfUser } from './client-of-user.ts'
import { startGatewayListener } from './gateway-listener.ts'
import { MovingReview } from './moving-review.ts'
import { usableTenants } from './usable-tenants.ts'
import { warnBeforeExpiry } from './warn-before-expiry.ts'

export type GatewayProcessOptions = {
  readonly configuration: GatewayConfiguration
  readonly listen: Address
  /** Default: `defaultRequestLimits`. */
  readonly limits?: Partial<RequestLimitOptions>
  readonly log: Log
}

/** A partition with what the gateway asks of it for itself. */
type Connection = { readonly partition: Partition; readonly client: Client; readonly review: MovingReview; readonly address: string }

const tooManyConnections = () =>
  new StatusError('ServiceUnavailable', 'this user has too many connections: close some, or retry later', {
    details: { retryAfterSeconds: 1 },
  })

/** @throws {AppStartError} if the address cannot be used. */
export async function startGateway({ configuration, listen, limits, log }: GatewayProcessOptions): Promise<RoleProcess> {
  const { home, frontProxy, serving, pageTokenKey } = configuration
  const stopWatchingExpiry = warnBeforeExpiry({ 'front proxy': frontProxy.certificate, serving: serving.certificate }, log)
  const seen = new SeenVersion()
  const registry = makeRegistry()
  const clientOf = async (server: string, caCertificate: string) => {
    const { certificate: clientCertificate, key: clientKey } = frontProxy
    const cluster = { server, caCertificate, clientCertificate, clientKey }
    return new ClientOfUser(await createClient({ cluster, userAgent: 'oarlock-gateway' }), gatewayUser)
  }
  const homeClient = await clientOf(home.server, home.caCertificate)
  const access = new AccessReviewer(homeClient)
  const connections = new Map<string, Connection>()
  let connecting: Promise<void> = Promise.resolve()
  const onPartitions = (partitions: readonly PartitionObject[]) => {
    connecting = connecting
      .then(() => connectTo(partitions))
      .catch(error => log.error({ err: error }, 'the partitions cannot be connected to'))
  }
  /** Connections to an address that has changed are closed: watches continue on new ones. */
  const connectTo = async (partitions: readonly PartitionObject[]) => {
    const names = new Set<string>()
    for (const { metadata, spec } of partitions) {
      const { name } = metadata
      const { server = name === home.name ? home.server : undefined, caCertificate = home.caCertificate } = spec
      if (server === undefined) continue
      names.add(name)
      const address = `${server}\n${caCertificate}`
      const known = connections.get(name)
      if (known?.address === address) continue
      const { certificate, key } = frontProxy
      const partition = known?.partition ?? new Partition({ name, server, caCertificate, certificate, key }, seen)
      const client = await clientOf(server, caCertificate)
      const tokenReview = authenticateByTokenReview(client, { authenticatedMs: ttlMs.authenticated - connectionTrustMs })
      known?.review.move(tokenReview)
      connections.set(name, { partition, client, review: known?.review ?? new MovingReview(tokenReview), address })
      if (!known) continue
      await Promise.all([partition.move({ server, caCertificate }), known.client.close()])
    }
    for (const [name, { partition, client }] of connections) {
      if (names.has(name)) continue
      connections.delete(name)
      await Promise.all([partition.close(), client.close()])
    }
  }
  const state = new RoutingState(home.name, homeClient, {
    onPartitions,
    log: (message, error) => log.warn({ err: error }, message),
  })
  let isMapRead = false
  const starting = new AbortController()
  const reading = state.start(starting.signal).then(async () => {
    await connecting
    isMapRead = true
    log.info({ partitions: [...state.partitions.keys()] }, 'the routing map is read')
  })
  const announcements = new Announcements({
    home: home.name,
    client: homeClient,
    connectionOf: name => connections.get(name)?.partition,
    generationOf: homeGenerationOf,
  })
  const limiter = new ConnectionLimiter(connectionLimits().server)
  const accounts = new AccountPartitions({
    partitionOf: namespace => state.partitionOf('namespaces', namespace),
    lookUp: namespace => state.lookUp('namespaces', namespace),
  })
  const authenticateRequest = async (request: ClientRequest): Promise<GatewayUser | undefined> => {
    const user = await authenticate(request, {
      home: home.name,
      partitionOf: (namespace, remoteAddress) => accounts.partitionOf(namespace, remoteAddress),
      reviewAt: name => connections.get(name)?.review.review,
    })
    if (user && !limiter.admit(request.socket, user.name)) throw tooManyConnections()
    return user
  }
  const scopes = new DiscoveredScopes(homeClient)
  const gateway = new Gateway({
    authenticate: authenticateRequest,
    map: () => state,
    connectionOf: name => connections.get(name)?.partition,
    scopeOf: (group, plural) => scopes.scopeOf(group, plural),
    tenantsOf: (user, wanted) => usableTenants(user, wanted === undefined ? state.tenants() : [wanted], access),
    announceRole: (partition, role) => announcements.announce(partition, role),
    claim: (table, name, owner) => claimObjectName(table, name, owner, { client: homeClient, onClaim: claim => state.noteClaim(claim) }),
    lookUp: (table, name) => state.lookUp(table, name),
    refreshMap: (namespace, epoch) => state.refresh(namespace, epoch),
    definitionMissing: definition =>
      notEstablishedIn(
        definition,
        [...state.partitions.keys()].filter(name => name !== home.name),
      ),
    partitionsEpoch: () => state.partitionsEpoch,
    waitForPartitions: epoch => state.waitForPartitions(epoch),
    tokenKey: Buffer.from(pageTokenKey),
    ...{ registry, limits },
    log: (message, error) => log.error({ err: error }, message),
  })
  const notReady = () => (isMapRead ? [] : [`the routing map is not read from home ${home.server} yet`])
  const metrics = createMetricsHandler(homeClient, registry)
  const closeAll = async () => {
    stopWatchingExpiry()
    gateway.close()
    state.close()
    starting.abort()
    await reading.catch(() => {})
    await Promise.all([...connections.values()].flatMap(({ partition, client }) => [partition.close(), client.close()]))
    await homeClient.close()
  }
  const listener = await startGatewayListener({
    ...{ listen, serving, clientCa: home.caCertificate, limiter, notReady },
    onError: error => log.error({ err: error }, 'a connection failed'),
    mayUpgrade,
    upgrade: (request, socket, head) => void gateway.upgrade(request, socket, head),
    serve: (request, response) => gateway.serve(request, response),
    metrics: async (request, response) => await metrics(request, response, { user: await authenticateRequest(request) }),
  }).catch(async error => {
    await closeAll()
    throw error
  })
  return {
    url: urlOf('https', listener.address),
    notReady,
    async stop() {
      // The watches of clients end, so that the listener can close.
      gateway.close()
      await listener.close()
      await closeAll()
    },
  }
}
