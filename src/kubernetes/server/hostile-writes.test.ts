import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startTestServer, type TestServer } from './server.testing.ts'

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

test('server-side apply creates an object only with the right to create', async () => {
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

test('a namespace in the body of a cluster-scoped object does not create a second object', async () => {
  const node = (namespace: string) => ({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1', namespace } })
  const { code, body } = await t.call('/api/v1/nodes', { body: node('a') })
  deepEqual([code, body.metadata.namespace], [201, undefined])
  equal((await t.call('/api/v1/nodes', { body: node('b') })).code, 409)
  equal((await t.call('/api/v1/nodes/n1')).body.metadata.uid, body.metadata.uid)
})

test('a CustomResourceDefinition with the name of a built-in kind does not affect its objects', async () => {
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
  // A user who may write the status can set these conditions.
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

const things = '/apis/hostile.test/v1/things'
const thing = (name: string, spec: object) => ({ apiVersion: 'hostile.test/v1', kind: 'Thing', metadata: { name }, spec })
const listOf = <T>(count: number, item: (index: number) => T): T[] => Array.from({ length: count }, (_, index) => item(index))

test('objects that are too large or too deep are rejected before they are processed', async () => {
  const spec = {
    type: 'object',
    properties: {
      texts: { type: 'array', items: { type: 'string' } },
      any: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
      atomic: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true, 'x-kubernetes-map-type': 'atomic' },
    },
  }
  const schema = { openAPIV3Schema: { type: 'object', properties: { spec } } }
  const crd = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'things.hostile.test' },
    spec: {
      group: 'hostile.test',
      scope: 'Cluster',
      names: { plural: 'things', kind: 'Thing' },
      versions: [{ name: 'v1', served: true, storage: true, schema }],
    },
  }
  equal((await t.call(definitions, { body: crd })).code, 201)
  const answer = async (body: string, type?: string) => {
    const { code, body: status } = await t.call(things, { body, type })
    return `${code} ${status.message ?? ''}`
  }
  const whole = (text: string) => `{"apiVersion":"hostile.test/v1","kind":"Thing","metadata":{"name":"x"},"spec":{"any":{"a":${text}}}}`
  const deep = '['.repeat(1_300_000) + ']'.repeat(1_300_000)
  match(await answer(whole(deep)), /^400 .*must not nest deeper than 1000 levels/)
  match(await answer(whole(deep), 'application/yaml'), /^400 .*must not nest deeper than 1000 levels/)
  match(await answer(whole(`[${'1,'.repeat(120_000)}1]`)), /^413 .*at most 100000 fields and items/)
  match(await answer(whole(`[${'1,'.repeat(1_200_000)}1]`)), /^413 .*at most 300000 fields and items/)
  equal((await t.call(things, { body: thing('grows', { any: { a: listOf(60_000, () => 1) } }) })).code, 201)
  const more = { method: 'PATCH', type: 'application/merge-patch+json', body: { spec: { any: { b: listOf(60_000, () => 1) } } } }
  equal((await t.call(`${things}/grows`, more)).code, 413, 'a patch must not make it larger')
  const applied = { ...apply, body: thing('grows', { any: { b: listOf(60_000, () => 1) } }) }
  equal((await t.call(`${things}/grows?fieldManager=m`, applied)).code, 413, 'nor an apply')
})

test('what costs most is limited further: names, fields of wide maps, items that are owned one by one', async () => {
  const fieldsOf = (count: number, prefix = 'k') => Object.fromEntries(listOf(count, i => [`${prefix}${i}`, 'v']))
  const patch = (type: string, body: object) => ({ method: 'PATCH', type: `application/${type}`, body })
  const wide = (name: string, data: object) => ({ ...configMap(name), data })
  equal((await t.call(maps, { body: wide('wide', fieldsOf(9_000)) })).code, 201)
  const rejected = await t.call(maps, { body: wide('wider', fieldsOf(10_001)) })
  equal(rejected.code, 413)
  match(rejected.body.message ?? '', /at most 10000 fields in maps of more than 1000$/)
  const names = Object.fromEntries(listOf(20, of => [`m${of}`, fieldsOf(600, `k${of}_`)]))
  match((await t.call(things, { body: thing('names', { any: names }) })).body.message ?? '', /at most 10000 different names of fields$/)
  const more = fieldsOf(1_500, 'more')
  const grown = [
    patch('merge-patch+json', { data: more }),
    patch('strategic-merge-patch+json', { data: more }),
    patch('json-patch+json', [{ op: 'add', path: '/data', value: { ...fieldsOf(9_000), ...more } }]),
    patch('apply-patch+yaml', wide('wide', more)),
  ]
  for (const request of grown) equal((await t.call(`${maps}/wide?fieldManager=m`, request)).code, 413, request.type)

  const finalizers = (count: number, prefix: string) => ({
    metadata: { name: 'items', finalizers: listOf(count, i => `a.test/${prefix}${i}`) },
  })
  match((await t.call(maps, { body: finalizers(5_001, 'a') })).body.message ?? '', /at most 5000 items in lists of type set or map$/)
  equal((await t.call(maps, { body: finalizers(3_000, 'a') })).code, 201)
  const items = { ...configMap('items'), ...finalizers(3_000, 'b') }
  for (const request of [patch('strategic-merge-patch+json', finalizers(3_000, 'b')), patch('apply-patch+yaml', items)]) {
    equal((await t.call(`${maps}/items?fieldManager=m`, request)).code, 413, request.type)
  }
})

test('an object whose fields have many owners does not grow without bound', async () => {
  const owned = { ...configMap('owned'), data: Object.fromEntries(listOf(9_000, i => [`k${i}`, 'v'])) }
  const codes: number[] = []
  for (let manager = 0; codes.at(-1) !== 413 && manager < 5; manager++) {
    codes.push((await t.call(`${maps}/owned?fieldManager=m${manager}`, { ...apply, body: owned })).code)
  }
  deepEqual(codes, [201, 200, 413])
})

test('an object of many fields with few names is accepted, as CustomResourceDefinitions are', async () => {
  const fieldsOf = (count: number) =>
    Object.fromEntries(listOf(count, i => [`m${i}`, Object.fromEntries(listOf(100, j => [`k${j}`, 'v']))]))
  const atomic = thing('crd-like', { atomic: fieldsOf(900) })
  equal((await t.call(things, { body: atomic })).code, 201)
  equal((await t.call(`${things}/crd-like?fieldManager=m&force=true`, { ...apply, body: atomic })).code, 200)
  const { code, body } = await t.call(things, { body: thing('granular', { any: fieldsOf(300) }) })
  equal(code, 413)
  match(body.message ?? '', /at most 30000 fields that can have owners of their own$/)
})

test('a review with many groups, extra values, requirements or audiences is rejected with the path of the field', async () => {
  const review = async (spec: object, kind = 'SubjectAccessReview', group = 'authorization.k8s.io') => {
    const body = { apiVersion: `${group}/v1`, kind, spec }
    const answer = await t.call(`/apis/${group}/v1/${kind.toLowerCase()}s`, { body })
    return `${answer.code} ${answer.body.message ?? ''}`
  }
  const resourceAttributes = { verb: 'get', resource: 'pods', namespace: 'default' }
  const texts = (count: number) => listOf(count, i => `t${i}`)
  const requirements = listOf(3_000, i => ({ key: `k${i}`, operator: 'Exists' }))
  match(await review({ user: 'u', groups: texts(5_000), extra: { a: texts(4_999) }, resourceAttributes }), /^201/)
  const tooMany = (field: string) => new RegExp(`^400 spec.${field} must have at most 5000 fields and items$`)
  match(await review({ user: 'u', groups: texts(90_000), resourceAttributes }), tooMany('groups'))
  match(await review({ user: 'u', extra: { a: texts(90_000) }, resourceAttributes }), tooMany('extra'))
  match(await review({ user: 'u', extra: Object.fromEntries(texts(5_001).map(key => [key, []])), resourceAttributes }), tooMany('extra'))
  const selected = { resourceAttributes: { ...resourceAttributes, labelSelector: { requirements } } }
  match(await review(selected, 'SelfSubjectAccessReview'), tooMany('resourceAttributes'))
  match(await review({ token: 'x', audiences: texts(90_000) }, 'TokenReview', 'authentication.k8s.io'), tooMany('audiences'))
  const token = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { audiences: texts(90_000) } }
  const { code, body } = await t.call('/api/v1/namespaces/default/serviceaccounts/default/token', { body: token })
  match(`${code} ${body.message}`, tooMany('audiences'))
})

test('numbers that cannot be stored exactly are rejected', async () => {
  const send = async (number: string, type: string, method = 'POST') => {
    const path = method === 'POST' ? things : `${things}/grows?fieldManager=numbers`
    const name = method === 'POST' ? 'number' : 'grows'
    const text = `{"apiVersion":"hostile.test/v1","kind":"Thing","metadata":{"name":"${name}"},"spec":{"any":{"a":${number}}}}`
    const { code, body } = await t.call(path, { method, type, body: text })
    return `${code} ${body.message ?? ''}`
  }
  for (const number of ['9007199254740993', '9223372036854775807', '1e400']) {
    match(await send(number, 'application/json'), new RegExp(`^400 the number ${number} cannot be stored exactly`))
    match(await send(number, 'application/apply-patch+yaml', 'PATCH'), new RegExp(`^400 the number ${number} cannot be stored exactly`))
    match(await send(number, 'application/merge-patch+json', 'PATCH'), new RegExp(`^400 the number ${number} cannot be stored exactly`))
  }
  const yaml = 'apiVersion: hostile.test/v1\nkind: Thing\nmetadata: {name: number}\nspec: {any: {a: 9007199254740993}}\n'
  match((await t.call(things, { type: 'application/yaml', body: yaml })).body.message ?? '', /the number 9007199254740993 cannot be stored/)
  match(await send('9007199254740991', 'application/json'), /^201/)
})

test('an object with errors in every field is rejected with a bounded message', async () => {
  const unknown = `{"apiVersion":"hostile.test/v1","kind":"Thing","metadata":{"name":"u"},${listOf(9_000, i => `"u${i}":1`).join(',')}}`
  const rejected = await t.call(`${things}?fieldValidation=Strict`, { body: unknown })
  equal(rejected.code, 400)
  const warned = await t.call(things, { body: unknown })
  equal(warned.code, 201)
  ok((warned.headers.get('warning') ?? '').length < 8_192)
  const wrong = (metadata: object) =>
    t.call(maps, { body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'wrong', ...metadata } } })
  const owner = (name: string) => ({ apiVersion: 'v1', kind: 'ConfigMap', name, uid: name, controller: true })
  for (const metadata of [
    { labels: Object.fromEntries(listOf(9_000, i => [`-${i}`, '-'])) },
    { annotations: Object.fromEntries(listOf(9_000, i => [`-${i}`, '-'])) },
    { finalizers: listOf(4_000, i => `_${i}`) },
    { ownerReferences: listOf(4_000, i => owner(`o${i}`)) },
    { name: 'x'.repeat(2_900_000) },
  ]) {
    const { code, body } = await wrong(metadata)
    equal(code, 422)
    ok(JSON.stringify(body).length < 2_000_000)
  }
  const subjects = listOf(24_000, () => ({}))
  const binding = { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRoleBinding', metadata: { name: 'w' }, roleRef: {}, subjects }
  ok((await t.call(`${rbac}/clusterrolebindings`, { body: binding })).code < 500)
})

test('the escalation check of a huge role is bounded', async () => {
  const token = await userWith('granter', [{ apiGroups: ['rbac.authorization.k8s.io'], resources: ['clusterroles'], verbs: ['create'] }])
  const rule = { apiGroups: listOf(300, i => `g${i}`), resources: listOf(300, i => `r${i}`), verbs: listOf(300, i => `v${i}`) }
  const role = { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: { name: 'vast' }, rules: [rule, rule, rule] }
  const { code, body } = await t.call(`${rbac}/clusterroles`, { token, body: role })
  equal(code, 403)
  match(body.message ?? '', /too many rules to compare/)
  equal((await t.call(`${rbac}/clusterroles`, { body: role })).code, 201, 'administrators are not asked')
})

test('long lists merge and shift in linear time, or are rejected', async () => {
  const finalizers = (prefix: string) => listOf(2_000, i => `a.test/${prefix}${i}`)
  const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'long', finalizers: finalizers('a') } }
  equal((await t.call(maps, { body })).code, 201)
  const merge = { method: 'PATCH', type: 'application/strategic-merge-patch+json' }
  const grown = await t.call(`${maps}/long`, { ...merge, body: { metadata: { finalizers: finalizers('b') } } })
  equal(grown.body.metadata.finalizers?.length, 4_000)
  const gone = { '$deleteFromPrimitiveList/finalizers': finalizers('a') }
  equal((await t.call(`${maps}/long`, { ...merge, body: { metadata: gone } })).body.metadata.finalizers?.length, 2_000)
  equal((await t.call(things, { body: thing('list', { texts: listOf(90_000, () => 'x') }) })).code, 201)
  const front = listOf(9_000, () => ({ op: 'add', path: '/spec/texts/0', value: 'y' }))
  const moved = await t.call(`${things}/list`, { method: 'PATCH', type: 'application/json-patch+json', body: front })
  equal(moved.code, 422)
  match(moved.body.message ?? '', /shift too many items/)
})

