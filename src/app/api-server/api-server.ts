/**
 * @module app/api-server: the API server as a role, with the rules for Oarlock's workers. Start reading here.
 * In: a data directory and an address. Out: the server, routes for other roles of the process (`mount-table.ts`), clients in this process.
 * Workers that this machine starts are restricted by `authorize.ts`, those that joined by `authorize-joined.ts`.
 * Out of scope: the server itself (`kubernetes/server/`), the same rules on a Kubernetes API server (`../manifests/`).
 */
import { join } from 'node:path'
import { apiGroup, isEnded, labels, type Run, runResource, stackResource, workersNamespace } from '../../api/index.ts'
import { type Client, createClient } from '../../kubernetes/client/index.ts'
import type { Log } from '../../kubernetes/controller/index.ts'
import { type ApiServer, type AuditOptions, startServer } from '../../kubernetes/server/index.ts'
import { type Address, formatAddress } from '../address.ts'
import { credentialLabels, workerCredentialName } from '../join/index.ts'
import { runAdmission, runDeletion } from '../run-fields.ts'
import { stackAdmission, stackDeletion } from '../stack-rights.ts'
import { toAppStartError } from '../to-app-start-error.ts'
import { workerOf, workersGroup, workerUserName } from '../worker-identity.ts'
import { startOnPreviousPort } from './api-port.ts'
import { type AuthorizerFacts, makeAuthorizer, namespaceAdmission, rightsAdmission } from './authorize.ts'
import { workerAdmission } from './authorize-joined.ts'
import { MountTable } from './mount-table.ts'

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
}

/** The Runs that are assigned to a worker and have not ended. */
export type RunsOfWorker = (worker: string) => readonly Run[]

/** The API server with the rules for workers, as a role of a process. */
export type ApiServerRole = {
  readonly server: ApiServer
  readonly mounts: MountTable
  /** Sets a faster way for the rules for joined workers to find the Runs of a worker. Default: the stored Runs are searched. */
  setRunsOfWorker(runsOf: RunsOfWorker): void
  /** A client in this process, without a socket. */
  connect(user: { name: string; groups: string[] }, userAgent: string): Promise<Client>
  /** The credential of a worker that this machine starts. */
  issueWorkerToken(workerName: string): string
}

/** A worker's token outlives the longest Run. It grants access only to the Runs of its Worker (authorize.ts, store-access.ts). */
const workerTokenTtlMs = 30 * 24 * 3_600_000
const processTokenTtlMs = 10 * 365 * 24 * 3_600_000

const runsTable = `${runResource.plural}.${apiGroup}`
const stacksTable = `${stackResource.plural}.${apiGroup}`

/** @throws {AppStartError} if the data directory or the address cannot be used. */
export async function startApiServer({ dataDir, listen, names, mounts = [], audit, log }: ApiServerRoleOptions): Promise<ApiServerRole> {
  const table = new MountTable(mounts)
  let server: ApiServer | undefined
  let runsOf: RunsOfWorker = worker =>
    (server?.listObjects(`runs.${apiGroup}`, 'spec.workerName', worker) ?? []).map(run => run as Run).filter(run => !isEnded(run))
  const findRun = (namespace: string | undefined, name: string | undefined) =>
    name === undefined ? undefined : (server?.getObject(`runs.${apiGroup}`, namespace, name) as Run | undefined)
  const credentialOf = (worker: string) => server?.getObject('secrets', workersNamespace, workerCredentialName(worker))
  const facts: AuthorizerFacts = {
    run: findRun,
    assignedTo: (namespace, name) => findRun(namespace, name)?.spec.workerName,
    poolOf: worker => credentialOf(worker)?.metadata.labels?.[labels.pool],
    labelsOf: worker => credentialLabels(credentialOf(worker)),
    runsOf: worker => runsOf(worker),
  }
  const start = async (address: Address) =>
    await startServer({
      dataDir,
      listen: address,
      unixSocket: join(dataDir, 'api.sock'),
      log,
      audit,
      tlsNames: names,
      authorize: makeAuthorizer(facts),
      admissionPlugins: new Map([
        ...workerAdmission(workerOf, facts),
        ...rightsAdmission(),
        ['namespaces', namespaceAdmission],
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
      runsOf = next
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
    issueWorkerToken: workerName =>
      started.issueToken({ name: workerUserName(workerName), groups: [workersGroup], ttlMs: workerTokenTtlMs }),
  }
}
