import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { KubeObject } from '../../object/index.ts'
import { startTestServer, type TestServer } from '../server.testing.ts'

const path = '/apis/coordination.k8s.io/v1/namespaces/default/leases'
const time = (second: number) => `2026-01-01T00:00:${String(second).padStart(2, '0')}.000000Z`
const merge = 'application/merge-patch+json'

type Step = { body: object; userAgent: string; isDryRun?: boolean; type?: string }

const renewal = (second: number, userAgent = 'holder/1'): Step => ({ body: { spec: { renewTime: time(second) } }, userAgent })

async function send({ call }: TestServer, name: string, { body, userAgent, isDryRun, type = merge }: Step, asUpdate: boolean) {
  const live = (await call<KubeObject & { spec: object }>(`${path}/${name}`)).body
  const query = isDryRun ? '?dryRun=All' : ''
  const headers = { 'user-agent': userAgent }
  if (!asUpdate) return await call(`${path}/${name}${query}`, { method: 'PATCH', type, body, headers })
  const { spec, metadata } = body as { spec?: object; metadata?: object }
  const whole = { ...live, metadata: { ...live.metadata, ...metadata }, spec: { ...live.spec, ...spec } }
  return await call(`${path}/${name}${query}`, { method: 'PUT', body: whole, headers })
}

/** Without what differs between two Leases that were written alike. */
function comparable({ metadata, ...rest }: KubeObject) {
  const managedFields = metadata.managedFields?.map(({ time: _, ...entry }) => entry)
  return { ...rest, metadata: { ...metadata, managedFields, name: '', uid: '', resourceVersion: '', creationTimestamp: '' } }
}

test('a renewal by patch has the result of the same update, for every owner of the field', async () => {
  const server = await startTestServer()
  try {
    for (const name of ['patched', 'updated']) {
      const spec = { holderIdentity: 'a', leaseDurationSeconds: 15, renewTime: time(0) }
      await server.call(path, { body: { metadata: { name, labels: { a: 'b' } }, spec }, headers: { 'user-agent': 'creator/1' } })
    }
    const steps: Step[] = [
      renewal(1, 'creator/1'),
      renewal(2),
      renewal(3),
      { ...renewal(4), isDryRun: true },
      renewal(5, 'other/1'),
      renewal(6),
      { body: { spec: { renewTime: '2026-01-01T00:00:07Z' } }, userAgent: 'holder/1' },
      { body: { spec: { renewTime: time(8), leaseTransitions: 1 } }, userAgent: 'holder/1' },
      { body: { metadata: { labels: { a: 'c' } }, spec: { renewTime: time(9) } }, userAgent: 'holder/1' },
      renewal(10),
      { body: { spec: { holderIdentity: 'b' } }, userAgent: 'holder/1' },
      renewal(11),
    ]
    for (const step of steps) {
      const patched = await send(server, 'patched', step, false)
      const updated = await send(server, 'updated', step, true)
      assert.equal(patched.code, 200, JSON.stringify(patched.body))
      assert.deepEqual(comparable(patched.body), comparable(updated.body), JSON.stringify(step))
      const stored = (await server.call(`${path}/patched`)).body
      if (!step.isDryRun) assert.deepEqual(stored, patched.body)
    }
  } finally {
    await server.close()
  }
})

test('a renewal that names another Lease, an invalid time or a missing Lease is rejected as before', async () => {
  const server = await startTestServer()
  try {
    const { call } = server
    const { body: lease } = await call(path, {
      body: { metadata: { name: 'a' }, spec: { holderIdentity: 'a', leaseDurationSeconds: 15, renewTime: time(0) } },
    })
    const patch = async (name: string, body: unknown) => (await call(`${path}/${name}`, { method: 'PATCH', type: merge, body })).code
    assert.equal(await patch('a', { metadata: { uid: lease.metadata.uid }, spec: { renewTime: time(1) } }), 200)
    assert.equal(await patch('a', { metadata: { uid: 'other' }, spec: { renewTime: time(2) } }), 422)
    assert.equal(await patch('a', { spec: { renewTime: '2026-02-30T00:00:00.000000Z' } }), 400)
    assert.equal(await patch('missing', { spec: { renewTime: time(2) } }), 404)
    assert.equal(await patch('a', '{"spec":{"renewTime":'), 400)
    assert.equal(await patch('a', { metadata: { resourceVersion: lease.metadata.resourceVersion }, spec: { renewTime: time(2) } }), 409)
    const stored = (await call<KubeObject & { spec: { renewTime: string } }>(`${path}/a`)).body
    assert.equal(stored.spec.renewTime, time(1))
  } finally {
    await server.close()
  }
})
