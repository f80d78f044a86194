import fc from 'fast-check'

/** Requests as no client should send them: paths, queries, objects, patches, headers, credentials. */

const names = ['a', 'b', 'default', 'x'.repeat(300), '..', '%2e%2e', '%00', '%zz', '__proto__', 'constructor', 'A_b', 'ü', ' ']
const plurals = [
  'configmaps',
  'secrets',
  'namespaces',
  'pods',
  'services',
  'events',
  'leases',
  'deployments',
  'customresourcedefinitions',
  'roles',
  'boats',
  'nope',
]
const groups = [
  'api/v1',
  'apis/apps/v1',
  'apis/coordination.k8s.io/v1',
  'apis/apiextensions.k8s.io/v1',
  'apis/rbac.authorization.k8s.io/v1',
  'apis/fuzz.example/v1',
  'apis/events.k8s.io/v1',
  'apis',
  'openapi/v3',
  'openapi/v2',
  'metrics',
  'backup',
  '',
]
const one = <const T extends readonly unknown[]>(...values: T): fc.Arbitrary<T[number]> => fc.constantFrom<T[number]>(...values)

/** Places where there is something to break. */
const place = fc
  .record({
    base: one(
      '/api/v1/namespaces/default/configmaps',
      '/api/v1/namespaces/default/secrets',
      '/api/v1/namespaces/default/services',
      '/api/v1/namespaces/default/pods',
      '/api/v1/namespaces/default/serviceaccounts',
      '/api/v1/namespaces/default/events',
      '/apis/events.k8s.io/v1/namespaces/default/events',
      '/api/v1/namespaces',
      '/api/v1/nodes',
      '/apis/apps/v1/namespaces/default/deployments',
      '/apis/batch/v1/namespaces/default/jobs',
      '/apis/coordination.k8s.io/v1/namespaces/default/leases',
      '/apis/rbac.authorization.k8s.io/v1/clusterroles',
      '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
      '/apis/fuzz.example/v1/namespaces/default/boats',
      '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
    ),
    name: one(undefined, undefined, undefined, '/a', '/a', '/b', '/c', '/boats.fuzz.example'),
    subresource: one('', '', '', '', '/status', '/scale', '/token', '/finalize'),
  })
  .map(({ base, name, subresource }) => (name === undefined ? base : base + name + subresource))

const anywhere = fc
  .record({
    group: one(...groups),
    namespace: one(undefined, 'default', ...names),
    plural: one(...plurals),
    name: one(undefined, undefined, ...names),
    subresource: one(undefined, undefined, 'status', 'scale', 'finalize', 'token', 'log', '%2f'),
    extra: one('', '', '', '/', '//', '/../..', '?', '#'),
  })
  .map(({ group, namespace, plural, name, subresource, extra }) => {
    const parts = [group, ...(namespace === undefined ? [] : ['namespaces', namespace]), plural, name, subresource]
    return encodeLoosely(`/${parts.filter(part => part !== undefined).join('/')}${extra}`)
  })
const path = fc.oneof({ weight: 6, arbitrary: place }, { weight: 1, arbitrary: anywhere })

const queryValue = fc.oneof(
  one(
    'true',
    'false',
    '0',
    '1',
    '-1',
    '',
    'All',
    'Exact',
    'NotOlderThan',
    'a=b',
    'a in (b',
    '!a,b notin (c)',
    '9'.repeat(30),
    'metadata.name=a',
    'Strict',
    'Foreground',
    '.5',
    'null',
  ),
  fc.string({ maxLength: 20, unit: 'binary' }),
)
const queryName = one(
  'limit',
  'continue',
  'labelSelector',
  'fieldSelector',
  'resourceVersion',
  'resourceVersionMatch',
  'sendInitialEvents',
  'fieldManager',
  'force',
  'dryRun',
  'fieldValidation',
  'propagationPolicy',
  'includeObject',
  'shardSelector',
  'timeoutSeconds',
  'hash',
  'pretty',
  'gracePeriodSeconds',
)
const query = fc.oneof(
  { weight: 2, arbitrary: one('') },
  fc.array(fc.tuple(queryName, queryValue), { maxLength: 4 }).map(pairs => {
    const text = pairs.map(([name, value]) => `${name}=${encodeURIComponent(value.toWellFormed())}`).join('&')
    return text && `?${text}`
  }),
)

