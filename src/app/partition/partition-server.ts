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
import { AppStartError } from '../app-start-error.ts'
import { installOarlock, requireNoNewerCrds } from '../controllers/install.ts'
import { authenticateByTokenReview } from '../delegated-auth/authenticate-by-token-review.ts'
import { applyNamespacedManifests } from '../manifests/index.ts'
import type { PartitionConfiguration } from './configuration.ts'
import { credentialCopies } from './credential-copies.ts'
import { DataBinding } from './data-binding.ts'
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

const reportEveryMs = 15_000
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
    const claimed = await claimExisting(client, client, name, log)
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
  options: PartitionServerOptions & {
    readonly configuration: PartitionConfiguration
    /** Makes `dataDir` that of the partition although it has another one, whose data is lost. Default false. */
    readonly replaceData?: boolean
  },
): Promise<PartitionServer> {
  const { configuration, log } = options
  const { home, name, number, trust } = configuration
  const dataDir = resolve(options.dataDir)
  const identity = { name, number }
  const { dataId, isEmpty } = recordPartitionIdentity(dataDir, identity)
  const pkiDir = join(dataDir, 'pki')
  makeDirectories(pkiDir, 0o700)
  writeSharedTrust(pkiDir, trust)
  const { server, caCertificate, client: certificate } = home
  const homeClient = await createClient({
    cluster: { server, caCertificate, clientCertificate: certificate.certificate, clientKey: certificate.key },
    userAgent: 'oarlock-partition',
  })
  const binding = new DataBinding({ client: homeClient, identity, dataId, replace: options.replaceData === true })
  if (isEmpty)
    await binding.bindEmpty().catch(async error => {
      await homeClient.close()
      throw error
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
  for (const each of [...controllers, claimsOf(name, local, { signal, log, isOwner: () => binding.isOwn() })]) manager.add(each)
  manager.add(credentialCopies(local, name))
  // Before home is asked for anything: it may be down.
  void mapEpoch.follow(local, { signal, onError: error => log.info({ err: error }, 'the copies of Partitions cannot be read yet') })
  let notReported: string | undefined = `its address is not reported to home ${server} yet`
  let hasCopies = false
  const namespaces = local.resource(namespaceResource)
  await Promise.all([systemNamespace, workersNamespace].map(each => namespaces.apply({ metadata: { name: each } }, { force: true })))
  // Such as the right to read where the stores of this partition are: only objects without a namespace are copied.
  await applyNamespacedManifests(local)
  const address = { server: options.advertiseUrl ?? api.server.url, caCertificate: api.server.caCertificate }
  const report = async () => {
    try {
      await binding.reportAddress(address)
      notReported = undefined
    } catch (error) {
      if (error instanceof AppStartError) notReported = `${error.message}; ${error.hint}`
      throw error
    }
  }
  const joining = (async () => {
    await retried(report, {
      ...{ signal, onError: error => log.warn({ err: error, home: server }, 'the address of this partition is not reported to home yet') },
    })
    await manager.start()
    // Their kinds are copied too, and are not here before.
    await retried(async () => await enqueueCopies({ local, kinds }, controllers, signal), {
      ...{ signal, onError: error => log.info({ err: error }, 'the copies of this partition cannot be listed yet') },
    })
    hasCopies = true
    // Home may have been restored from a backup that is older than some of these objects.
    await retried(
      async () => {
        const claimed = await claimExisting(local, homeClient, name, log)
        if (claimed > 0) log.info({ partition: name, claimed }, 'names of existing objects were claimed')
      },
      { signal, onError: error => log.warn({ err: error }, 'the names of existing objects are not claimed yet') },
    )
    log.info({ partition: name, home: server }, 'the partition follows home')
    await Promise.all([reportKinds({ partition: name, home: homeClient, local, signal, log }), keepReported(report, { signal, log })])
  })().catch((error: unknown) => {
    if (!signal.aborted) log.error({ err: error, home: server }, 'the partition does not follow home')
  })
  return {
    ...{ server: api.server, identity },
    notReady: () => [
      ...(notReported === undefined ? [] : [notReported]),
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

/** Another server may have been given this address of the Partition by mistake: it is written again. */
async function keepReported(
  report: () => Promise<void>,
  { signal, log }: { readonly signal: AbortSignal; readonly log: Log },
): Promise<void> {
  while (!signal.aborted) {
    await sleep(reportEveryMs, undefined, { signal }).catch(() => {})
    if (signal.aborted) return
    await report().catch(error => {
      if (!signal.aborted && error instanceof AppStartError) log.error({ err: error }, 'this server is no longer that of its partition')
    })
  }
}

/** Writes the address of home into its Partition, which is created if it does not exist. */
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
function claimsOf(
  partition: string,
  local: Client,
  { signal, log, isOwner }: { readonly signal: AbortSignal; readonly log: Log; isOwner?(): Promise<boolean> },
): Controller {
  return claims({
    ...{ partition, local, claims: nameClaimResource, signal, isOwner },
    kinds: new Map(ownedKinds.map(kind => [kind.group === '' ? kind.plural : `${kind.plural}.${kind.group}`, kind])),
    onError: (error, what) => log.warn({ err: error }, what),
  })
}

/**
 * Claims the names of owned objects that a server has and that are not claimed: those from the time when it was no partition, or that home has forgotten. A name
 * that another partition has claimed is reported, and stays there.
 * @returns how many were claimed.
 */
async function claimExisting(local: Client, home: Client, partition: string, log: Log): Promise<number> {
  const claims = home.resource(nameClaimResource)
  const known = new Map((await claims.listAll({})).items.map(({ metadata, spec }) => [metadata.name, spec.partition]))
  let claimed = 0
  for (const kind of ownedKinds) {
    const resource = kind.group === '' ? kind.plural : `${kind.plural}.${kind.group}`
    const { items } = await local.resource(kind).listAll({})
    for (const { metadata } of items) {
      const { name } = metadata
      if (kind.plural === 'namespaces' && systemNamespaces.includes(name)) continue
      const owner = known.get(claimName(resource, name))
      if (owner !== undefined && owner !== partition)
        log.error(
          { resource, name, owner, partition },
          'an object of this partition is not found by its name, which another partition has claimed',
        )
      if (owner !== undefined) continue
      const tenant = kind.plural === 'namespaces' ? metadata.labels?.[tenantLabel] : undefined
      try {
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
