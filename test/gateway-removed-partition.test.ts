/** Lists through a gateway at a version from before the removal of a partition: its objects are missing, so that none of them may pass for complete (invariant 12). */
import { rejects } from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { partitionResource, relistFromAnnotation } from '../src/gateway/index.ts'
import { eventually } from './support/eventually.ts'
import { GatewayFixture } from './support/gateway/gateway-fixture.ts'

let fixture: GatewayFixture
let version: number
const get = async (path: string) => await (await fixture.client.request({ method: 'GET', path })).json()

before(async () => {
  // Nodes are in one partition, what is in namespaces in three.
  fixture = await GatewayFixture.start({ home: [], r1: ['Resources'], t1: ['Tenants'], t2: ['Tenants'] })
  const { state } = fixture
  const { metadata } = (await get('/api/v1/configmaps')) as { metadata: { resourceVersion: string } }
  version = Number(metadata.resourceVersion)
  const relistFrom = String(version + 1)
  const partitions = (await fixture.direct('home')).resource(partitionResource)
  await partitions.patch('home', { metadata: { annotations: { [relistFromAnnotation]: relistFrom } } } as object, { type: 'merge' })
  await eventually(() => state.relistFrom === Number(relistFrom), 'the gateway to read it')
})
after(async () => {
  await fixture?.[Symbol.asyncDispose]()
})

for (const path of ['/api/v1/configmaps', '/api/v1/nodes'])
  for (const [query, why] of [
    ['resourceVersionMatch=Exact', 'exactly at this version'],
    ['limit=5', 'with a limit, which makes the version exact'],
  ])
    test(`${path} ${why} has expired, and one at least at this version is complete`, async () => {
      await rejects(get(`${path}?resourceVersion=${version}&${query}`), { code: 410, message: /a partition was removed/ })
      await get(`${path}?resourceVersion=${version}&resourceVersionMatch=NotOlderThan&limit=5`)
      await get(`${path}?resourceVersion=${version}`)
    })
