import { deepEqual, equal, throws } from 'node:assert/strict'
import { test } from 'node:test'
import { StatusError } from '../kubernetes/object/index.ts'
import { RequestLimits } from './request-limits.ts'

const user = (name: string, groups: string[] = []) => ({ name, groups })
const limits = { requestsPerTenant: 2, requestsPerUser: 3, watchesPerTenant: 1, watchesPerUser: 2 }

test('a Tenant that has as many requests in progress as it may gets 429, others and its watches do not', () => {
  const of = new RequestLimits(limits)
  const ends = [of.admit(user('a'), 'acme', false), of.admit(user('b'), 'acme', false)]
  throws(
    () => of.admit(user('c'), 'acme', false),
    (error: unknown) =>
      error instanceof StatusError &&
      error.code === 429 &&
      error.details?.retryAfterSeconds === 1 &&
      /Tenant "acme" has 2 requests in progress, as many as this gateway allows: retry later/.test(error.message),
  )
  of.admit(user('c'), 'umbrella', false)
  of.admit(user('c'), 'acme', true)
  throws(() => of.admit(user('d'), 'acme', true), /Tenant "acme" has 1 watches open/)
  for (const end of ends) {
    end()
    // Twice is once.
    end()
  }
  of.admit(user('d'), 'acme', false)
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
  const ends = ['x', 'y', undefined].map(tenant => of.admit(user('a'), tenant, false))
  throws(() => of.admit(user('a'), 'z', false), /user "a" has 3 requests in progress/)
  // What was rejected does not count.
  deepEqual([...of.requestsOfTenants.keys()], ['x', 'y'])
  for (const end of ends) end()
  for (let number = 0; number < 10; number++) of.admit(user('root', ['system:masters']), 'x', false)
  equal(of.requestsOfTenants.get('x'), 10)
})
