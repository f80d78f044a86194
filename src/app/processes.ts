import type { AllInOne, AllInOneOptions } from './all-in-one.ts'
import type { WorkerProcessOptions } from './worker/worker-process.ts'

// Each process loads only its own modules: a worker is started for every Run, and must not wait for those of the server.

/**
 * Starts API server, stores, controllers and console in this process. Workers are its child processes.
 * @throws {AppStartError} if the data directory or an address cannot be used.
 */
export async function startAllInOne(options: AllInOneOptions): Promise<AllInOne> {
  return await (await import('./all-in-one.ts')).startAllInOne(options)
}

/** The roles that run in processes of their own; each is loaded when it is started. */
export const roles = {
  apiServer: async () => await import('./api-server/api-server.ts'),
  stores: async () => await import('./stores/stores-process.ts'),
  joinService: async () => await import('./join/join-process.ts'),
  consoleServer: async () => await import('./console/console-process.ts'),
  pool: async () => await import('./pool-agent/index.ts'),
  controller: async () => await import('./controllers/controller-process.ts'),
  home: async () => await import('./partition/start-home.ts'),
  partition: async () => await import('./partition/start-partition.ts'),
  gateway: async () => await import('./gateway/start-gateway.ts'),
}

/** Whether a data directory is that of a partition. */
export const partitionIdentity = async () => await import('./partition/identity.ts')

/** The configurations of partitions and gateways. */
export const partitions = async () => await import('./partition/index.ts')

/** What an installation consists of on a Kubernetes API server. */
export const installation = async () => await import('./controllers/install.ts')

/** What the user of a client may not do, of what a role needs. */
export const roleRights = async () => (await import('./manifests/missing-rights.ts')).missingRights

/** What `oarlock doctor` compares with a cluster. */
export const clusterChecks = async () => await import('./manifests/index.ts')

/** Where the roles of an installation are reached. */
export const discovery = async () => await import('./discovery/index.ts')

/** Where the token and the address of a console are, and the link that opens it. */
export const consoleAccess = async () => await import('./console/console-access.ts')
export const statusAccess = async () => await import('./endpoints/status-access.ts')

/** Functions that create, list and revoke join tokens. */
export const joinTokens = async () => await import('./join/index.ts')

/** Runs a worker with the settings of its environment until it has finished or a signal ends it. Returns the exit code. */
export async function runWorkerProcess(options: WorkerProcessOptions): Promise<number> {
  return await (await import('./worker/worker-process.ts')).runWorkerProcess(options)
}

/** Backups of an installation: create, verify, restore. */
export const backups = async () => await import('./backup/index.ts')
