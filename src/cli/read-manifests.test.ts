import { deepEqual, equal, rejects } from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { CliError } from './cli-error.ts'
import { inApplyOrder, parseManifests, readManifests } from './read-manifests.ts'

const configMap = (name: string) => `apiVersion: v1\nkind: ConfigMap\nmetadata: { name: ${name} }\n`

test('parses several documents, skips empty ones and expands lists', async () => {
  const list = `apiVersion: v1\nkind: List\nitems:\n- { apiVersion: v1, kind: Namespace, metadata: { name: b } }\n`
  const found = await parseManifests(`# only a comment\n---\n${configMap('a')}---\n---\n${list}`, 'x.yaml')
  deepEqual(
    inApplyOrder(found).map(({ object, from }) => `${object.kind}/${object.metadata.name} ${from}`),
    ['Namespace/b x.yaml:7', 'ConfigMap/a x.yaml:2'],
  )
})

for (const [name, text, want] of [
  ['invalid YAML with its location', 'a: [1\nb: 2', /^x\.yaml:2:1 is not valid YAML: /],
  ['a list', '- 1', /^x\.yaml:1: must be a Kubernetes object, got an array$/],
  ['a missing kind', 'apiVersion: v1', /^x\.yaml:1: kind must be a non-empty string, got nothing$/],
  ['a missing name', 'apiVersion: v1\nkind: Secret', /^x\.yaml:1: metadata\.name must be/],
] as const) {
  test(`rejects ${name}`, () =>
    rejects(parseManifests(text, 'x.yaml'), (error: unknown) => error instanceof CliError && want.test(error.message)))
}

test('substitutes known values and keeps references of Terraform', async () => {
  const text = `${configMap('a')}data: { url: "file://\${SAMPLE_DIRECTORY}/x", tf: "\${var.endpoint} \${OTHER}" }\n`
  const [found] = await parseManifests(text, 'x.yaml', { SAMPLE_DIRECTORY: '/tmp/s' })
  deepEqual(found?.object.data, { url: 'file:///tmp/s/x', tf: `\${var.endpoint} \${OTHER}` })
})

test('the sample fleet has at least 12 Stacks in 3 namespaces, and lists the namespaces first', async () => {
  const all = await readManifests([join(import.meta.dirname, '..', '..', 'examples', 'stacks')])
  const stacks = all.filter(({ object }) => object.kind === 'Stack')
  equal(stacks.length >= 12, true, `${stacks.length} Stacks`)
  equal(new Set(stacks.map(({ object }) => object.metadata.namespace)).size, 3)
  deepEqual(
    all.slice(0, 3).map(({ object }) => object.kind),
    ['Namespace', 'Namespace', 'Namespace'],
  )
})

test('rejects a missing file as an invalid command line', () =>
  rejects(
    readManifests(['/nowhere.yaml']),
    (error: unknown) => error instanceof CliError && error.exitCode === 2 && /cannot read .*nowhere\.yaml \(ENOENT\)/.test(error.message),
  ))
