/**
 * @module app/api-server: the API server as a role, with the rules for Oarlock's workers. Start reading here.
 * In: a data directory and an address. Out: the server, routes for other roles of the process (`mount-table.ts`), clients in this process.
 * Workers are restricted by `authorize-worker.ts` and `worker-admission.ts`, whether this machine starts them or they joined.
 * Out of scope: the server itself (`kubernetes/server/`), the same rules on a Kubernetes API server (`../manifests/`).
 */
import { join } from 'node:path'
import { apiGroup, labels, runResource, stackResource } from '../../api/index.ts'
import { type Client, createClient } from '../../kubernetes/client/index.ts'
import type { Log } from '../../kubernetes/controller/index.ts'
import { type AdmissionPlugin, type ApiServer, type AuditOptions, type ServerOptions, startServer } from '../../kubernetes/server/index.ts'
import { type Address, formatAddress } from '../address.ts'
import { runAdmission, runDeletion } from '../run-fields.ts'
import { stackAdmission, stackDeletion } from '../stack-rights.ts'
import { toAppStartError } from '../to-app-start-error.ts'
import { startOnPreviousPort } from './api-port.ts'
import { makeAuthorizer, rightsAdmission } from './authorize.ts'
import { MountTable } from './mount-table.ts'
import { tenantMoves, tenantOfPartition } from './tenant-partition.ts'
import { tenantUse } from './tenant-use.ts'
import { namespaceDeletion, workerAdmission } from './worker-admission.ts'
import { type RunsOfWorker, workerFacts } from './worker-facts.ts'

export type ApiServerRoleOptions = {
  /** Holds the database, keys and certificates of the API server, and the kubeconfig of its administrator. */
  dataDir: string
  /** Port 0 means the port of the previous process if it is free, else any. */
  listen: Address
  /** Additional host names and IP addresses for the TLS certificate. */
  names?: readonly string[] | undefined
  /** Prefixes of the routes that other roles of this process serve on the same address. Default: none. */
  mounts?: readonly string[]
  /** Default: no audit log. */
  audit?: AuditOptions | undefined
  log?: Log | undefined
  /** The partition that the server is, which its Workers have as a label: the Tenant of a Namespace is one of this partition, and is set by those only who may `use` it. Default: none. */
  tenants?: { readonly partition: string; readonly isHome: boolean } | undefined
} & Pick<
  ServerOptions,
  'partition' | 'frontProxy' | 'reviewToken' | 'mapEpoch' | 'establishCrd' | 'owners' | 'storage' | 'namespaceDefaults'
>

/** The API server with the rules for workers, as a role of a process. */
export type ApiServerRole = {
  readonly server: ApiServer
  readonly mounts: MountTable
  /** Sets a faster way for the rules for workers to find the Runs of a worker. Default: the stored Runs are searched. */
  setRunsOfWorker(runsOf: RunsOfWorker): void
  /** A client in this process, without a socket. */
  connect(user: { name: string; groups: string[] }, userAgent: string): Promise<Client>
}

const processTokenTtlMs = 10 * 365 * 24 * 3_600_000

const runsTable = `${runResource.plural}.${apiGroup}`
const stacksTable = `${stackResource.plural}.${apiGroup}`

/** @throws {AppStartError} if the data directory or the address cannot be used. */
export async function startApiServer({
  dataDir,
  listen,
  names,
  mounts = [],
  audit,
  log,
  tenants,
  ...partition
}: ApiServerRoleOptions): Promise<ApiServerRole> {
  const table = new MountTable(mounts)
  let server: ApiServer | undefined
  let cachedRunsOf: RunsOfWorker = () => []
  const facts = workerFacts(
    () => server,
    worker => cachedRunsOf(worker),
  )
  const byWorkers = workerAdmission(facts, tenants?.partition)
  const ofPartition = tenants && tenantOfPartition(tenants.partition, () => server)
  const ofNamespace: AdmissionPlugin = (...write) =>
    byWorkers.get('namespaces')?.(...write) ?? (ofPartition && (tenantUse(...write) ?? ofPartition(...write)))
  const start = async (address: Address) =>
    await startServer({
      dataDir,
      listen: address,
      unixSocket: join(dataDir, 'api.sock'),
      log,
      audit,
      tlsNames: names,
      ...partition,
      authorize: makeAuthorizer(facts),
      admissionPlugins: new Map([
        ...byWorkers,
        ['namespaces', ofNamespace] as const,
        ...rightsAdmission(),
        ...(tenants?.isHome ? tenantMoves(() => server) : []),
        [runsTable, runAdmission],
        [
          stacksTable,
          stackAdmission({
            // While the server starts, nothing is known about a namespace: the strictest policy.
            namespaceLabels: name =>
              server ? server.getObject('namespaces', undefined, name)?.metadata.labels : { [labels.approval]: 'FourEyes' },
            nowMs: Date.now,
          }),
        ],
      ]),
      deletionPlugins: new Map([
        ['namespaces', namespaceDeletion(facts)],
        [runsTable, runDeletion],
        [stacksTable, stackDeletion],
      ]),
      mounts: table.mounts(),
    })
  try {
    server = await startOnPreviousPort(listen, join(dataDir, 'kubeconfig'), start)
  } catch (error) {
    throw toAppStartError(error, { dataDir, listen: formatAddress(listen) })
  }
  const started = server
  return {
    server: started,
    mounts: table,
    setRunsOfWorker: next => {
      cachedRunsOf = next
    },
    connect: async (user, userAgent) =>
      await createClient({
        cluster: {
          server: started.url,
          caCertificate: started.caCertificate,
          token: started.issueToken({ ...user, ttlMs: processTokenTtlMs }),
        },
        local: started.connect(),
        userAgent,
      }),
  }
}
