import { join, resolve } from 'node:path'
import { systemNamespace, workersNamespace } from '../../api/index.ts'
import { enqueueCopies, replication } from '../../controllers/replication/index.ts'
import { type Client, createClient, namespaceResource } from '../../kubernetes/client/index.ts'
import { Manager } from '../../kubernetes/controller/index.ts'
import { StatusError } from '../../kubernetes/object/index.ts'
import { writeSharedTrust } from '../../kubernetes/server/index.ts'
import { makeDirectories } from '../../kubernetes/util/index.ts'
import { startApiServer } from '../api-server/api-server.ts'
import { AppStartError } from '../app-start-error.ts'
import { authenticateByTokenReview } from '../delegated-auth/authenticate-by-token-review.ts'
import { rememberReviews } from '../delegated-auth/remembered-reviews.ts'
import { applyNamespacedManifests } from '../manifests/index.ts'
import { recordOwnPartition } from '../own-partition.ts'
import { bindDirectory, followBinding, isBound, isRejected } from './bind-directory.ts'
import { claimExisting } from './claim-existing.ts'
import { claimsOf } from './claims-of.ts'
import type { PartitionConfiguration } from './configuration.ts'
import { credentialCopies } from './credential-copies.ts'
import { ownersAtHome } from './find-owners.ts'
import { type PartitionDirectory, recordPartitionIdentity, writePartitionDirectory } from './identity.ts'
import { gatewayProxyName } from './issue-configuration.ts'
import { awaitMap, MapEpoch } from './map-epoch.ts'
import { type PartitionServer, type PartitionServerOptions, partitionUser } from './partition-server.ts'
import { removePartition } from './remove-partition.ts'
import { replicatedKinds } from './replicated-kinds.ts'
import { reportKinds } from './report-kinds.ts'
import { retried } from './retried.ts'

export type StartPartitionOptions = PartitionServerOptions & {
  readonly configuration: PartitionConfiguration
  /** The data directory that the Partition names is lost for good, and this one takes its place. Default false. */
  readonly replaceData?: boolean | undefined
  /** Ends the wait for home before the first start. Default: nothing ends it. */
  readonly signal?: AbortSignal | undefined
  /** Called once if the server waits for home before it serves, with the reason. */
  onWaiting?: ((reason: string) => void) | undefined
}

/** How long requests to a partition that is removed may take. */
const stopGraceMs = 1_000
/** How long a server that has objects waits for home before it serves them. */
const bindTimeoutMs = 3_000

/**
 * Starts the API server of a partition other than home, and what it does there: it reports its address to home, and keeps copies of home's objects. While
 * home does not answer it serves what it has; with an empty data directory it waits for home instead.
 * @throws {AppStartError} if the data directory or the address cannot be used, or another data directory is that of the Partition; the reason of `signal`.
 */
export async function startPartition(options: StartPartitionOptions): Promise<PartitionServer> {
  const { server, caCertificate, client } = options.configuration.home
  const homeClient = await createClient({
    cluster: { server, caCertificate, clientCertificate: client.certificate, clientKey: client.key },
    userAgent: 'oarlock-partition',
  })
  try {
    return await startPartitionOf(homeClient, options)
  } catch (error) {
    await homeClient.close()
    throw error
  }
}

