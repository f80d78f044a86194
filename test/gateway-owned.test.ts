/** Objects whose names are unique in all partitions, through the gateway: Nodes and their Leases over two resource partitions. */
import { deepEqual, equal, match, notEqual } from 'node:assert/strict'
import { after, before, describe, type TestContext, test } from 'node:test'
import { claims } from '../src/controllers/claims/index.ts'
import { nameClaimResource } from '../src/gateway/index.ts'
import type { Client } from '../src/kubernetes/client/index.ts'
import { Manager, silentLog } from '../src/kubernetes/controller/index.ts'
import { describeResource } from '../src/kubernetes/object/index.ts'
import { eventually } from './support/eventually.ts'
import { GatewayFixture } from './support/gateway/gateway-fixture.ts'

let fixture: GatewayFixture
let client: Client
const isProtected = (name: string) => (name === 'protected' ? 'it is protected' : undefined)

before(async () => {
  fixture = await GatewayFixture.start({ home: [], r1: ['Resources'], r2: ['Resources'], t1: ['Tenants'] }, () => ({
    deletionPlugins: new Map([['nodes', (_, object) => isProtected(object.metadata.name)]]),
  }))
  client = fixture.client
})
after(async () => {
  await fixture?.[Symbol.asyncDispose]()
})

type List = { metadata: { resourceVersion: string }; items: { metadata: { name: string } }[] }
/** @param timeoutMs default: longer than a busy machine takes. */
const send = async (method: string, path: string, body?: object, through = client, timeoutMs = 30_000) =>
  (await (
    await through.request({
      ...{ method, path, headers: { 'content-type': 'application/json' }, ...(body && { body: JSON.stringify(body) }), timeoutMs },
    })
  ).json()) as never
const list = async (path: string, through = client) => (await send('GET', path, undefined, through)) as List
const namesIn = ({ items }: List) => items.map(({ metadata }) => metadata.name).sort()
const errorOf = (sent: Promise<unknown>) =>
  sent.then(
    () => 'no error',
    error => String(error),
  )
const node = async (name: string, partition: string, labels: object = {}) => {
  const metadata = { name, labels: { 'oarlock.dev/partition': partition, ...labels } }
  await send('POST', '/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata })
}
const leases = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases'
const lease = async (name: string) =>
  await send('POST', leases, { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name }, spec: { holderIdentity: name } })

/** The controller that removes claims, in a partition; `removeAfterMs` is shorter than is safe beside creations that take long. */
async function startClaims(t: TestContext, partition: string, removeAfterMs: number, isOwn = async () => true) {
  const stopping = new AbortController()
  const local = await fixture.direct(partition)
  const manager = new Manager({ client: await fixture.direct('home'), log: silentLog })
  const nodes = describeResource<unknown>({ group: '', version: 'v1', kind: 'Node', plural: 'nodes', scope: 'Cluster' })
  const kinds = new Map([['nodes', nodes]])
  const onError = (error: unknown, what: string) => void fixture.logs.push(`${what}: ${error}`)
  manager.add(claims({ partition, local, claims: nameClaimResource, kinds, removeAfterMs, isOwn, signal: stopping.signal, onError }))
  await manager.start()
  t.after(async () => {
    stopping.abort()
    await manager.stop()
  })
}
const claimOf = async (name: string) => await (await fixture.direct('home')).resource(nameClaimResource).getOrUndefined(`${name}.nodes`)
const removal = (name: string) => send('DELETE', `/api/v1/nodes/${name}`)

