import { deepEqual, equal, rejects } from 'node:assert/strict'
import { test } from 'node:test'
import type { Partition } from '../partition/index.ts'
import { gatewayUser } from '../request/index.ts'
import type { GatewayMap } from '../routing/index.ts'
import { createOwned } from './create-owned.ts'

/** Sends a Namespace of Tenant `acme`, which the map has in `t1`, to a partition that answers with these codes. */
function create(...codes: readonly number[]) {
  const sent: string[] = []
  const claims: string[] = []
  const stream = async ({ path }: { readonly path: string }) => {
    sent.push(path)
    return { status: codes[sent.length - 1] ?? 500, headers: {}, body: (async function* () {})() }
  }
  const map = {
    partitionOfTenant: () => 't1',
    partitions: new Map([['t1', { roles: new Set(['Tenants']), announced: new Set(['Tenants']) }]]),
  } as unknown as GatewayMap
  const request = { method: 'POST', url: '/api/v1/namespaces', headers: { 'content-type': 'application/json' } }
  const object = { name: 'shop', labels: { 'oarlock.dev/tenant': 'acme' } }
  const creation = { table: 'namespaces', name: '', object, body: Buffer.from('{}'), user: gatewayUser, map, signal: AbortSignal.abort() }
  const answer = createOwned(request as never, creation as never, {
    tenantsOf: async () => ['acme'],
    announceRole: async () => {},
    claim: async (_, name, { partition }) => claims.push(`${name} in ${partition}`),
    connectionTo: () => ({ stream }) as unknown as Partition,
  })
  return { answer, sent, claims }
}

test('a Namespace is created after a trial and its claim', async () => {
  const { answer, sent, claims } = create(201, 201)
  equal((await answer).status, 201)
  deepEqual([sent, claims], [['/api/v1/namespaces?dryRun=All', '/api/v1/namespaces'], ['shop in t1']])
})

const isRetried = {
  code: 503,
  message: /partition "t1" does not have Tenant "acme", which has moved a moment ago; retry/,
  details: { retryAfterSeconds: 1 },
}

test('a Namespace whose Tenant has moved is to be created again, and its name is not claimed', async () => {
  const { answer, claims } = create(421)
  await rejects(answer, isRetried)
  deepEqual(claims, [])
})

test('a Namespace whose Tenant has moved after the trial is to be created again', async () => {
  const { answer } = create(201, 421)
  await rejects(answer, isRetried)
})
