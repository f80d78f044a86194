import type { Answer, RawConnection } from './load/raw-connection.ts'

/** Requests that cost the server the most within its limits, or just beyond them. `send` is called with 0, 1, 2 and so on. */
export type CostlyRequest = { readonly name: string; send(connection: RawConnection, index: number): Promise<Answer> }

const maps = '/api/v1/namespaces/default/configmaps'
const wides = '/apis/stall.oarlock.dev/v1/namespaces/default/wides'
/** Below the limits: 10,000 fields of wide maps, 5,000 owned items, 30,000 owned fields, 100,000 fields in all. */
const wide = 9_900
const owned = 29_000
const ownedItems = 4_900
const nodes = 98_000

const fields = (count: number, value: unknown, prefix = 'k') =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`${prefix}${index}`, value]))
const configMap = (name: string, value: string, count = wide) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name },
  data: fields(count, value),
})
const custom = (name: string, spec: object) => ({ apiVersion: 'stall.oarlock.dev/v1', kind: 'Wide', metadata: { name }, spec })
const narrow = (value: unknown) => ({ any: fields(owned / 100, fields(99, value, 'f'), 'n') })
const atomic = () => ({ atomic: fields(nodes / 100, fields(99, 1, 'f'), 'n') })
const items = (count: number, value: number) => ({
  items: Array.from({ length: count }, (_, index) => ({ key: `k${index}`, other: 'o', value })),
})
const set = (from: number, count: number) => ({ set: Array.from({ length: count }, (_, index) => `v${from + index}`) })

const json = (method: string, path: string, body: unknown, type = 'application/json') => {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  return (connection: RawConnection) => connection.request(method, path, text, type)
}
const create = (path: string, body: unknown) => json('POST', path, body)
const apply = (path: string, manager: string, body: unknown, force = true) =>
  json('PATCH', `${path}?fieldManager=${manager}${force ? '&force=true' : ''}`, body, 'application/apply-patch+yaml')
const row = (name: string, of: (index: number) => (connection: RawConnection) => Promise<Answer>): CostlyRequest => ({
  name,
  send: (connection, index) => of(index)(connection),
})

const strategic = 'application/strategic-merge-patch+json'
const merge = 'application/merge-patch+json'
const jsonPatch = 'application/json-patch+json'

const review = (groups: number) =>
  create('/apis/authorization.k8s.io/v1/subjectaccessreviews', {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SubjectAccessReview',
    spec: { groups: Object.keys(fields(groups, 0, 'group')), resourceAttributes: { verb: 'get', resource: 'pods' } },
  })

