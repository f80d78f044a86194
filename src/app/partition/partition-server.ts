import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { oarlockResources, systemNamespace, tenantResource, workerPoolResource, workersNamespace } from '../../api/index.ts'
import { claims } from '../../controllers/claims/index.ts'
import { enqueueCopies, replication } from '../../controllers/replication/index.ts'
import {
  claimName,
  clusterKindClasses,
  gatewayKinds,
  nameClaimResource,
  partitionResource,
  systemNamespaces,
  tenantLabel,
} from '../../gateway/index.ts'
import { type Client, crdResource, createClient, installKinds, namespaceResource } from '../../kubernetes/client/index.ts'
import { type Controller, type Log, Manager } from '../../kubernetes/controller/index.ts'
import { describeResource, isReason, type Resource, StatusError } from '../../kubernetes/object/index.ts'
import { type ApiServer, type AuditOptions, frontProxyAuthority, writeSharedTrust } from '../../kubernetes/server/index.ts'
import { makeDirectories } from '../../kubernetes/util/index.ts'
import type { Address } from '../address.ts'
import { type ApiServerRoleOptions, startApiServer } from '../api-server/api-server.ts'
import { installOarlock, requireNoNewerCrds } from '../controllers/install.ts'
import { authenticateByTokenReview } from '../delegated-auth/authenticate-by-token-review.ts'
import { applyNamespacedManifests } from '../manifests/index.ts'
import type { PartitionConfiguration } from './configuration.ts'
import { credentialCopies } from './credential-copies.ts'
import { EstablishCrds } from './establish-crds.ts'
import { homeNumber, type PartitionIdentity, recordPartitionIdentity } from './identity.ts'
import { gatewayProxyName } from './issue-configuration.ts'
import { MapEpoch } from './map-epoch.ts'
import { reportKinds } from './report-kinds.ts'

export type PartitionServerOptions = {
  /** Holds the database, keys and certificates of the API server. */
  readonly dataDir: string
  readonly listen: Address
  /** Additional host names and IP addresses for the TLS certificate. */
  readonly names?: readonly string[]
  /** The URL at which gateways and other partitions reach the server. Default: that of the listener. */
  readonly advertiseUrl?: string | undefined
  readonly audit?: AuditOptions | undefined
  readonly log: Log
} & Pick<ApiServerRoleOptions, 'storage' | 'namespaceDefaults'>

export type PartitionServer = {
  readonly server: ApiServer
  readonly identity: PartitionIdentity
  /** Why it is not what the gateway takes it for yet; empty if it is. */
  notReady(): readonly string[]
  stop(options: { graceMs: number }): Promise<void>
}

const partitionUser = { name: 'oarlock:partition', groups: ['system:masters'] }

/**
 * Starts the home partition: an API server that has the routing map, and what the other partitions copy. A server that was none before can become it:
 * what it has is claimed.
 * @throws {AppStartError} if the data directory or the address cannot be used.
 */
export async function startHome(options: PartitionServerOptions & { readonly name: string }): Promise<PartitionServer> {
  const { name, log } = options
  const dataDir = resolve(options.dataDir)
  const identity = { name, number: homeNumber }
  recordPartitionIdentity(dataDir, identity)
  const pkiDir = join(dataDir, 'pki')
  makeDirectories(pkiDir, 0o700)
  const { certificate: caCertificate } = await frontProxyAuthority(pkiDir, Date.now())
  const establish = new EstablishCrds(name)
  const mapEpoch = new MapEpoch()
  const frontProxy = { caCertificate, allowedNames: [gatewayProxyName] }
  const api = await startApiServer({
    ...options,
    dataDir,
    frontProxy,
    establishCrd: establish.decide,
    requiresTenantUse: true,
    mapEpoch: () => mapEpoch.value,
  })
  const client = await api.connect(partitionUser, 'oarlock-partition')
  const stopping = new AbortController()
  const { signal } = stopping
  const manager = new Manager({ client, log })
  try {
    await requireNoNewerCrds(client, dataDir)
    await installOarlock(client)
    await installKinds(client, gatewayKinds)
    await reportAddress(client, identity, options.advertiseUrl ?? api.server.url, api.server.caCertificate)
    const claimed = await claimExisting(client, client, name)
    if (claimed > 0) log.info({ partition: name, claimed }, 'names of existing objects were claimed')
    void mapEpoch.follow(client, { isHome: true, signal, onError: error => log.warn({ err: error }, 'the Partitions cannot be read') })
    establish.follow(client, { signal, onError: error => log.warn({ err: error }, 'the partitions cannot be read') })
    manager.add(claimsOf(name, client, { signal, log }))
    await manager.start()
  } catch (error) {
    stopping.abort()
    await manager.stop()
    await client.close()
    await api.server.close()
    throw error
  }
  return {
    ...{ server: api.server, identity },
    notReady: () => [],
    async stop(stopOptions) {
      stopping.abort()
      await manager.stop()
      await client.close()
      await api.server.close(stopOptions)
    },
  }
}

