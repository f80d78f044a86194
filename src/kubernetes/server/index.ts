/**
 * @module server: the embedded Kubernetes API server, the library `oarlock/server`. Start reading at `start-server.ts`.
 * In: a data directory and an address. Out: a server that kubectl, client-go and our own client cannot distinguish from
 * kube-apiserver for the kinds it serves. It serves one machine; Pods run on the kubelets that join it.
 *
 * The path of a request: http/ (route, body, authentication) → rest/ (verbs) → registry/ (the rules of each kind) → storage/
 * (durable commits). Committed changes go to clients through watch/ and wire/. lifecycle/ is the background work: finalization of
 * namespaces, garbage collection, quota status.
 *
 * Layers, top to bottom; a folder imports only folders below it, through their index.ts. `test/import-rules.test.ts` has the exact
 * list for each folder.
 *
 * | layer | folders |
 * |---|---|
 * | composition | `start-server.ts` |
 * | transport | http/ |
 * | endpoints and background work | review/ (access reviews, token requests), discovery/ (API groups, OpenAPI), lifecycle/ |
 * | verbs | rest/ (create, get, list, watch, update, patch, delete), kubelet/ (logs and streams of Pods) |
 * | delivery | watch/ (open watches), wire/ (JSON, YAML, Tables) |
 * | rules | registry/ (kinds), quota/ (ResourceQuota), auth/ (authentication, RBAC), audit/ (audit log) |
 * | data | storage/ (tables, commits, backup) |
 * | no dependencies | fairness/ (fair queueing, time slices), metrics/ (`/metrics`) |
 */
import '../util/check-node-version.ts'

export { parseRevision, readRevision } from '../util/index.ts'
export { type AuditOptions, openPathAudit, type PathAudit } from './audit/index.ts'
export {
  type AdmissionPlugin,
  type AdmissionRequest,
  type Attributes,
  type AuthorizerPlugin,
  adminsGroup,
  type DeletionPlugin,
  type FrontProxyOptions,
  frontProxyAuthority,
  issueClientCertificate,
  issueFrontProxyCertificate,
  issueKubeletCertificates,
  issueServingCertificate,
  type KubeletCertificates,
  type ReviewToken,
  readCertificates as readServingCertificates,
  readFrontProxyCa,
  readSharedTrust,
  type SharedTrust,
  type User,
  writeSharedTrust,
} from './auth/index.ts'
export { Fairness, type FairnessLimits } from './fairness/index.ts'
export type { LocalConnection, Mount } from './http/index.ts'
export type { OwnerElsewhere, OwnerLookUp } from './lifecycle/index.ts'
export type { ServerStats } from './metrics/index.ts'
export { type ApiServer, type ServerOptions, startServer } from './start-server.ts'
export {
  type BackupSummary,
  backUpDataDirectory,
  encryptionConfigPath,
  encryptionKeyNames,
  inspectBackup,
  type KeyRotation,
  type RestoredObject,
  type RestoreOptions,
  type RestoreSummary,
  readObjects,
  restoreBackup,
  rotateKeyOfDataDirectory,
  ServerStartError,
  type ServerStartErrorCode,
  syncPath,
  writeAtomically,
  writeBackup,
  writeSecretFile,
} from './storage/index.ts'
