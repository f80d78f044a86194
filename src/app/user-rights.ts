/**
 * Rights on what a write means, besides the right to write the object: verbs on virtual subresources, as RBAC grants them. The embedded
 * server checks them in admission plugins (`stack-rights.ts`, `run-fields.ts`), any other in policies (`manifests/user-policies.ts`).
 */
import { apiGroup } from '../api/index.ts'
import type { AdmissionRequest } from '../kubernetes/server/index.ts'

export type Right = { readonly resource: 'stacks' | 'runs'; readonly subresource: string; readonly verb: 'update' | 'delete' }

/** To approve a plan, and to let a Stack apply its plans without approval. */
export const approvalRight: Right = { resource: 'stacks', subresource: 'approval', verb: 'update' }
/** To let the Runs of a Stack from a backup start again. */
export const recoveryRight: Right = { resource: 'stacks', subresource: 'recovery', verb: 'update' }
/** To delete a Stack whose resources are destroyed then. With the verb of a deletion, which Kubernetes' namespace controller has. */
export const destroyRight: Right = { resource: 'stacks', subresource: 'destroy', verb: 'delete' }
/** To interrupt a Run. */
export const cancelRight: Right = { resource: 'runs', subresource: 'cancel', verb: 'update' }
/** To delete a Run that has not ended, which interrupts it. */
export const cancelByDeletionRight: Right = { ...cancelRight, verb: 'delete' }

/** The smallest of Oarlock's ClusterRoles that grants a right, and the one of Kubernetes that includes it. */
const roles: Readonly<Record<string, readonly [own: string, common: string]>> = {
  'update stacks/approval': ['oarlock:approver', 'admin'],
  'update stacks/recovery': ['oarlock:admin', 'admin'],
  'delete stacks/destroy': ['oarlock:destroyer', 'admin'],
  'update runs/cancel': ['oarlock:canceler', 'edit'],
  'delete runs/cancel': ['oarlock:edit', 'edit'],
}

/** `permission to update stacks/approval, granted by the ClusterRoles oarlock:approver and admin` */
export function describeRight({ resource, subresource, verb }: Right): string {
  const right = `${verb} ${resource}/${subresource}`
  const [own, common] = roles[right]!
  return `permission to ${right}, granted by the ClusterRoles ${own} and ${common}`
}

/** Whether the user of a request has the right on the object. */
export const hasRight = (request: AdmissionRequest, { resource, subresource, verb }: Right, name: string): boolean =>
  request.isAllowed({ verb, group: apiGroup, resource, subresource, namespace: request.namespace, name })
