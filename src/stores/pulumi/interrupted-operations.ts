import type { Deployment, PendingOperation } from './deployment.ts'
import { typeOf } from './urn.ts'

/** What is kept of an operation where many are listed. */
export type InterruptedOperation = { readonly urn: string; readonly type: string }

/**
 * Operations that had begun when the CLI ended, and of which only the provider knows the result. Without creations of components, of providers and of the
 * stack itself: they exist in the state only.
 */
export const interruptedOperations = ({ pending_operations: pending }: Deployment): PendingOperation[] =>
  (pending ?? []).filter(operation => !isOfStateOnly(operation))

/** True for a creation that has created nothing outside of the state: it can be repeated. */
export function isOfStateOnly({ type, resource }: PendingOperation): boolean {
  if (type !== 'creating') return false
  return resource.custom === false || typeOf(resource.urn).startsWith('pulumi:providers:')
}
