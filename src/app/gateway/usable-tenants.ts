import type { GatewayUser } from '../../gateway/index.ts'
import type { AccessReviewer } from '../delegated-auth/access-reviewer.ts'

/** How many reviews of one request run at the same time. */
const concurrency = 16

/**
 * The Tenants of which a user may create namespaces: those with the right to `use` the Tenant (verb `use` on `tenants.oarlock.dev`). None for a user who may create no
 * namespaces, unless there is only one to ask about: then the partition rejects the creation.
 * @throws {StatusError} or {ConnectionError} if home does not decide.
 */
export async function usableTenants(
  user: GatewayUser,
  tenants: readonly string[],
  access: Pick<AccessReviewer, 'isAllowed'>,
): Promise<string[]> {
  // A review for each of thousands of Tenants is only for users who may create namespaces at all.
  if (tenants.length > 1 && !(await access.isAllowed(user, { verb: 'create', group: '', resource: 'namespaces' }))) return []
  // Most often a user may use all, or a few of few.
  if (await access.isAllowed(user, { verb: 'use', resource: 'tenants' })) return [...tenants]
  const usable: string[] = []
  for (let from = 0; from < tenants.length; from += concurrency) {
    const some = tenants.slice(from, from + concurrency)
    const allowed = await Promise.all(some.map(name => access.isAllowed(user, { verb: 'use', resource: 'tenants', name })))
    usable.push(...some.filter((_, index) => allowed[index]))
  }
  return usable
}