/**
 * Starts the API server of a partition other than home, and what it does there: it reports its address to home, and keeps copies of home's objects. While
 * home does not answer it serves what it has.
 * @throws {AppStartError} if the data directory or the address cannot be used.
 */
export async function startPartition(
  options: PartitionServerOptions & { readonly configuration: PartitionConfiguration },
): Promise<PartitionServer> {
  const { configuration, log } = options
  const { home, name, number, trust } = configuration
  const dataDir = resolve(options.dataDir)
  const identity = { name, number }
  recordPartitionIdentity(dataDir, identity)
  const pkiDir = join(dataDir, 'pki')
  makeDirectories(pkiDir, 0o700)
  writeSharedTrust(pkiDir, trust)
  const { server, caCertificate, client: certificate } = home
  const homeClient = await createClient({
    cluster: { server, caCertificate, clientCertificate: certificate.certificate, clientKey: certificate.key },
    userAgent: 'oarlock-partition',
  })
  const review = authenticateByTokenReview(homeClient)
  const mapEpoch = new MapEpoch()
  const api = await startApiServer({
    ...{ ...options, dataDir, partition: number, requiresTenantUse: true, mapEpoch: () => mapEpoch.value },
    frontProxy: { caCertificate: trust['front-proxy-ca.crt'], allowedNames: [gatewayProxyName] },
    async reviewToken(token, remoteAddress) {
      try {
        return await review(token, remoteAddress)
      } catch (cause) {
        const message = `the token is not known here, and home ${home.server} does not answer: ${(cause as Error).message}`
        throw new StatusError('ServiceUnavailable', message, { cause, details: { retryAfterSeconds: 1 } })
      }
    },
  })
  const local = await api.connect(partitionUser, 'oarlock-partition')
  const stopping = new AbortController()
  const { signal } = stopping
  const kinds = replicatedKinds()
  const controllers = replication({ local, partition: name, kinds })
  const manager = new Manager({ client: homeClient, log })
  for (const each of [...controllers, claimsOf(name, local, { signal, log })]) manager.add(each)
  manager.add(credentialCopies(local, name))
  // Before home is asked for anything: it may be down.
  void mapEpoch.follow(local, { signal, onError: error => log.info({ err: error }, 'the copies of Partitions cannot be read yet') })
  let isReported = false
  let hasCopies = false
  const namespaces = local.resource(namespaceResource)
  await Promise.all([systemNamespace, workersNamespace].map(each => namespaces.apply({ metadata: { name: each } }, { force: true })))
  // Such as the right to read where the stores of this partition are: only objects without a namespace are copied.
  await applyNamespacedManifests(local)
  const joining = (async () => {
    await retried(
      async () => {
        await reportAddress(homeClient, identity, options.advertiseUrl ?? api.server.url, api.server.caCertificate)
        isReported = true
      },
      { signal, onError: error => log.warn({ err: error, home: server }, 'the address of this partition is not reported to home yet') },
    )
    await manager.start()
    // Their kinds are copied too, and are not here before.
    await retried(async () => await enqueueCopies({ local, kinds }, controllers, signal), {
      ...{ signal, onError: error => log.info({ err: error }, 'the copies of this partition cannot be listed yet') },
    })
    hasCopies = true
    log.info({ partition: name, home: server }, 'the partition follows home')
    await reportKinds({ partition: name, home: homeClient, local, signal, log })
  })().catch((error: unknown) => {
    if (!signal.aborted) log.error({ err: error, home: server }, 'the partition does not follow home')
  })
  return {
    ...{ server: api.server, identity },
    notReady: () => [
      ...(isReported ? [] : [`its address is not reported to home ${server} yet`]),
      ...(hasCopies ? [] : [`the objects of home ${server} are not copied yet`]),
    ],
    async stop(stopOptions) {
      stopping.abort()
      await manager.stop()
      await Promise.all([joining, local.close(), homeClient.close()])
      await api.server.close(stopOptions)
    },
  }
}

