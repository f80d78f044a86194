import { deepEqual, equal, match } from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startTestServer, type TestServer } from './test-server.ts'

// Writes that reach for what their writer was not given, and writes that are built to cost more than they weigh.

const rbac = '/apis/rbac.authorization.k8s.io/v1'
const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
const maps = '/api/v1/namespaces/default/configmaps'

let t: TestServer
before(async () => {
  t = await startTestServer()
})
after(() => t.close())

/** The token of a user who has these rules everywhere. */
async function userWith(name: string, rules: object[]): Promise<string> {
  const metadata = { name }
  const apiVersion = 'rbac.authorization.k8s.io/v1'
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name }
  const subjects = [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name }]
  equal((await t.call(`${rbac}/clusterroles`, { body: { apiVersion, kind: 'ClusterRole', metadata, rules } })).code, 201)
  const binding = { apiVersion, kind: 'ClusterRoleBinding', metadata, roleRef, subjects }
  equal((await t.call(`${rbac}/clusterrolebindings`, { body: binding })).code, 201)
  return t.server.issueToken({ name, groups: [], ttlMs: 600_000 })
}

const apply = { method: 'PATCH', type: 'application/apply-patch+yaml' }
const configMap = (name: string) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data: {} })

test('server-side apply makes an object only for who may create it', async () => {
  const token = await userWith('patcher', [{ apiGroups: ['', 'rbac.authorization.k8s.io'], resources: ['*'], verbs: ['patch', 'get'] }])
  const { code, body } = await t.call(`${maps}/applied?fieldManager=m`, { ...apply, token, body: configMap('applied') })
  equal(code, 403)
  match(body.message ?? '', /User "patcher" cannot create resource "configmaps"/)
  equal((await t.call(`${maps}/applied`)).code, 404)
  const role = { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: { name: 'applied' }, rules: [] }
  equal((await t.call(`${rbac}/clusterroles/applied?fieldManager=m`, { ...apply, token, body: role })).code, 403)
  equal((await t.call(`${maps}/applied?fieldManager=m`, { ...apply, body: configMap('applied') })).code, 201)
  equal((await t.call(`${maps}/applied?fieldManager=m`, { ...apply, token, body: configMap('applied') })).code, 200)
})

test('a namespace that is sent for a kind without namespaces does not make a second object of the name', async () => {
  const node = (namespace: string) => ({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1', namespace } })
  const { code, body } = await t.call('/api/v1/nodes', { body: node('a') })
  deepEqual([code, body.metadata.namespace], [201, undefined])
  equal((await t.call('/api/v1/nodes', { body: node('b') })).code, 409)
  equal((await t.call('/api/v1/nodes/n1')).body.metadata.uid, body.metadata.uid)
})

test('a definition with the name of a built-in kind does not touch its objects', async () => {
  const count = async () => (await t.call(`${rbac}/clusterroles`)).body.items.length
  const there = await count()
  const names = { plural: 'clusterroles', kind: 'Clusterole', singular: 'clusterole' }
  const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } }
  const name = 'clusterroles.rbac.authorization.k8s.io'
  const crd = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name, annotations: { 'api-approved.kubernetes.io': 'unapproved, as a test' } },
    spec: {
      group: 'rbac.authorization.k8s.io',
      scope: 'Cluster',
      names,
      versions: [{ name: 'v1', served: true, storage: true, schema }],
    },
  }
  const { code, body } = await t.call(definitions, { body: crd })
  equal(code, 201)
  // Who may write its status says that the names were accepted.
  const conditions = ['NamesAccepted', 'Established'].map(type => ({
    type,
    status: 'True',
    reason: 'Mine',
    message: '',
    lastTransitionTime: '2026-01-01T00:00:00Z',
  }))
  const forced = { ...body, status: { acceptedNames: { ...names, listKind: 'X' }, storedVersions: ['v1'], conditions } }
  await t.call(`${definitions}/${name}/status`, { method: 'PUT', body: forced })
  const unchecked = { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: { name: 'unchecked' }, rules: 'x' }
  equal((await t.call(`${rbac}/clusterroles`, { body: unchecked })).code, 400, 'the checks of the built-in kind hold')
  await t.call(`${definitions}/${name}`, { method: 'DELETE' })
  while ((await t.call(`${definitions}/${name}`)).code !== 404);
  equal(await count(), there)
})
