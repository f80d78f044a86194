import { deepEqual, equal, notEqual } from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { type StackSpec, stackResource } from '../../api/index.ts'
import { isSameSpec, specDigest, specEffects, withInfrastructureOf } from './spec-effects.ts'

type Schema = { properties?: Record<string, Schema> }

/** Lists and maps have no properties: they are one field. */
function fieldsOf(schema: Schema, path = ''): string[] {
  const properties = Object.entries(schema.properties ?? {})
  return properties.length === 0 ? [path] : properties.flatMap(([key, each]) => fieldsOf(each, path === '' ? key : `${path}.${key}`))
}

test('every field of the spec is classified', () => {
  const crd = stackResource.toCrd() as unknown as {
    spec: { versions: { schema: { openAPIV3Schema: { properties: { spec: Schema } } } }[] }
  }
  const specSchema = crd.spec.versions[0]!.schema.openAPIV3Schema.properties.spec
  deepEqual(Object.keys(specEffects).sort(), fieldsOf(specSchema).sort())
})

test('docs/concepts.md lists the fields of each class', () => {
  const text = readFileSync(new URL('../../../docs/concepts.md', import.meta.url), 'utf8')
  const rows = [...text.matchAll(/^\| `(infrastructure|execution|none)` \| (.*?) \|/gm)]
  const listed = rows.flatMap(([, effect, fields = '']) => [...fields.matchAll(/`([^`]+)`/g)].map(([, field]) => [field, effect]))
  // A field of an object stands for all fields in it.
  const groups = Object.fromEntries(listed) as Record<string, string>
  const groupOf = (field: string) => Object.keys(groups).find(group => field === group || field.startsWith(`${group}.`)) ?? 'missing'
  const documented = Object.keys(specEffects).map(field => [field, groups[groupOf(field)]])
  deepEqual(Object.fromEntries(documented), specEffects)
  deepEqual([...new Set(Object.keys(specEffects).map(groupOf))].sort(), Object.keys(groups).sort())
})

const spec: StackSpec = {
  engine: 'terraform',
  source: { inline: { files: { 'main.tf': '' } } },
  variables: { a: 1 },
  timeout: '1h',
  suspend: true,
}

for (const { name, change, sameResult, sameExecution } of [
  { name: 'a variable', change: { variables: { a: 2 } }, sameResult: false, sameExecution: false },
  { name: 'an inline file', change: { source: { inline: { files: { 'main.tf': 'x' } } } }, sameResult: false, sameExecution: false },
  { name: 'another kind of source', change: { source: { path: { path: '/a' } } }, sameResult: false, sameExecution: false },
  { name: 'the timeout', change: { timeout: '2h' }, sameResult: true, sameExecution: false },
  { name: 'a new limit', change: { resources: { memory: '1Gi' } }, sameResult: true, sameExecution: false },
  {
    name: 'suspend, interval and history',
    change: { suspend: false, interval: '1h', historyLimit: 3 },
    sameResult: true,
    sameExecution: true,
  },
]) {
  test(`a change of ${name}: ${sameResult ? 'the same' : 'another'} result, ${sameExecution ? 'the same' : 'another'} execution`, () => {
    const changed = { ...spec, ...change } as StackSpec
    equal(isSameSpec(spec, changed, 'infrastructure'), sameResult)
    equal(isSameSpec(spec, changed, 'execution'), sameExecution)
    for (const [scope, isSame] of [
      ['infrastructure', sameResult],
      ['execution', sameExecution],
    ] as const) {
      if (isSame) equal(specDigest(changed, scope), specDigest(spec, scope))
      else notEqual(specDigest(changed, scope), specDigest(spec, scope))
    }
  })
}

test('the spec of a Destroy has what was applied, and what is set now for how it is executed', () => {
  const git = (directory: string, secret: string) => ({ url: 'https://git.test/a', directory, secretRef: { name: secret } })
  const applied: StackSpec = {
    engine: 'manifests',
    source: { git: git('v1', 'old'), interval: '5m' },
    variables: { a: 1 },
    manifests: { namespace: 'shop', waitTimeout: '1m' },
    timeout: '1h',
  }
  const present: StackSpec = {
    engine: 'command',
    source: { git: git('v2', 'new'), interval: '1m' },
    env: [{ name: 'A', value: 'b' }],
    command: { apply: ['true'] },
    manifests: { prune: false, waitTimeout: '9m' },
    timeout: '2h',
    pool: 'other',
  }
  deepEqual(withInfrastructureOf(present, applied), {
    engine: 'manifests',
    source: { git: git('v1', 'new'), interval: '1m' },
    variables: { a: 1 },
    manifests: { namespace: 'shop', waitTimeout: '9m' },
    timeout: '2h',
    pool: 'other',
  })
  const inline: StackSpec = { ...present, source: { inline: { files: { 'main.tf': '' } } } }
  deepEqual(withInfrastructureOf(inline, applied).source, { git: git('v1', 'old') })
  equal(specDigest(withInfrastructureOf(inline, applied), 'infrastructure'), specDigest(applied, 'infrastructure'))
})

test('the spec of a Destroy whose Stack has not changed is that of the Stack', () => {
  deepEqual(withInfrastructureOf(spec, spec), spec)
})