/** Objects that are nearly right: the fields clients meet, with a wrong thing here and there. */
const junk = fc.oneof(fc.jsonValue({ maxDepth: 3 }), one(null, 1e308, -0, '', '\u0000', {}, [], [null], 'self.a > 1'))
const schema = fc.record(
  {
    type: one('object', 'string', 'integer', 'array', 'nope', 5),
    properties: fc.dictionary(
      one('spec', 'status', 'a', '__proto__', 'metadata'),
      fc.oneof(junk, one({ type: 'string' }, { type: 'object' })),
    ),
    'x-kubernetes-preserve-unknown-fields': one(true, false, 'x'),
    'x-kubernetes-validations': fc.array(
      fc.record({
        rule: one('self == oldSelf', 'self.a.all(x, x > 1)', '(((', 'true', '1 / 0 == 1', 'self.matches("(a+)+$")'),
        message: junk,
      }),
    ),
    pattern: one('(a+)+$', '[', '^a'),
    default: junk,
  },
  { requiredKeys: [] },
)
const definition = fc.record(
  {
    group: one('fuzz.example', 'x', 5),
    scope: one('Namespaced', 'Cluster', 'x'),
    names: one({ plural: 'boats', kind: 'Boat', singular: 'boat' }, { plural: 'Boats' }, null, {}),
    versions: fc.array(
      fc.record({
        name: one('v1', 'V1', ''),
        served: one(true, false),
        storage: one(true, false),
        schema: fc.record({ openAPIV3Schema: schema }),
      }),
      { maxLength: 2 },
    ),
  },
  { requiredKeys: [] },
)
const metadata = fc.record(
  {
    name: fc.oneof({ weight: 4, arbitrary: one('a', 'b', 'c', 'boats.fuzz.example') }, one(...names, undefined, 5)),
    generateName: one('a-', '', 'A', 5),
    namespace: one('default', 'other', '', 5),
    labels: junk,
    annotations: junk,
    finalizers: fc.oneof(junk, one(['a/b'], [''])),
    ownerReferences: junk,
    managedFields: junk,
    resourceVersion: one('', '1', '0', 'x', 5, null),
    uid: one('', 'x', 5),
    deletionTimestamp: one('', '2026-01-01T00:00:00Z', 5),
    creationTimestamp: one(null, 'yesterday'),
  },
  { requiredKeys: [] },
)
const object = fc.record(
  {
    apiVersion: one('v1', 'apps/v1', 'fuzz.example/v1', 'apiextensions.k8s.io/v1', '', 5),
    kind: one('ConfigMap', 'Secret', 'Deployment', 'Boat', 'CustomResourceDefinition', 'Status', '', 5),
    metadata: fc.oneof({ weight: 4, arbitrary: metadata }, junk),
    spec: fc.oneof(definition, junk),
    data: junk,
    stringData: junk,
    status: junk,
    rules: junk,
  },
  { requiredKeys: [] },
)
const pointer = one('/metadata', '/metadata/labels', '', '/data/a', '/__proto__/x', '/metadata/name', 'x', '/spec/0', '/~', '/a~01/-')
/** Objects that are taken as they are, so that there is something to patch. */
const sound = one<unknown[]>(
  { metadata: { name: 'a' }, data: { a: 'Yg==' } },
  { metadata: { name: 'b', labels: { a: 'b' }, finalizers: ['a.example/b'] } },
  { metadata: { generateName: 'g-' } },
  {
    metadata: { name: 'c' },
    spec: {
      selector: { matchLabels: { a: 'b' } },
      template: { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'a', image: 'b' }] } },
    },
  },
  { metadata: { name: 'a' }, spec: { containers: [{ name: 'a', image: 'b' }] } },
  { metadata: { name: 'a' }, spec: { ports: [{ port: 80 }] } },
  { metadata: { name: 'a' }, rules: [{ apiGroups: [''], resources: ['pods'], verbs: ['get'] }] },
  {
    metadata: { name: 'boats.fuzz.example' },
    spec: {
      group: 'fuzz.example',
      scope: 'Namespaced',
      names: { plural: 'boats', singular: 'boat', kind: 'Boat' },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
        },
      ],
    },
  },
)
const spoiled = fc
  .tuple(sound, one('metadata', 'spec', 'data', 'kind', 'rules', 'status'), junk)
  .map(([value, field, wrong]) => ({ ...(value as object), [field]: wrong }))
