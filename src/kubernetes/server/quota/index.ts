/**
 * @module quota: ResourceQuotas. Start reading at `quotas.ts`.
 * In: ResourceQuotas and commits. Out: errors for writes that exceed a quota, and the usage for `status.used`.
 * Out of scope: writing that status (lifecycle/), bounds of one object (registry/admission).
 */
export { Quotas } from './quotas.ts'