test('the number of requirements of a selector is bounded', async () => {
  const listed = (query: string) => t.call(`${maps}?${query}`).then(({ code }) => code)
  const labels = (count: number) => encodeURIComponent(listOf(count, i => `!a${i}`).join(','))
  equal(await listed(`labelSelector=${labels(64)}`), 200)
  equal(await listed(`labelSelector=${labels(65)}`), 400)
  equal(await listed(`labelSelector=${encodeURIComponent(`a in (${listOf(2_000, i => `v${i}`).join(',')})`)}`), 200)
  equal(await listed(`fieldSelector=${encodeURIComponent(listOf(65, i => `metadata.name!=a${i}`).join(','))}`), 400)
})

test('a long object or list is sent as JSON when YAML is requested', async () => {
  const headers = { accept: 'application/yaml' }
  const short = await t.call<string>('/api/v1/namespaces/default', { headers })
  match(short.body, /^apiVersion: v1$/m)
  const long = await t.call<string>(`${maps}/long`, { headers })
  equal(JSON.parse(long.body).metadata.finalizers.length, 2_000)
  equal(long.headers.get('content-type'), 'application/yaml')
  const list = await t.call<string>(maps, { headers })
  equal(JSON.parse(list.body).kind, 'ConfigMapList')
})

test('deletecollection of many objects streams all of them', async () => {
  const make = (i: number) => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: `many${i}`, labels: { many: 'yes' } },
    data: { a: 'x'.repeat(2_000) },
  })
  await Promise.all(listOf(400, i => t.call(maps, { body: make(i) })))
  const { code, body } = await t.call(`${maps}?labelSelector=many`, { method: 'DELETE' })
  deepEqual([code, body.items.length], [200, 400])
  equal((await t.call(`${maps}?labelSelector=many`)).body.items.length, 0)
})

test('an owner reference from another namespace does not block a deletion', async () => {
  for (const name of ['victim', 'attacker']) {
    equal((await t.call('/api/v1/namespaces', { body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name } } })).code, 201)
  }
  const victim = '/api/v1/namespaces/victim/configmaps'
  const { body: owner } = await t.call(victim, { body: configMap('owner') })
  const ownerReferences = [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'owner', uid: owner.metadata.uid, blockOwnerDeletion: true }]
  const dependent = (name: string) => ({ ...configMap(name), metadata: { name, ownerReferences, finalizers: ['attacker.test/stay'] } })
  // An owner in another namespace is none, so the collector deletes it: its finalizer keeps it.
  equal((await t.call('/api/v1/namespaces/attacker/configmaps', { body: dependent('holds') })).code, 201)
  await t.call(`${victim}/owner`, { method: 'DELETE', body: { propagationPolicy: 'Foreground' } })
  while ((await t.call(`${victim}/owner`)).code !== 404);
})
