/**
 * @module app: composes modules into processes. Start reading at `all-in-one.ts`: it starts each role and hands it what it needs of the others.
 * In: a data directory, addresses, limits. Out: a running control plane, or an error with its cause and a remedy.
 *
 * | folder | role |
 * |---|---|
 * | `api-server/` | the API server, and who may do what on it (`authorize.ts`) |
 * | `stores/` | state store and log store, and who may read and write them (`store-access.ts`) |
 * | `controllers/` | the stack and dispatch controllers |
 * | `pool-agent/` | starts worker processes that a controller elsewhere requests |
 * | `join/` | the credentials of workers, and how those on other machines join |
 * | `worker/` | the process of one worker |
 * | `partition/` | an API server behind a gateway, and how it gets its configuration |
 * | `gateway/` | one API for all partitions |
 * | `backup/` | backup and restore of an installation |
 *
 * | folder | what several roles use |
 * |---|---|
 * | `process-pool/` | worker processes on this machine |
 * | `endpoints/` | health, metrics and queue over plain HTTP |
 * | `external-metrics/` | `external.metrics.k8s.io`, for HorizontalPodAutoscalers |
 * | `listener/` | the HTTPS listener of a role that runs apart from the API server |
 * | `discovery/` | where the roles are reached |
 * | `delegated-auth/` | authentication and authorization by the API server: TokenReview, SubjectAccessReview |
 * | `manifests/` | roles, bindings and admission policies on a Kubernetes API server |
 *
 * No role reads the files or the memory of another one. Out of scope: any decision about Stacks, Runs or Workers.
 */

export { type Address, isLoopback, parseAddress, urlOf } from './address.ts'
export type { AllInOne, AllInOneOptions } from './all-in-one.ts'
export { AppStartError, type AppStartErrorKind, DataInUseError } from './app-start-error.ts'
export type { BackupKeys, BackupManifest, BackupResult, BackupSources, InstallationRestore, StatesOrigin } from './backup/index.ts'
export type { ConsoleSettings } from './console/console-settings.ts'
export type { Endpoint, PartitionAddress } from './discovery/index.ts'
export { openLogFile } from './log-file.ts'
export type { ManifestDifferences } from './manifests/index.ts'
export {
  backups,
  clusterChecks,
  consoleAccess,
  discovery,
  installation,
  joinTokens,
  partitionIdentity,
  partitions,
  roleRights,
  roles,
  runWorkerProcess,
  startAllInOne,
  statusAccess,
} from './processes.ts'
export type { WorkerProcessOptions } from './worker/worker-process.ts'
export type { ComponentName } from './worker-identity.ts'