describe('the claim of a name', () => {
  test('is removed when its gateway has ended before the creation, and another partition gets the name', async t => {
    await fixture.claim('nodes', 'abandoned', { partition: 'r1' })
    match(await errorOf(node('abandoned', 'r2')), /nodes "abandoned" already exists in another partition/)
    await startClaims(t, 'r1', 100)
    await eventually(async () => (await claimOf('abandoned')) === undefined, 'the claim to be removed')
    await node('abandoned', 'r2')
    equal((await claimOf('abandoned'))?.spec.partition, 'r2')
    await removal('abandoned')
  })

  test('stays when the data directory is no longer that of the partition', async t => {
    let asked = 0
    const isOwn = async () => {
      asked++
      return false
    }
    await fixture.claim('nodes', 'of-a-successor', { partition: 'r1' })
    await startClaims(t, 'r1', 100, isOwn)
    await eventually(() => asked > 0, 'a removal to be considered')
    match(await errorOf(node('of-a-successor', 'r2')), /nodes "of-a-successor" already exists in another partition/)
  })

  test('stays while its object is there, and goes with it', async t => {
    await startClaims(t, 'r1', 100)
    await node('short', 'r1')
    await node('long', 'r1')
    await removal('short')
    await eventually(async () => (await claimOf('short')) === undefined, 'the claim to be removed')
    equal((await claimOf('long'))?.spec.partition, 'r1')
    await removal('long')
    await eventually(async () => (await claimOf('long')) === undefined, 'the claim to be removed')
  })

  test('is renewed by an object that is created again, by create or apply, also when it was removed just now', async t => {
    await startClaims(t, 'r1', 1)
    for (let round = 0; round < 10; round++) {
      await node('again', 'r1')
      if (round % 2) await removal('again')
      const apply = {
        apiVersion: 'v1',
        kind: 'Node',
        metadata: { name: 'again', labels: { 'oarlock.dev/partition': 'r1', round: String(round) } },
      }
      await client.request({
        ...{ method: 'PATCH', path: '/api/v1/nodes/again?fieldManager=test', body: JSON.stringify(apply) },
        headers: { 'content-type': 'application/apply-patch+yaml' },
      })
      equal((await claimOf('again'))?.spec.partition, 'r1', `round ${round}`)
      await removal('again')
    }
    await eventually(async () => (await claimOf('again')) === undefined, 'the claim to be removed')
  })
})

describe('an apply that creates', () => {
  for (const contentType of ['APPLICATION/APPLY-PATCH+YAML', 'Application/Apply-Patch+yaml; charset=utf-8'])
    test(`claims the name with the content type ${contentType}, which a partition takes as one`, async () => {
      const name = `applied-${contentType.length}`
      const metadata = { name, labels: { 'oarlock.dev/partition': 'r1' } }
      const apply = async () =>
        await client.request({
          ...{ method: 'PATCH', path: `/api/v1/nodes/${name}?fieldManager=test`, headers: { 'content-type': contentType } },
          body: JSON.stringify({ apiVersion: 'v1', kind: 'Node', metadata }),
        })
      await apply()
      const first = await claimOf(name)
      equal(first?.spec.partition, 'r1')
      await removal(name)
      // Its claim is still there, and may be removed at any moment.
      await apply()
      notEqual((await claimOf(name))?.metadata.resourceVersion, first?.metadata.resourceVersion)
      await removal(name)
    })
})

describe('a collection in several partitions', () => {
  test('is deleted in all of them, and the response has what was deleted', async () => {
    for (const [name, partition] of Object.entries({ a: 'r1', b: 'r2', c: 'r2' })) await node(name, partition, { pool: 'x' })
    await node('other', 'r1')
    for (const name of ['a', 'b', 'c']) await lease(name)
    deepEqual(namesIn(await list(leases, await fixture.direct('r2'))), ['b', 'c'])
    const deleted = (await send('DELETE', leases)) as List
    deepEqual(namesIn(deleted), ['a', 'b', 'c'])
    deepEqual(namesIn(await list(leases)), [])
    deepEqual(namesIn(await send('DELETE', '/api/v1/nodes?labelSelector=pool%3Dx')), ['a', 'b', 'c'])
    const left = await list('/api/v1/nodes')
    deepEqual(namesIn(left), ['other'])
    equal(Number(deleted.metadata.resourceVersion) < Number(left.metadata.resourceVersion), true)
  })

  test('stays in part when one partition rejects it, and the error names both parts', async () => {
    await node('free', 'r1')
    await node('protected', 'r2')
    const error = await errorOf(send('DELETE', '/api/v1/nodes'))
    match(error, /the deletion has stopped in partition "r2": .*it is protected; deleted was what is selected in "r1"/)
    deepEqual(namesIn(await list('/api/v1/nodes')), ['protected'])
  })

  test('is rejected as a whole with a limit, or where one server does not delete it either', async () => {
    match(await errorOf(send('DELETE', '/api/v1/nodes?limit=1')), /limit and continue are not supported/)
    match(await errorOf(send('DELETE', '/api/v1/namespaces')), /does not allow this method/)
    match(await errorOf(send('POST', '/api/v1/nodes/x/y/z')), /not serve|not found|could not/)
  })

  test('is not deleted anywhere when a partition does not answer', async () => {
    await node('stays', 'r1')
    await fixture.servers.get('r2')?.close({ graceMs: 10 })
    match(await errorOf(send('DELETE', '/api/v1/nodes', undefined, client, 2_000)), /partition "r2" does not answer|timed out/)
    await fixture.startPartition('r2')
    deepEqual(namesIn(await list('/api/v1/nodes')), ['protected', 'stays'])
  })
})