const jsonPatch = fc.array(
  fc.record(
    { op: one('add', 'remove', 'replace', 'move', 'copy', 'test', 'x', 5), path: pointer, from: pointer, value: junk },
    { requiredKeys: ['op'] },
  ),
  { maxLength: 6 },
)
const broken = fc.tuple(object, fc.nat(200), fc.string({ maxLength: 4, unit: 'binary' })).map(([value, at, noise]) => {
  const text = JSON.stringify(value)
  return text.slice(0, at) + noise + text.slice(at + 1)
})
const body = fc.oneof(
  { weight: 4, arbitrary: fc.oneof({ weight: 2, arbitrary: sound }, spoiled).map(value => JSON.stringify(value)) },
  { weight: 4, arbitrary: object.map(value => JSON.stringify(value)) },
  { weight: 2, arbitrary: jsonPatch.map(value => JSON.stringify(value)) },
  { weight: 2, arbitrary: broken },
  { weight: 1, arbitrary: fc.string({ maxLength: 200, unit: 'binary' }) },
  {
    weight: 1,
    arbitrary: one(
      '',
      '{}',
      '[]',
      'null',
      '0',
      '"',
      '- a\n- b: &x [*x]',
      'a: &a [1]\nb: *a',
      '{"a":'.repeat(5_000),
      '[['.repeat(3_000),
      '!!js/function x',
      'k8s\0\n\x05\x12',
    ),
  },
)
const headers = fc.record({
  type: one(
    'application/json',
    'application/json',
    'application/merge-patch+json',
    'application/json',
    'application/yaml',
    'application/json-patch+json',
    'application/merge-patch+json',
    'application/strategic-merge-patch+json',
    'application/apply-patch+yaml',
    'application/vnd.kubernetes.protobuf',
    'text/plain',
    'application/json; charset=x',
    '',
  ),
  accept: one(
    '*/*',
    '*/*',
    '*/*',
    'application/json',
    'application/json',
    '*/*',
    'application/json',
    'application/yaml',
    'application/json;as=Table;g=meta.k8s.io;v=v1',
    'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1',
    'application/vnd.kubernetes.protobuf',
    'x',
    ';;,',
    'q=0',
  ),
  more: one(
    '',
    '',
    '',
    'Accept-Encoding: gzip\r\n',
    'If-None-Match: "x"\r\n',
    'User-Agent: \t\r\n',
    `X-Long: ${'y'.repeat(9_000)}\r\n`,
    'Expect: 100-continue\r\n',
    'Upgrade: h2c\r\n',
    'Impersonate-User: x\r\n',
  ),
  credential: fc.oneof({ weight: 15, arbitrary: one('admin') }, { weight: 1, arbitrary: one('none', 'Bearer x', 'Basic eDp5', 'Bearer ') }),
})
/** A request that is nearly right, or not at all. */
export const nonsense = fc.record({
  method: one('GET', 'GET', 'POST', 'POST', 'POST', 'PUT', 'PUT', 'PATCH', 'PATCH', 'PATCH', 'DELETE', 'OPTIONS', 'HEAD', 'TRACE', 'get'),
  path,
  query,
  body,
  headers,
})
export type Nonsense = typeof nonsense extends fc.Arbitrary<infer T> ? T : never

function encodeLoosely(text: string): string {
  return text.replace(/[^\x21-\x7e]/g, character => encodeURIComponent(character.toWellFormed()))
}

/** The request as it stands on the wire; `token` is the administrator's. */
export function bytesOf({ method, path, query, body, headers: { type, accept, more, credential } }: Nonsense, token: string): Buffer {
  const authorization = credential === 'none' ? '' : `Authorization: ${credential === 'admin' ? `Bearer ${token}` : credential}\r\n`
  const isRead = method === 'GET' || method === 'HEAD'
  const content = isRead ? Buffer.alloc(0) : Buffer.from(body.toWellFormed())
  const length = isRead ? '' : `Content-Type: ${type}\r\nContent-Length: ${content.length}\r\n`
  return Buffer.concat([
    Buffer.from(`${method} ${path}${query} HTTP/1.1\r\nHost: x\r\nAccept: ${accept}\r\n${authorization}${more}${length}\r\n`),
    content,
  ])
}
