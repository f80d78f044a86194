import type { AddressInfo } from 'node:net'
import { networkInterfaces } from 'node:os'
import { join, resolve } from 'node:path'
import { type KubeObject, StatusError } from '../object/index.ts'
import { mayUpgrade } from '../object/route.ts'
import {
  ConnectionLimiter,
  fullDiskReasons,
  type Log,
  openFilesError,
  residentBytes,
  StreamLimiter,
  silentLog,
  yaml,
} from '../util/index.ts'
import { type Audit, type AuditOptions, openAudit } from './audit/index.ts'
import {
  type AdmissionPlugin,
  Authorization,
  type AuthorizerPlugin,
  type DeletionPlugin,
  FrontProxy,
  type FrontProxyOptions,
  type IssueTokenOptions,
  kubeconfigText,
  NodeAuthorizer,
  nodeRestriction,
  openIdDocument,
  Rbac,
  ReviewedTokens,
  type ReviewToken,
  readCertificates,
  readKubeletClient,
  ServiceAccountTokens,
  SigningKey,
  Tokens,
} from './auth/index.ts'
import { createDirectories, withFileErrors, withWriteErrors } from './data-directory.ts'
import { Discovery, kubernetesVersion } from './discovery/index.ts'
import { Fairness, type FairnessLimits } from './fairness/index.ts'
import {
  backupMount,
  type HandlerOptions,
  keyRotationMount,
  type Listener,
  type LocalConnection,
  LocalConnections,
  type Mount,
  makeHandler,
  makeListener,
  upgradeConnection,
} from './http/index.ts'
import { KubeletProxy } from './kubelet/index.ts'
import { advertiseAddress, kubernetesServiceNames, Lifecycle, type OwnerLookUp } from './lifecycle/index.ts'
import { countConnections, listenOn, urlHost } from './listen.ts'
import { RequestMetrics, ServerMetrics, type ServerStats } from './metrics/index.ts'
import { Quotas } from './quota/index.ts'
import { Registry } from './registry/index.ts'
import { keyOf, PagedLists, type Services } from './rest/index.ts'
import { Reviews, rbacAdmissionPlugins } from './review/index.ts'
import { encryptionKeyNames, parseEntry, ServerStartError, Store, writeAtomically, writeSecretFile } from './storage/index.ts'
import { listenOnUnixSocket } from './unix-socket.ts'
import { WatchManager } from './watch/index.ts'

export type ServerOptions = {
  /** Created with mode 0700 when missing; holds `oarlock.db`, `keys/`, `pki/` and `kubeconfig` (0600). */
  dataDir: string
  /** Default 127.0.0.1:7466; port 0 picks a free one. */
  listen?: { host?: string; port?: number }
  /**
   * Path of a Unix socket (mode 0600) for clients on this machine: the same API with the same credentials and limits, without TLS. It should
   * be in `dataDir`, whose lock other servers respect; a socket at this path is replaced. If it cannot be used, for example because the path
   * is longer than 107 bytes, the reason is logged and `unixSocketUrl` is undefined. Default: none.
   */
  unixSocket?: string
  /** 0 to 63, part of every resource version. Default 0. */
  partition?: number
  /** Proxies that authenticate users and name them in headers, such as the gateway. Default: none. */
  frontProxy?: FrontProxyOptions | undefined
  /** Asks another server about a bearer token that this one does not know. Default: such a token is invalid. */
  reviewToken?: ReviewToken | undefined
  /**
   * In a partition: the newest resource version of home's map that it has a copy of, for gateways whose map is older; undefined: not read yet. Call
   * `mapChanged` of the server when it has risen. Default: none.
   */
  mapEpoch?: (() => number | undefined) | undefined
  /** Default: silent. */
  log?: Log
  /** Additional routes on the TLS listener. */
  mounts?: readonly Mount[]
  /**
   * Called first for every request: true allows it, a string denies it with that reason, undefined leaves the decision to the default:
   * `system:masters` may do everything, other users what RBAC allows.
   */
  authorize?: AuthorizerPlugin
  /** By table (see `getObject`): called before an object of that kind is written. For RBAC's kinds, after the check against privilege escalation. */
  admissionPlugins?: ReadonlyMap<string, AdmissionPlugin>
  /** By table: called before a user deletes an object of that kind. */
  deletionPlugins?: ReadonlyMap<string, DeletionPlugin>
  /**
   * Called with each write of a CustomResourceDefinition whose names are accepted and that was never Established: the returned text is why it is not
   * Established yet (reason `NotInAllPartitions`), and its kinds are not served. undefined: it is. A change of an annotation asks again. Default: it is.
   */
  establishCrd?: (crd: KubeObject) => string | undefined
  /** In a partition: finds owners of its objects in others. Default: an object whose owner is not stored here is deleted. */
  owners?: OwnerLookUp | undefined
  /** Additional names and addresses in the serving certificate, next to `listen.host` and those of this machine. */
  tlsNames?: readonly string[]
  /** Default true: each namespace has the ServiceAccount `default` and the ConfigMap `kube-root-ca.crt`. */
  namespaceDefaults?: boolean
  storage?: { synchronous?: 'FULL' | 'OFF' }
  /** Where to log who changed what. Default: nowhere. */
  audit?: AuditOptions | undefined
  /** Limits on concurrent requests, per user and in total. */
  limits?: Partial<FairnessLimits>
}

