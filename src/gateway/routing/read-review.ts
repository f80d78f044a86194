import { isReason } from '../../kubernetes/object/index.ts'
import { systemNamespaces } from '../kinds/index.ts'
import { accountNamespace, readSpecText } from '../request/index.ts'
import type { RoutingMap } from './decide-route.ts'

/** What names the namespace that a review is about, by table. In protobuf each of these is field 1 of its message: k8s.io/api, generated.proto. */
const reviewPaths: Readonly<Record<string, readonly string[]>> = {
  'selfsubjectaccessreviews.authorization.k8s.io': ['resourceAttributes', 'namespace'],
  'subjectaccessreviews.authorization.k8s.io': ['resourceAttributes', 'namespace'],
  'selfsubjectrulesreviews.authorization.k8s.io': ['namespace'],
  'tokenreviews.authentication.k8s.io': ['token'],
  'selfsubjectreviews.authentication.k8s.io': [],
}

/** Reviews that follow from the request and from what every partition has a copy of: ClusterRoles and their bindings. */
export const isUserReview = (table: string): boolean => isReview(table) && !table.startsWith('tokenreviews')

/** Whether objects of a table are questions about a namespace, which its partition answers: it alone has the Roles and ServiceAccounts of it. */
export const isReview = (table: string): boolean => table in reviewPaths

/**
 * The namespace that a review is about: that of the access, or of the ServiceAccount whose token is reviewed. Undefined for reviews of no
 * namespace, and for a body that is no review: home rejects it in its words.
 */
export function reviewedNamespace(table: string, body: Uint8Array, contentType: string): string | undefined {
  const path = reviewPaths[table]
  if (!path || path.length === 0) return undefined
  try {
    const text = readSpecText(body, contentType, path)
    return (table.startsWith('tokenreviews') ? accountNamespace(text) : text) || undefined
  } catch (error) {
    if (isReason(error, 'BadRequest')) return undefined
    throw error
  }
}

/**
 * The partition of the namespace that a review is about, which is looked up at home if the map does not have it; home for what no partition has.
 * @throws {StatusError} what `lookUp` throws.
 */
export async function partitionOfReview(
  namespace: string | undefined,
  state: { map(): RoutingMap; lookUp(table: string, name: string): Promise<void> },
): Promise<string> {
  const { home } = state.map()
  if (namespace === undefined || systemNamespaces.includes(namespace)) return home
  const find = () => state.map().partitionOf('namespaces', namespace)
  if (find() === undefined) await state.lookUp('namespaces', namespace)
  return find() ?? home
}
