/**
 * @module quota: how much of what a namespace may hold. Start reading at `quotas.ts`.
 * In: ResourceQuotas and commits. Out: a refusal of what would go over, and what is used, for `status.used`.
 * Not here: writing that status (lifecycle/), bounds of one object (registry/admission).
 */
export { Quotas } from './quotas.ts'