export const costlyRequests: readonly CostlyRequest[] = [
  row('90,000 keys: create', index => create(maps, configMap(`too-wide${index}`, 'a', 90_000))),
  row('9,900 keys: create', index => create(maps, configMap(`wide${index}`, 'a'))),
  row('9,900 keys: update', index => json('PUT', `${maps}/wide0`, configMap('wide0', `b${index}`))),
  row('9,900 keys: merge patch', index => json('PATCH', `${maps}/wide0`, { data: fields(wide, `c${index}`) }, merge)),
  row('9,900 keys: strategic merge patch', index => json('PATCH', `${maps}/wide0`, { data: fields(wide, `d${index}`) }, strategic)),
  row('9,900 keys: JSON patch', index =>
    json(
      'PATCH',
      `${maps}/wide0`,
      Object.keys(fields(wide, 0)).map(key => ({ op: 'replace', path: `/data/${key}`, value: `e${index}` })),
      jsonPatch,
    ),
  ),
  row('9,900 keys: apply', index => apply(`${maps}/applied${index}`, 'a', configMap(`applied${index}`, 'a'))),
  row('9,900 keys: apply with conflicts', index => apply(`${maps}/applied${index}`, 'b', configMap(`applied${index}`, 'b'), false)),
  row('9,900 keys: apply that takes over', index => apply(`${maps}/applied${index}`, 'b', configMap(`applied${index}`, 'b'))),
  row('9,900 keys: apply that removes', index => apply(`${maps}/applied${index}`, 'b', configMap(`applied${index}`, 'b', 10))),
  row('98,000 fields of an atomic map: create', index => create(wides, custom(`atomic${index}`, atomic()))),
  row('29,000 fields: create', index => create(wides, custom(`narrow${index}`, narrow(1)))),
  row('29,000 fields: apply', index => apply(`${wides}/narrow-applied${index}`, 'a', custom(`narrow-applied${index}`, narrow(1)))),
  row('29,000 fields: apply that takes over', index =>
    apply(`${wides}/narrow-applied${index}`, 'b', custom(`narrow-applied${index}`, narrow(2))),
  ),
  row('set of 4,900: apply', index => apply(`${wides}/set${index}`, 'a', custom(`set${index}`, set(0, ownedItems / 2)))),
  row('set of 4,900: apply of another manager', index =>
    apply(`${wides}/set${index}`, 'b', custom(`set${index}`, set(ownedItems / 2, ownedItems / 2))),
  ),
  row('4,900 keyed items: apply', index => apply(`${wides}/items${index}`, 'a', custom(`items${index}`, items(ownedItems, 1)))),
  row('4,900 keyed items: apply that takes over', index =>
    apply(`${wides}/items${index}`, 'b', custom(`items${index}`, items(ownedItems, 2))),
  ),
  row('4,900 keyed items: apply that removes', index => apply(`${wides}/items${index}`, 'b', custom(`items${index}`, items(10, 2)))),
  row('7,400 objects with defaults: create', index => create(wides, custom(`defaults${index}`, { defaults: fields(7_400, {}) }))),
  row('a string of 1,400,000 letters outside of ASCII', index =>
    create(wides, custom(`letters${index}`, { any: { x: 'é'.repeat(1_400_000) } })),
  ),
  row('a string of 700,000 escapes', index => create(wides, custom(`escapes${index}`, { any: { x: '"'.repeat(700_000) } }))),
  row('3 MB of brackets', () => create(wides, '['.repeat(3_000_000))),
  row('3 MB of duplicate keys', () => create(`${wides}?fieldValidation=Strict`, `{${Array(400_000).fill('"a":1').join()}}`)),
  row('4 KB of YAML in brackets', () => json('POST', wides, `a: ${'['.repeat(2_040)}${']'.repeat(2_040)}`, 'application/yaml')),
  row('150 KB of YAML', index =>
    json(
      'POST',
      maps,
      `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: yaml${index}}\ndata:\n${Object.keys(fields(wide, 0, 'yaml-key-'))
        .map(key => `  ${key}: v\n`)
        .join('')}`,
      'application/yaml',
    ),
  ),
  row('4,900 groups: SubjectAccessReview', () => review(ownedItems)),
  row('90,000 groups: SubjectAccessReview', () => review(90_000)),
  row('list of all of it', () => json('GET', maps, '')),
]

/** Creates the kind that the requests write. */
export async function prepare(admin: RawConnection): Promise<void> {
  const string = { type: 'string' }
  const spec = {
    type: 'object',
    properties: {
      atomic: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true, 'x-kubernetes-map-type': 'atomic' },
      any: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
      set: { type: 'array', 'x-kubernetes-list-type': 'set', items: string },
      items: {
        type: 'array',
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['key', 'other'],
        items: { type: 'object', required: ['key', 'other'], properties: { key: string, other: string, value: { type: 'integer' } } },
      },
      defaults: {
        type: 'object',
        additionalProperties: {
          type: 'object',
          properties: {
            a: { type: 'object', default: {}, properties: { b: { type: 'integer', default: 1 }, c: { type: 'integer', default: 2 } } },
          },
        },
      },
    },
  }
  const names = { plural: 'wides', singular: 'wide', kind: 'Wide', listKind: 'WideList' }
  const version = { name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object', properties: { spec } } } }
  const crd = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'wides.stall.oarlock.dev' },
    spec: { group: 'stall.oarlock.dev', scope: 'Namespaced', names, versions: [version] },
  }
  await admin.request('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', JSON.stringify(crd))
  while ((await admin.request('GET', wides)).status !== 200);
}
