import fc from 'fast-check'

/** Generates malformed requests: paths, queries, objects, patches, headers and credentials. */

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
/** Of every code point. fast-check's unit `binary` takes seconds to build. */
const anyCharacter = fc.nat(0x10ffff).map(code => String.fromCodePoint(code))
const oneOf = <const T extends readonly unknown[]>(...values: T): fc.Arbitrary<T[number]> => fc.constantFrom<T[number]>(...values)

/** Paths of served resources. */
const validPath = fc
  .record({
    base: oneOf(
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
    name: oneOf(undefined, undefined, undefined, '/a', '/a', '/b', '/c', '/boats.fuzz.example'),
    subresource: oneOf('', '', '', '', '/status', '/scale', '/token', '/finalize'),
  })
  .map(({ base, name, subresource }) => (name === undefined ? base : base + name + subresource))

const arbitraryPath = fc
  .record({
    group: oneOf(...groups),
    namespace: oneOf(undefined, 'default', ...names),
    plural: oneOf(...plurals),
    name: oneOf(undefined, undefined, ...names),
    subresource: oneOf(undefined, undefined, 'status', 'scale', 'finalize', 'token', 'log', '%2f'),
    extra: oneOf('', '', '', '/', '//', '/../..', '?', '#'),
  })
  .map(({ group, namespace, plural, name, subresource, extra }) => {
    const parts = [group, ...(namespace === undefined ? [] : ['namespaces', namespace]), plural, name, subresource]
    return encodeLoosely(`/${parts.filter(part => part !== undefined).join('/')}${extra}`)
  })
const path = fc.oneof({ weight: 6, arbitrary: validPath }, { weight: 1, arbitrary: arbitraryPath })

const queryValue = fc.oneof(
  oneOf(
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
  fc.string({ maxLength: 20, unit: anyCharacter }),
)
const queryName = oneOf(
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
  { weight: 2, arbitrary: oneOf('') },
  fc.array(fc.tuple(queryName, queryValue), { maxLength: 4 }).map(pairs => {
    const text = pairs.map(([name, value]) => `${name}=${encodeURIComponent(value.toWellFormed())}`).join('&')
    return text && `?${text}`
  }),
)

/** Arbitrary values for the fields that clients commonly set. */
const arbitraryValue = fc.oneof(fc.jsonValue({ maxDepth: 3 }), oneOf(null, 1e308, -0, '', '\u0000', {}, [], [null], 'self.a > 1'))
const schema = fc.record(
  {
    type: oneOf('object', 'string', 'integer', 'array', 'nope', 5),
    properties: fc.dictionary(
      oneOf('spec', 'status', 'a', '__proto__', 'metadata'),
      fc.oneof(arbitraryValue, oneOf({ type: 'string' }, { type: 'object' })),
    ),
    'x-kubernetes-preserve-unknown-fields': oneOf(true, false, 'x'),
    'x-kubernetes-validations': fc.array(
      fc.record({
        rule: oneOf('self == oldSelf', 'self.a.all(x, x > 1)', '(((', 'true', '1 / 0 == 1', 'self.matches("(a+)+$")'),
        message: arbitraryValue,
      }),
    ),
    pattern: oneOf('(a+)+$', '[', '^a'),
    default: arbitraryValue,
  },
  { requiredKeys: [] },
)
const definition = fc.record(
  {
    group: oneOf('fuzz.example', 'x', 5),
    scope: oneOf('Namespaced', 'Cluster', 'x'),
    names: oneOf({ plural: 'boats', kind: 'Boat', singular: 'boat' }, { plural: 'Boats' }, null, {}),
    versions: fc.array(
      fc.record({
        name: oneOf('v1', 'V1', ''),
        served: oneOf(true, false),
        storage: oneOf(true, false),
        schema: fc.record({ openAPIV3Schema: schema }),
      }),
      { maxLength: 2 },
    ),
  },
  { requiredKeys: [] },
)
const metadata = fc.record(
  {
    name: fc.oneof({ weight: 4, arbitrary: oneOf('a', 'b', 'c', 'boats.fuzz.example') }, oneOf(...names, undefined, 5)),
    generateName: oneOf('a-', '', 'A', 5),
    namespace: oneOf('default', 'other', '', 5),
    labels: arbitraryValue,
    annotations: arbitraryValue,
    finalizers: fc.oneof(arbitraryValue, oneOf(['a/b'], [''])),
    ownerReferences: arbitraryValue,
    managedFields: arbitraryValue,
    resourceVersion: oneOf('', '1', '0', 'x', 5, null),
    uid: oneOf('', 'x', 5),
    deletionTimestamp: oneOf('', '2026-01-01T00:00:00Z', 5),
    creationTimestamp: oneOf(null, 'yesterday'),
  },
  { requiredKeys: [] },
)
const object = fc.record(
  {
    apiVersion: oneOf('v1', 'apps/v1', 'fuzz.example/v1', 'apiextensions.k8s.io/v1', '', 5),
    kind: oneOf('ConfigMap', 'Secret', 'Deployment', 'Boat', 'CustomResourceDefinition', 'Status', '', 5),
    metadata: fc.oneof({ weight: 4, arbitrary: metadata }, arbitraryValue),
    spec: fc.oneof(definition, arbitraryValue),
    data: arbitraryValue,
    stringData: arbitraryValue,
    status: arbitraryValue,
    rules: arbitraryValue,
  },
  { requiredKeys: [] },
)
const pointer = oneOf('/metadata', '/metadata/labels', '', '/data/a', '/__proto__/x', '/metadata/name', 'x', '/spec/0', '/~', '/a~01/-')
/** Valid objects, so that later requests have objects to patch. */
const validObject = oneOf<unknown[]>(
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
const objectWithInvalidField = fc
  .tuple(validObject, oneOf('metadata', 'spec', 'data', 'kind', 'rules', 'status'), arbitraryValue)
  .map(([value, field, wrong]) => ({ ...(value as object), [field]: wrong }))
const jsonPatch = fc.array(
  fc.record(
    { op: oneOf('add', 'remove', 'replace', 'move', 'copy', 'test', 'x', 5), path: pointer, from: pointer, value: arbitraryValue },
    { requiredKeys: ['op'] },
  ),
  { maxLength: 6 },
)
const corruptedJson = fc.tuple(object, fc.nat(200), fc.string({ maxLength: 4, unit: anyCharacter })).map(([value, at, noise]) => {
  const text = JSON.stringify(value)
  return text.slice(0, at) + noise + text.slice(at + 1)
})
const body = fc.oneof(
  { weight: 4, arbitrary: fc.oneof({ weight: 2, arbitrary: validObject }, objectWithInvalidField).map(value => JSON.stringify(value)) },
  { weight: 4, arbitrary: object.map(value => JSON.stringify(value)) },
  { weight: 2, arbitrary: jsonPatch.map(value => JSON.stringify(value)) },
  { weight: 2, arbitrary: corruptedJson },
  { weight: 1, arbitrary: fc.string({ maxLength: 200, unit: anyCharacter }) },
  {
    weight: 1,
    arbitrary: oneOf(
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
  type: oneOf(
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
  accept: oneOf(
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
  more: oneOf(
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
  credential: fc.oneof(
    { weight: 15, arbitrary: oneOf('admin') },
    { weight: 1, arbitrary: oneOf('none', 'Bearer x', 'Basic eDp5', 'Bearer ') },
  ),
})
/** Requests from almost valid to entirely malformed. */
export const malformedRequests = fc.record({
  method: oneOf('GET', 'GET', 'POST', 'POST', 'POST', 'PUT', 'PUT', 'PATCH', 'PATCH', 'PATCH', 'DELETE', 'OPTIONS', 'HEAD', 'TRACE', 'get'),
  path,
  query,
  body,
  headers,
})
export type MalformedRequest = typeof malformedRequests extends fc.Arbitrary<infer T> ? T : never

function encodeLoosely(text: string): string {
  return text.replace(/[^\x21-\x7e]/g, character => encodeURIComponent(character.toWellFormed()))
}

/** Encodes a request as HTTP/1.1; `token` is the administrator's. */
export function encodeRequest(
  { method, path, query, body, headers: { type, accept, more, credential } }: MalformedRequest,
  token: string,
): Buffer {
  const authorization = credential === 'none' ? '' : `Authorization: ${credential === 'admin' ? `Bearer ${token}` : credential}\r\n`
  const isRead = method === 'GET' || method === 'HEAD'
  const content = isRead ? Buffer.alloc(0) : Buffer.from(body.toWellFormed())
  const length = isRead ? '' : `Content-Type: ${type}\r\nContent-Length: ${content.length}\r\n`
  return Buffer.concat([
    Buffer.from(`${method} ${path}${query} HTTP/1.1\r\nHost: x\r\nAccept: ${accept}\r\n${authorization}${more}${length}\r\n`),
    content,
  ])
}
