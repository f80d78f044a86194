import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseManifests } from './read-manifests.ts'

const read = (text: string) => parseManifests([{ path: 'app.yaml', text }])

test('documents, lists and JSON are read; empty documents and status are left out', () => {
  const manifests = parseManifests([
    { path: 'b.json', text: '{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"status":{"x":1}}' },
    {
      path: 'a.yaml',
      text: '---\n# nothing\n---\napiVersion: v1\nkind: List\nitems:\n- { apiVersion: v1, kind: ConfigMap, metadata: { name: one, namespace: n } }\n',
    },
  ])
  assert.deepEqual(
    manifests.map(({ location }) => location),
    ['a.yaml document 2 item 1, ConfigMap n/one', 'b.json, Secret s'],
  )
  assert.equal(manifests[1]?.object.status, undefined)
})

for (const { name, text, want } of [
  { name: 'broken YAML', text: 'a: [1\n', want: /^app.yaml is no YAML: .*line 2/ },
  { name: 'a text', text: 'hello\n', want: /^app.yaml must be an object with apiVersion, kind and metadata, got string$/ },
  { name: 'no apiVersion', text: 'kind: ConfigMap\n', want: /^app.yaml has no apiVersion/ },
  { name: 'no kind', text: 'apiVersion: v1\n', want: /^app.yaml has no kind/ },
  { name: 'no metadata', text: 'apiVersion: v1\nkind: Secret\n', want: /^app.yaml is a Secret without metadata$/ },
  { name: 'no name', text: 'apiVersion: v1\nkind: Secret\nmetadata: {}\n', want: /^app.yaml is a Secret without metadata.name$/ },
  { name: 'generateName', text: 'apiVersion: v1\nkind: Job\nmetadata: { generateName: j- }\n', want: /needs metadata.name$/ },
  {
    name: 'the same object twice',
    text: 'apiVersion: v1\nkind: Secret\nmetadata: { name: a }\n---\napiVersion: v1\nkind: Secret\nmetadata: { name: a }\n',
    want: /^app.yaml document 2, Secret a stands a second time: the first is in app.yaml document 1, Secret a$/,
  },
  { name: 'a Kustomization', text: 'apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n', want: /is for kustomize/ },
  { name: 'an alias bomb', text: `a: &a x\nb: [${'*a,'.repeat(200)}]\n`, want: /^app.yaml cannot be read: Excessive alias count/ },
]) {
  test(`${name} is refused with its place`, () => {
    assert.throws(() => read(text), { reason: 'InvalidConfiguration', retryable: false, message: want })
  })
}
