import { deepEqual, equal, throws } from 'node:assert/strict'
import { test } from 'node:test'
import { StatusError } from '../../kubernetes/object/index.ts'
import { RequestLimits } from './request-limits.ts'

const user = (name: string, groups: string[] = []) => ({ name, groups })
/** As the gateway does. */
function admit(of: RequestLimits, who: ReturnType<typeof user>, tenant: string | undefined, isWatch: boolean): () => void {
  const ends = [of.admitUser(who, isWatch)]
  try {
    if (tenant !== undefined) ends.push(of.admitTenant(who, tenant, isWatch))
  } catch (error) {
    for (const end of ends) end()
    throw error
  }
  return () => {
    for (const end of ends) end()
  }
}
const limits = { requestsPerTenant: 2, requestsPerUser: 3, watchesPerTenant: 1, watchesPerUser: 2 }

test('a Tenant that has as many requests in progress as it may gets 429, others and its watches do not', () => {
  const of = new RequestLimits(limits)
  const ends = [admit(of, user('a'), 'acme', false), admit(of, user('b'), 'acme', false)]
  throws(
    () => admit(of, user('c'), 'acme', false),
    (error: unknown) =>
      error instanceof StatusError &&
      error.code === 429 &&
      error.details?.retryAfterSeconds === 1 &&
      /Tenant "acme" has 2 requests in progress, as many as this gateway allows: retry later/.test(error.message),
  )
  admit(of, user('c'), 'umbrella', false)
  admit(of, user('c'), 'acme', true)
  throws(() => admit(of, user('d'), 'acme', true), /Tenant "acme" has 1 watches open/)
  for (const end of ends) {
    end()
    // Twice is once.
    end()
  }
  admit(of, user('d'), 'acme', false)
  deepEqual(
    [...of.requestsOfTenants],
    [
      ['umbrella', 1],
      ['acme', 1],
    ],
  )
  equal(of.rejected, 2)
})

test('a user has a limit over all Tenants, which a cluster administrator does not have', () => {
  const of = new RequestLimits(limits)
  const ends = ['x', 'y', undefined].map(tenant => admit(of, user('a'), tenant, false))
  throws(() => admit(of, user('a'), 'z', false), /user "a" has 3 requests in progress/)
  // What was rejected does not count.
  deepEqual([...of.requestsOfTenants.keys()], ['x', 'y'])
  for (const end of ends) end()
  for (let number = 0; number < 10; number++) admit(of, user('root', ['system:masters']), 'x', false)
  equal(of.requestsOfTenants.get('x'), 10)
})
