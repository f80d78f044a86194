import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseManifests } from './parse-manifests.ts'

const parse = (text: string) => parseManifests([{ path: 'app.yaml', text }])

test('parses documents, lists and JSON; skips empty documents and drops status', () => {
  const manifests = parseManifests([
    { path: 'b.json', text: '{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"status":{"x":1}}' },
    {
      path: 'a.yaml',
      text: '---\n# nothing\n---\napiVersion: v1\nkind: List\nitems:\n- { apiVersion: v1, kind: ConfigMap, metadata: { name: one, namespace: shop } }\n',
    },
  ])
  assert.deepEqual(
    manifests.map(({ location }) => location),
    ['a.yaml document 2 item 1, ConfigMap shop/one', 'b.json, Secret s'],
  )
  assert.equal(manifests[1]?.object.status, undefined)
})

for (const { name, text, want } of [
  { name: 'invalid YAML', text: 'a: [1\n', want: /^app.yaml is not valid YAML: .*line 2/ },
  { name: 'a duplicate key', text: 'a: 1\na: 2\n', want: /^app.yaml is not valid YAML: duplicate key "a" in a mapping at line 2/ },
  { name: 'a string', text: 'hello\n', want: /^app.yaml must be an object with apiVersion, kind and metadata, got string$/ },
  { name: 'a missing apiVersion', text: 'kind: ConfigMap\n', want: /^app.yaml has no apiVersion/ },
  { name: 'a missing kind', text: 'apiVersion: v1\n', want: /^app.yaml has no kind/ },
  { name: 'missing metadata', text: 'apiVersion: v1\nkind: Secret\n', want: /^app.yaml is a Secret without metadata$/ },
  { name: 'a missing name', text: 'apiVersion: v1\nkind: Secret\nmetadata: {}\n', want: /^app.yaml is a Secret without metadata.name$/ },
  {
    name: 'generateName',
    text: 'apiVersion: v1\nkind: Job\nmetadata: { generateName: j- }\n',
    want: /metadata.generateName; set metadata.name/,
  },
  {
    name: 'a duplicate object',
    text: 'apiVersion: v1\nkind: Secret\nmetadata: { name: a }\n---\napiVersion: v1\nkind: Secret\nmetadata: { name: a }\n',
    want: /^app.yaml document 2, Secret a is a duplicate of app.yaml document 1, Secret a$/,
  },
  {
    name: 'a Kustomization',
    text: 'apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n',
    want: /is a Kustomization, which this engine does not support/,
  },
  {
    name: 'a key that is a map',
    text: '---\na: b\n---\n? {a: b}\n: c\n',
    want: /^app.yaml document 2 is not valid YAML: a key must be .* line 4, column 3$/,
  },
  {
    name: 'aliases that expand exponentially',
    text: `a: &a [${'x,'.repeat(99)}]\nb: &b [${'*a,'.repeat(99)}]\nc: [${'*b,'.repeat(99)}]\n`,
    want: /^app.yaml is not valid YAML: aliases expand to too many values/,
  },
]) {
  test(`rejects ${name} and names its location`, () => {
    assert.throws(() => parse(text), { reason: 'InvalidConfiguration', retryable: false, message: want })
  })
}

test('reads YAML as kubectl does', () => {
  const [manifest] = parse(
    'apiVersion: v1\nkind: ConfigMap\nmetadata: { name: a }\nx: &x { a: yes, b: 0644, c: 2001-01-01 }\nz: { <<: *x, a: 1 }\n',
  )
  assert.deepEqual(
    [manifest?.object.x, manifest?.object.z],
    [
      { a: true, b: 420, c: '2001-01-01' },
      { a: 1, b: 420, c: '2001-01-01' },
    ],
  )
})
