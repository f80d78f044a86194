/**
 * @module review: the virtual kinds, whose objects are evaluated when they are created and never stored: access reviews, token reviews, and
 * tokens for ServiceAccounts. Start reading at `reviews.ts`.
 * In: a routed, authorized request (`Call`) of a virtual kind. Out: its response. Also the admission plugins of RBAC (`rbac-admission.ts`).
 */
export { rbacAdmissionPlugins } from './rbac-admission.ts'
export { Reviews } from './reviews.ts'