/** Writes the address into the Partition, which is created if it does not exist. */
async function reportAddress(client: Client, { name, number }: PartitionIdentity, server: string, caCertificate: string): Promise<void> {
  const partitions = client.resource(partitionResource)
  const known = await partitions.getOrUndefined(name)
  if (!known) await partitions.create({ metadata: { name }, spec: { number, server, caCertificate, roles: [] } })
  else if (known.spec.server !== server || known.spec.caCertificate !== caCertificate)
    await partitions.patch(name, { spec: { server, caCertificate } } as object, { type: 'merge' })
}

/** Kinds that are copied, in the order in which they depend on each other. */
function replicatedKinds(): Resource<Record<string, unknown>>[] {
  const rbac = { group: 'rbac.authorization.k8s.io', version: 'v1', scope: 'Cluster' } as const
  const kinds = [
    crdResource,
    describeResource({ ...rbac, kind: 'ClusterRole', plural: 'clusterroles' }),
    describeResource({ ...rbac, kind: 'ClusterRoleBinding', plural: 'clusterrolebindings' }),
    describeResource({ group: 'scheduling.k8s.io', version: 'v1', scope: 'Cluster', kind: 'PriorityClass', plural: 'priorityclasses' }),
    describeResource({ group: 'storage.k8s.io', version: 'v1', scope: 'Cluster', kind: 'StorageClass', plural: 'storageclasses' }),
    describeResource({ group: 'networking.k8s.io', version: 'v1', scope: 'Cluster', kind: 'IngressClass', plural: 'ingressclasses' }),
    describeResource({ group: 'storage.k8s.io', version: 'v1', scope: 'Cluster', kind: 'CSIDriver', plural: 'csidrivers' }),
    ...[partitionResource, tenantResource, workerPoolResource],
  ] as unknown as Resource<Record<string, unknown>>[]
  const tables = new Set(kinds.map(({ plural, group }) => `${plural}.${group}`))
  const missing = Object.entries(clusterKindClasses).filter(([table, kindClass]) => kindClass === 'replicated' && !tables.has(table))
  if (missing.length > 0) throw new Error(`bug: ${missing.map(([table]) => table).join(', ')} are not copied`)
  return kinds
}

const ownedKinds = [
  namespaceResource,
  ...oarlockResources.filter(({ plural }) => plural === 'workers'),
  describeResource({ group: '', version: 'v1', scope: 'Cluster', kind: 'Node', plural: 'nodes' }),
  describeResource({ group: '', version: 'v1', scope: 'Cluster', kind: 'PersistentVolume', plural: 'persistentvolumes' }),
] as readonly Resource<unknown>[]

/** The controller that removes the claims of a partition. */
function claimsOf(partition: string, local: Client, { signal, log }: { readonly signal: AbortSignal; readonly log: Log }): Controller {
  return claims({
    ...{ partition, local, claims: nameClaimResource, signal },
    kinds: new Map(ownedKinds.map(kind => [kind.group === '' ? kind.plural : `${kind.plural}.${kind.group}`, kind])),
    onError: (error, what) => log.warn({ err: error }, what),
  })
}

/** Claims the names of owned objects that a server had before it became a partition. @returns how many were claimed. */
async function claimExisting(local: Client, home: Client, partition: string): Promise<number> {
  const claims = home.resource(nameClaimResource)
  let claimed = 0
  for (const kind of ownedKinds) {
    const resource = kind.group === '' ? kind.plural : `${kind.plural}.${kind.group}`
    const { items } = await local.resource(kind).listAll({})
    for (const { metadata } of items) {
      const { name } = metadata
      if (kind.plural === 'namespaces' && systemNamespaces.includes(name)) continue
      try {
        const tenant = kind.plural === 'namespaces' ? metadata.labels?.[tenantLabel] : undefined
        await claims.create({
          metadata: { name: claimName(resource, name) },
          spec: { resource, name, partition, ...(tenant && { tenant }) },
        })
        claimed++
      } catch (error) {
        if (!isReason(error, 'AlreadyExists')) throw error
      }
    }
  }
  return claimed
}

/** Calls `attempt` until it succeeds, with increasing delays. */
async function retried(
  attempt: () => Promise<void>,
  { signal, onError }: { readonly signal: AbortSignal; onError(error: unknown): void },
): Promise<void> {
  for (let delayMs = 200; !signal.aborted; delayMs = Math.min(delayMs * 2, 10_000)) {
    try {
      return await attempt()
    } catch (error) {
      if (signal.aborted) return
      onError(error)
      await sleep(delayMs, undefined, { signal }).catch(() => {})
    }
  }
}