export type ApiServer = {
  readonly url: string
  readonly port: number
  /** `unix:///path` of the option `unixSocket`. */
  readonly unixSocketUrl: string | undefined
  /** PEM. */
  readonly caCertificate: string
  readonly kubeconfigPath: string
  /** The administrator's bearer token, as in the kubeconfig. */
  readonly adminToken: string
  /** The same API for a client of this process, without a socket: `createClient({ cluster, local: server.connect() })`. */
  connect(): LocalConnection
  /** A signed bearer token. It is not stored, and stays valid across restarts until `ttlMs` has passed or the object it is bound to is deleted. */
  issueToken(user: IssueTokenOptions): string
  /** To be called when `mapEpoch` has risen: gateways learn of it before anything that is written later. */
  mapChanged(): void
  /** The stored object; undefined when it does not exist. `table` is the plural with the group, except for core kinds: `leases.coordination.k8s.io`. */
  getObject(table: string, namespace: string | undefined, name: string): KubeObject | undefined
  /**
   * The newest version of an object, also one that is not on disk yet: what an admission plugin decides from, so that its decision holds for
   * requests that were sent together.
   */
  newestObject(table: string, namespace: string | undefined, name: string): KubeObject | undefined
  /**
   * Sets annotations of an object, if it exists. Called by an admission plugin, they are durable before the write that it decides on, or in the
   * same commit.
   */
  annotate(table: string, namespace: string | undefined, name: string, annotations: Readonly<Record<string, string>>): void
  /** The stored objects of all namespaces whose selectable field has the value, such as `spec.workerName`. Only these are parsed. */
  listObjects(table: string, selectableField: string, value: string): KubeObject[]
  /** The stored objects of a namespace; undefined: all, of a cluster-scoped kind too. */
  objectsIn(table: string, namespace: string | undefined): KubeObject[]
  /** Whether a namespace has objects of the table. */
  hasObjects(table: string, namespace: string): boolean
  stats(): ServerStats
  /** The content of `/metrics` in Prometheus' text format, without the metrics of the process. */
  metrics(): Promise<string>
  /**
   * Copies the database to `path` while the server runs: consistent, on disk, mode 0600, replacing an existing file atomically. The
   * copy holds every object, with Secrets encrypted, but not the keys that decrypt them, nor what is in `pki/`.
   * @throws {StatusError} TooManyRequests while another backup is in progress; an Error when the file cannot be written.
   */
  backUp(path: string): Promise<void>
  /** Stops accepting connections, ends watches, finishes writes. Connections still busy after `graceMs` (default 5,000) are closed. */
  close(options?: { graceMs?: number }): Promise<void>
}

const maxWatchBufferBytes = 16 * 1024 * 1024

/**
 * Starts a Kubernetes-compatible API server on a data directory.
 * @throws {ServerStartError} with a `code` for programs and a message that tells people what to do.
 */
