/**
 * Which object of which control plane a role or a database belongs to, as its comment in PostgreSQL. The user of the ProviderConfig may change all of them, and the external name is an
 * annotation: without the mark an author of objects could take over the roles and databases of others.
 */
import type { KubeObject } from '../../../src/kubernetes/index.ts'
import { identifier, literal } from './sql.ts'

type Kind = 'ROLE' | 'DATABASE'
type Target = Pick<KubeObject<{ spec: { managementPolicies?: readonly string[] | undefined } }>, 'metadata' | 'spec'>

const prefix = 'Oarlock: '
const markOf = ({ metadata }: Target, controlPlane: string) =>
  `${prefix}${metadata.namespace}/${metadata.name} of control plane ${controlPlane}`

export const markStatement = (kind: Kind, name: string, object: Target, controlPlane: string): string =>
  `COMMENT ON ${kind} ${identifier(name)} IS ${literal(markOf(object, controlPlane))}`

/**
 * Whether what was found with this comment is to be treated as existing. Of a deleted object it is not if it belongs to something else.
 * @throws {Error} if it belongs to something else, and the object may do more than observe it.
 */
export function isOwn(kind: Kind, name: string, comment: string | null, object: Target, controlPlane: string): boolean {
  const { managementPolicies: policies } = object.spec
  if (comment === markOf(object, controlPlane) || (policies?.length === 1 && policies[0] === 'Observe')) return true
  if (object.metadata.deletionTimestamp) return false
  const what = `${kind.toLowerCase()} ${name} exists`
  if (comment?.startsWith(prefix)) throw new Error(`${what} and belongs to ${comment.slice(prefix.length)}: choose another external name`)
  const statement = markStatement(kind, name, object, controlPlane)
  throw new Error(`${what} and does not belong to this object; an administrator can hand it over: ${statement}`)
}
