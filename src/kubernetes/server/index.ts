/**
 * @module server: the embedded Kubernetes API server, the library `oarlock/server`. Start reading at `start-server.ts`.
 * In: a data directory and an address. Out: a server that kubectl, client-go and our own client cannot tell from
 * kube-apiserver for the kinds it serves. It serves one machine; no pods are run here.
 * A request's way: http/ (route, body) → auth/ (who, may they) → rest/ (the verbs) → registry/ (what the kind says)
 * → storage/ (durable) → watch/ and wire/ (who gets to see it, and how). lifecycle/ acts later, by itself.
 */
export { type AdmissionHook, type Attributes, adminsGroup, issueClientCertificate, type OwnAuthorizer, type User } from './auth/index.ts'
export type { FairnessLimits } from './fairness/index.ts'
export type { LocalConnection, Mount } from './http/index.ts'
export type { ServerStats } from './metrics/index.ts'
export { type ApiServer, type Logger, type ServerOptions, startServer } from './start-server.ts'
export {
  type BackupSummary,
  backUpDataDirectory,
  parseRevision,
  type RestoreOptions,
  type RestoreSummary,
  readRevision,
  restoreBackup,
  ServerStartError,
  type ServerStartErrorCode,
  writeBackup,
} from './storage/index.ts'
