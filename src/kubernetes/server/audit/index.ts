/**
 * @module audit: the audit log, in Kubernetes' format (audit.k8s.io/v1). Start reading at `auditor.ts`.
 * In: requests and their responses. Out: one JSON line for each request that the policy selects, in files of bounded size.
 * Never stops the server: an event that cannot be written is lost and counted. No event contains the body of a Secret (invariant 9).
 */
export type { AuditDetails, Auditor } from './auditor.ts'
export { type Audit, type AuditOptions, openAudit } from './open-audit.ts'
export { openPathAudit, type PathAudit } from './path-audit.ts'