export async function startServer(options: ServerOptions): Promise<ApiServer> {
  const { listen: { host = '127.0.0.1', port = 7466 } = {}, partition, log = silentLog, mounts = [], storage } = options
  const dataDir = resolve(options.dataDir)
  const pkiDir = join(dataDir, 'pki')
  createDirectories(dataDir, pkiDir, log)

  const store = await Store.open({
    dataDir,
    partition,
    synchronous: storage?.synchronous,
    log: message => log.error({ dataDir }, message),
  })
  let listener: Listener | undefined
  let audit: Audit | undefined
  const watches = new WatchManager(store, error => log.error({ err: error }, 'a watch was ended by an error'))
  let lifecycle: Lifecycle | undefined
  try {
    audit = options.audit && openAudit(options.audit, text => yaml().parse(text), log)
    const registry = new Registry(store, options.establishCrd)
    const rbac = new Rbac(store)
    const authorization = new Authorization(rbac, new NodeAuthorizer(store), options.authorize)
    const nodes = nodeRestriction(store)
    const quotas = new Quotas(store)
    const frontProxy = options.frontProxy && new FrontProxy(options.frontProxy)
    const services: Services = {
      store,
      registry,
      quotas,
      watches,
      pages: new PagedLists(),
      maxWatchBufferBytes,
      mapEpoch: options.mapEpoch,
    }
    const serviceAccounts = new ServiceAccountTokens(
      store,
      withWriteErrors(dataDir, () => new SigningKey(pkiDir)),
    )
    const reviewedTokens = options.reviewToken && new ReviewedTokens(options.reviewToken, () => store.nowMs)
    const tokens = withWriteErrors(dataDir, () => new Tokens(pkiDir, serviceAccounts, store.table('secrets'), reviewedTokens))
    const names = [...kubernetesServiceNames, ...(options.tlsNames ?? [])]
    const certificates = await withFileErrors(dataDir, () => readCertificates(pkiDir, host, store.nowMs, names))
    lifecycle = new Lifecycle(store, registry, {
      serviceAccounts,
      quotas,
      caCertificate: certificates.ca,
      namespaceDefaults: options.namespaceDefaults ?? true,
      owners: options.owners,
      onError: (error, what) => log.error({ err: error }, what),
    })
    await lifecycle.start()
    let isStopping = false
    let url = ''
    const fairness = new Fairness(options.limits)
    const limiter = new ConnectionLimiter()
    let connections: (() => number) | undefined
    const requestMetrics = new RequestMetrics()
    const stats = (): ServerStats => {
      const { objects, bytes, historyBytes, writes, commits, failedWrites, queued, lastCommitMs, deferredWrites } = store.stats()
      const { inFlight, waiting, rejected } = fairness.stats()
      return {
        objects,
        objectBytes: bytes,
        historyBytes,
        watchers: watches.size,
        connections: connections?.() ?? 0,
        writes,
        commits,
        failedWrites,
        queuedWrites: queued,
        lastCommitMs,
        deferredWrites,
        inFlight,
        waitingRequests: waiting,
        rejectedRequests: rejected,
        auditEvents: audit?.log.stats.events ?? 0,
        lostAuditEvents: audit?.log.stats.lost ?? 0,
        rssBytes: residentBytes(),
      }
    }
    const metrics = new ServerMetrics({
      kubernetesVersion,
      requests: requestMetrics,
      stats,
      resourceCounts: () =>
        [...registry.storedKinds()].map(({ group, plural, storageName }) => ({
          group,
          resource: plural,
          objects: store.table(storageName).size,
        })),
    })
    const allMounts: readonly Mount[] = [
      ...mounts,
      backupMount({
        store,
        dataDir,
        authorize: authorization.authorize,
        onInternalError: error => log.error({ err: error }, 'a backup failed'),
      }),
      keyRotationMount({
        store,
        keyNames: () => encryptionKeyNames(dataDir),
        authorize: authorization.authorize,
        onInternalError: error => log.error({ err: error }, 'the rotation of the encryption key failed'),
      }),
    ]
    const handlerOptions: HandlerOptions = {
      services,
      discovery: new Discovery(registry),
      tokens,
      reviewedTokens,
      frontProxy,
      authorize: authorization.authorize,
      reviews: new Reviews({ store, authorization, tokens, reviewedTokens, serviceAccounts }),
      kubelets: new KubeletProxy({ store, credentials: () => readKubeletClient(pkiDir, store.nowMs), streams: new StreamLimiter() }),
      admissionPlugins: inOrder(rbacAdmissionPlugins(rbac, authorization), nodes.admission, options.admissionPlugins),
      deletionPlugins: inOrder(nodes.deletion, options.deletionPlugins),
      openId: path => openIdDocument(path, serviceAccounts, url),
      mounts: allMounts,
      fairness,
      connections: limiter,
      requestMetrics,
      metrics,
      health: { storageFailure: () => store.failure, fullDisk: () => fullDiskReasons(dataDir)[0], isStopping: () => isStopping },
      auditor: audit?.auditor,
      onInternalError: (error, request) =>
        log.error({ err: error, method: request.method, url: request.url?.split('?')[0] }, 'a request failed'),
    }
    const handler = makeHandler(handlerOptions)
    listener = makeListener({
      connections: limiter,
      tls: frontProxy ? { ...certificates, ca: [certificates.ca, frontProxy.caCertificate] } : certificates,
      handler,
      upgrades: { accept: mayUpgrade, serve: (...request) => upgradeConnection(handlerOptions, ...request) },
      nodeHttpPrefixes: allMounts.map(mount => mount.prefix),
      onTlsError: error => log.debug({ err: error }, 'a TLS handshake failed'),
      onServerError: error => log.error({ err: error, reason: openFilesError(error) }, 'failed to accept a connection'),
    })
    const locals = new LocalConnections(handler, path => allMounts.some(({ prefix }) => path.startsWith(prefix)))
    const { server: https, plainServer } = listener
    connections = countConnections(https, plainServer)
    await listenOn(https, host, port)
    const { address, port: actualPort } = https.address() as AddressInfo
    await lifecycle.publishEndpoint({ address: advertiseAddress(address, networkInterfaces()), port: actualPort })
    url = `https://${urlHost(host)}:${actualPort}`
    const unixSocketUrl = options.unixSocket && (await listenOnUnixSocket(plainServer, resolve(options.unixSocket), log))
    const kubeconfigPath = join(dataDir, 'kubeconfig')
    withWriteErrors(dataDir, () => writeSecretFile(kubeconfigPath, kubeconfigText({ url, ca: certificates.ca, token: tokens.adminToken })))
    const { foundFormat = 0, compactedBytes = 0, reencryptionError } = store.report ?? {}
    if (reencryptionError !== undefined)
      log.warn(
        { dataDir, err: reencryptionError },
        'some Secrets are still in clear text or encrypted with an old key: the next start tries again',
      )
    log.info({ url, dataDir, objects: store.stats().objects, foundFormat, compactedBytes }, 'API server is listening')

    const running = { lifecycle, listener }
    let closing: Promise<void> | undefined
    return {
      url,
      port: actualPort,
      unixSocketUrl,
      caCertificate: certificates.ca,
      kubeconfigPath,
      adminToken: tokens.adminToken,
      connect: () => locals.connect(),
      issueToken: user => tokens.issue(user, store.nowMs),
      mapChanged() {
        const epoch = options.mapEpoch?.()
        if (epoch !== undefined) watches.mapChanged(epoch)
      },
      getObject(table, namespace, name) {
        const entry = store.table(table).get(keyOf({ namespace, name }))
        return entry && parseEntry(entry)
      },
      newestObject(table, namespace, name) {
        const entry = store.head(store.table(table), keyOf({ namespace, name }))
        return entry && parseEntry(entry)
      },
      annotate(table, namespace, name, annotations) {
        const before = store.head(store.table(table), keyOf({ namespace, name }))
        if (!before) return
        const object = parseEntry(before)
        const metadata = { ...object.metadata, annotations: { ...object.metadata.annotations, ...annotations } }
        // The write that follows fails with it, and reports it.
        store.put(store.table(table), before, { ...object, metadata }).catch(() => {})
      },
      listObjects(table, selectableField, value) {
        const found = store.table(table)
        const index = found.fieldNames.indexOf(selectableField)
        if (index < 0) return []
        return [...found.values()].filter(({ fields }) => fields?.[index] === value).map(parseEntry)
      },
      objectsIn(table, namespace) {
        const found = store.table(table)
        return (namespace === undefined ? [...found.values()] : found.inNamespace(namespace)).map(parseEntry)
      },
      hasObjects: (table, namespace) => store.table(table).inNamespace(namespace).length > 0,
      stats,
      metrics: () => metrics.server(),
      backUp: path =>
        writeAtomically(
          resolve(path),
          temporary => store.backUp(temporary),
          () => {},
        ),
      close({ graceMs = 5_000 } = {}) {
        closing ??= (async () => {
          isStopping = true
          await running.listener.stop(graceMs, () => watches.close())
          locals.close()
          await running.lifecycle.stop()
          await store.close()
          await audit?.log.close()
        })()
        return closing
      },
    }
  } catch (error) {
    // Its timers would retain the whole store in a process that starts another server, on another port.
    await listener?.stop(0, () => {})
    watches.close()
    await lifecycle?.stop()
    await store.close()
    await audit?.log.close()
    if (error instanceof StatusError && error.code === 507) {
      throw new ServerStartError('DiskFull', `the disk of ${dataDir} is full: free some space and restart the server; no data was lost`, {
        cause: error,
      })
    }
    throw error
  }
}

type Plugin = (...request: never[]) => string | undefined

/** Calls the plugins of each table in order, until one rejects: a custom plugin replaces none, it is called for what the server accepts. */
function inOrder<P extends Plugin>(...maps: (ReadonlyMap<string, P> | undefined)[]): ReadonlyMap<string, P> {
  const all = new Map<string, P>()
  for (const map of maps)
    for (const [table, plugin] of map ?? []) {
      const first = all.get(table)
      all.set(table, first ? (((...request) => first(...request) ?? plugin(...request)) as P) : plugin)
    }
  return all
}
