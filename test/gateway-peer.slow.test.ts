/** A real kube-apiserver as a partition, where one was built (`scripts/build-peers.sh`): what is routed works, what must be compared is rejected. */
import { deepEqual, equal, match } from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { Agent, fetch } from 'undici'
import { type Client, configMapResource, namespaceResource } from '../src/kubernetes/client/index.ts'
import { type Peer, peerMissing, startPeer } from './conformance/peer.ts'
import { eventually } from './support/eventually.ts'
import { GatewayFixture } from './support/gateway/gateway-fixture.ts'
import { Watched } from './support/gateway/watched.ts'

const skip = peerMissing()

describe('a kube-apiserver as a partition', { skip, timeout: 120_000 }, () => {
  let peer: Peer
  let fixture: GatewayFixture
  let client: Client
  before(async () => {
    fixture = await GatewayFixture.start({ home: [], t1: ['Tenants'] })
    peer = await startPeer({ frontProxyCa: fixture.caCertificate })
    await fixture.addPartition('kube', { server: peer.url, caCertificate: peer.caCertificate ?? '' }, 9)
    client = fixture.client
    for (const [name, tenant] of Object.entries({ a: 't1', k: 'kube' }))
      await client.resource(namespaceResource).create({ metadata: { name, labels: { 'oarlock.dev/tenant': tenant } } })
  })
  after(async () => {
    await fixture?.[Symbol.asyncDispose]()
    await peer?.close()
  })
  const configMaps = () => client.resource(configMapResource)
  const errorOf = async (sent: Promise<unknown>) =>
    await sent.then(
      () => 'no error',
      error => `${(error as { code?: number }).code} ${String(error)}`,
    )
  const get = async (path: string, headers = {}) => await (await client.request({ method: 'GET', path, headers })).json()

  test('objects of its namespaces are created, read, changed, listed in pages, watched and deleted', async () => {
    const watched = new Watched(client, '/api/v1/namespaces/k/configmaps?watch=true')
    for (const name of ['one', 'two', 'three']) await configMaps().create({ metadata: { namespace: 'k', name }, data: { name } })
    await configMaps().patch('one', { data: { more: 'x' } }, { namespace: 'k', type: 'merge' })
    await configMaps().apply({ metadata: { namespace: 'k', name: 'two' }, data: { applied: 'x' } })
    deepEqual((await configMaps().get('one', { namespace: 'k' })).data, { name: 'one', more: 'x' })
    const page = await configMaps().list({ namespace: 'k', limit: 2 })
    const rest = await configMaps().list({ namespace: 'k', limit: 2, continue: page.metadata.continue })
    equal(
      page.items.length + rest.items.length,
      4 - Number(!rest.items.concat(page.items).some(({ metadata }) => metadata.name === 'kube-root-ca.crt')),
    )
    await configMaps().delete('three', { namespace: 'k' })
    await eventually(
      () => watched.events.some(({ type, object }) => type === 'DELETED' && object.metadata.name === 'three'),
      'the deletion',
    )
    deepEqual(
      watched.events.filter(({ object }) => object.metadata.name === 'one').map(({ type }) => type),
      ['ADDED', 'MODIFIED'],
    )
    await watched.stop()
  })

  test('a user has all of their groups there, and only their rights', async () => {
    const rbac = '/apis/rbac.authorization.k8s.io/v1/namespaces/k'
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'read' }
    const role = { metadata: { name: 'read' }, rules: [{ apiGroups: [''], resources: ['configmaps'], verbs: ['get'] }] }
    const body = { metadata: { name: 'ops' }, roleRef, subjects: [{ apiGroup: roleRef.apiGroup, kind: 'Group', name: 'ops' }] }
    const headers = { 'content-type': 'application/json' }
    await client.request({ method: 'POST', path: `${rbac}/roles`, headers, body: JSON.stringify(role) })
    await client.request({ method: 'POST', path: `${rbac}/rolebindings`, headers, body: JSON.stringify(body) })
    const agent = new Agent({ connect: { ca: fixture.caCertificate } })
    const statusOf = async (token: string, method = 'GET') => {
      const url = `${fixture.url}/api/v1/namespaces/k/configmaps/one`
      const response = await fetch(url, { dispatcher: agent, method, headers: { authorization: `Bearer ${token}` } })
      await response.text()
      return response.status
    }
    equal(await statusOf('eve+dev+ops'), 200)
    equal(await statusOf('eve+ops+dev'), 200)
    equal(await statusOf('eve+dev'), 403)
    equal(await statusOf('eve+dev+ops', 'DELETE'), 403)
    await agent.destroy()
  })

  test('a name is in one partition, also when one of them is a kube-apiserver', async () => {
    const taken = client.resource(namespaceResource).create({ metadata: { name: 'a', labels: { 'oarlock.dev/tenant': 'kube' } } })
    match(await errorOf(taken), /409 .*namespaces "a" already exists in another partition/)
    match(await errorOf(configMaps().create({ metadata: { namespace: 'none', name: 'x' } })), /404 .*namespaces "none" not found/)
  })

  test('what needs comparable versions is rejected with the name of the partition and the reason, never answered in part', async () => {
    const reason = /405 .*partition "kube" is no Oarlock API server, so that its resource versions cannot be compared/
    for (const query of ['', '?watch=true', '?limit=1', '?resourceVersion=7&resourceVersionMatch=Exact', '?watch=true&resourceVersion=7'])
      match(await errorOf(get(`/api/v1/configmaps${query}`)), reason, query)
    match(await errorOf(get('/api/v1/namespaces')), reason)
    // What is in one partition, or at home, is not affected.
    equal((await configMaps().list({ namespace: 'a' })).items.length >= 0, true)
    equal((await client.resource(namespaceResource).get('k')).metadata.name, 'k')
    await get('/apis/storage.k8s.io/v1/storageclasses')
  })
})