async function startPartitionOf(homeClient: Client, options: StartPartitionOptions): Promise<PartitionServer> {
  const { configuration, log } = options
  const { home, name, number, trust } = configuration
  const { server } = home
  const dataDir = resolve(options.dataDir)
  const identity = { name, number }
  const found = recordPartitionIdentity(dataDir, identity)
  // Copies of a directory that was another one's, or older, say nothing about what this partition has known.
  let isMapKnown = found.isBound && found.keepClaimsUpTo !== undefined && !options.replaceData
  let directory = await bindBeforeServing(homeClient, found, dataDir, options)
  const pkiDir = join(dataDir, 'pki')
  makeDirectories(pkiDir, 0o700)
  writeSharedTrust(pkiDir, trust)
  // The server keeps a review for ten seconds itself.
  const review = rememberReviews(authenticateByTokenReview(homeClient, { authenticatedMs: 0 }))
  const mapEpoch = new MapEpoch()
  const api = await startApiServer({
    ...{ ...options, dataDir, partition: number, tenants: { partition: name, isHome: false } },
    mapEpoch: () => (isMapKnown ? mapEpoch.value : undefined),
    owners: ownersAtHome(homeClient),
    frontProxy: { caCertificate: trust['front-proxy-ca.crt'], allowedNames: [gatewayProxyName] },
    async reviewToken(token, remoteAddress) {
      try {
        return await review(token, remoteAddress)
      } catch (cause) {
        if (cause instanceof StatusError && cause.code === 429) throw cause
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
  const keepClaimsUpTo = () => directory.keepClaimsUpTo ?? Number.POSITIVE_INFINITY
  const isOwn = async (signal: AbortSignal) => await isBound(homeClient, directory, signal)
  for (const each of [...controllers, claimsOf(name, local, { signal, log, keepClaimsUpTo, isOwn })]) manager.add(each)
  manager.add(credentialCopies(local, name))
  // Before home is asked for anything: it may be down.
  void mapEpoch.follow(local, {
    signal,
    onRaised: () => api.server.mapChanged(),
    onError: error => log.info({ err: error }, 'the copies of Partitions cannot be read yet'),
  })
  const rejected = Promise.withResolvers<AppStartError>()
  let isReported = false
  let hasCopies = false
  const namespaces = local.resource(namespaceResource)
  await Promise.all([systemNamespace, workersNamespace].map(each => namespaces.apply({ metadata: { name: each } }, { force: true })))
  await recordOwnPartition(local, directory)
  // Such as the right to read where the stores of this partition are: only objects without a namespace are copied.
  await applyNamespacedManifests(local)
  const address = { server: options.advertiseUrl ?? api.server.url, caCertificate: api.server.caCertificate }
  const binding = { home: homeClient, dataDir, replaces: false, signal }
  const joining = (async () => {
    await retried(
      async () => {
        directory = await bindDirectory(directory, address, binding)
        await claimExisting({ local, home: homeClient, partition: name, keepClaimsUpTo: keepClaimsUpTo(), log, signal })
        isReported = true
      },
      {
        signal,
        isFinal: isRejected,
        onError: error => log.warn({ err: error, home: server }, 'the address of this partition is not reported to home yet'),
      },
    )
    let isRemoving = false
    const remove = () => {
      if (isRemoving) return
      isRemoving = true
      void removePartition({
        ...{ partition: name, homeName: home.name, home: homeClient, local, signal },
        stopServing: () => api.server.close({ graceMs: stopGraceMs }),
        recordRemoved: () => writePartitionDirectory(dataDir, { ...directory, isRemoved: true }),
        onError: error => log.warn({ err: error, home: server }, 'the deleted Partition of this server is not removed yet'),
      }).then(error => error && rejected.resolve(error))
    }
    void followBinding(directory, address, {
      ...binding,
      onDeleted: remove,
      onRemoved: () => isRemoving || rejected.resolve(givenUp(name)),
      onRejected: rejected.resolve,
      onMoved: other => log.warn({ partition: name, other }, 'the Partition has the address of another server, and gets that of this one'),
      onError: error => log.warn({ err: error, home: server }, 'the Partition of this server cannot be read'),
    })
    await manager.start()
    // Their kinds are copied too, and are not here before.
    await retried(async () => await enqueueCopies({ local, kinds }, controllers, signal), {
      ...{ signal, onError: error => log.info({ err: error }, 'the copies of this partition cannot be listed yet') },
    })
    hasCopies = true
    await awaitMap(homeClient, local, {
      signal,
      onError: error => log.info({ err: error }, 'the copies of Partitions are not complete yet'),
    })
    isMapKnown = true
    api.server.mapChanged()
    log.info({ partition: name, home: server }, 'the partition follows home')
    await reportKinds({ partition: name, home: homeClient, local, signal, log })
  })().catch((error: unknown) => {
    if (signal.aborted) return
    if (isRejected(error)) rejected.resolve(error)
    else log.error({ err: error, home: server }, 'the partition does not follow home')
  })
  return {
    ...{ server: api.server, identity, rejected: rejected.promise },
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

/**
 * Asks home before anything is served whether the data directory is that of the Partition. One that has never been is not served before home has answered:
 * its claims controller and its address would hide the objects of another one.
 */
async function bindBeforeServing(
  home: Client,
  directory: PartitionDirectory,
  dataDir: string,
  { configuration, replaceData = false, signal = new AbortController().signal, onWaiting, log }: StartPartitionOptions,
): Promise<PartitionDirectory> {
  const attempt = async () =>
    await bindDirectory(directory, undefined, {
      ...{ home, dataDir, replaces: replaceData, signal: AbortSignal.any([signal, AbortSignal.timeout(bindTimeoutMs)]) },
    })
  const { server } = configuration.home
  if (directory.isBound && !replaceData) {
    try {
      return await attempt()
    } catch (error) {
      if (isRejected(error) || signal.aborted) throw error
      log.warn({ err: error, home: server }, 'home does not answer: the partition serves what it has')
      return directory
    }
  }
  let isWaiting = false
  const bound = await retried(attempt, {
    ...{ signal, isFinal: isRejected },
    onError(error) {
      log.warn({ err: error, home: server }, 'the data directory is not known to home yet')
      if (!isWaiting) onWaiting?.(`home ${server} does not answer, and must confirm the new data directory ${dataDir} before it is served`)
      isWaiting = true
    },
  })
  signal.throwIfAborted()
  return bound as PartitionDirectory
}

const givenUp = (name: string) =>
  new AppStartError(
    'Partition',
    `partition ${JSON.stringify(name)} was removed, and its objects were given up`,
    'if it must come back, start the server again: it becomes a partition without roles, which has its objects',
  )
