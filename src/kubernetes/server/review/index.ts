/**
 * @module review: questions that are asked by creating an object and answered at once: who am I, may I, whose token is
 * this, and a token for a ServiceAccount. Start reading at `reviews.ts`.
 * In: a routed, allowed request (`Call`) of a virtual kind. Out: its answer. Nothing is stored. And the say that RBAC has in the writing of roles (`guard-roles.ts`).
 */
export { roleGuards } from './guard-roles.ts'
export { Reviews } from './reviews.ts'
