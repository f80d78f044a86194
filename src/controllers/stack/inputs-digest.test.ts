import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { describe, test } from 'node:test'
import type { Stack, StackSpec } from '../../api/index.ts'
import { type InputSources, type KeyDigests, keyDigests, referencedInputs, resolveInputs, withoutValues } from './inputs-digest.ts'

const source = { inline: { files: { 'main.tf': '' } } }
const spec = (more: Partial<StackSpec>): StackSpec => ({ engine: 'terraform', source, ...more })
const keys = (data: Record<string, string>): KeyDigests => ({ keys: keyDigests(data) })
const upstream = (outputsDigest: string | undefined) => ({ status: { outputsDigest } }) as Stack

function resolve(of: StackSpec, sources: Partial<InputSources> = {}) {
  const { digest, errors } = resolveInputs(
    of,
    { secret: () => undefined, configMap: () => undefined, stack: () => undefined, ...sources },
    'ns',
  )
  return { digest, errors: errors.map(({ field, message }) => `${field}: ${message}`) }
}

describe('the digest changes exactly when an input of the Stack changes', () => {
  const both = spec({
    variablesFrom: [{ stackRef: { name: 'up' } }, { configMapRef: { name: 'c' } }],
    env: [{ name: 'A', secretKeyRef: { name: 's', key: 'a' } }],
  })
  const sources = { secret: () => keys({ a: '1', b: '2' }), configMap: () => keys({ x: '1' }), stack: () => upstream('o1') }
  const base = resolve(both, sources).digest
  for (const [what, change, isSame] of [
    ['nothing', {}, true],
    ['outputs', { stack: () => upstream('o2') }, false],
    ['a ConfigMap', { configMap: () => keys({ x: '2' }) }, false],
    ['the key of a Secret that is used', { secret: () => keys({ a: '9', b: '2' }) }, false],
    ['another key of that Secret', { secret: () => keys({ a: '1', b: '9' }) }, true],
    ['the order of keys', { secret: () => keys({ b: '2', a: '1' }) }, true],
  ] as [string, Partial<InputSources>, boolean][]) {
    test(what, () => assert.equal(resolve(both, { ...sources, ...change }).digest === base, isSame))
  }
  test('only the keys that are used', () => {
    const some = spec({
      variablesFrom: [{ secretRef: { name: 's', keys: { a: 'aws:a' } } }, { configMapRef: { name: 'c', keys: { x: 'y' } } }],
    })
    const digestWith = (secret: Record<string, string>, configMap: Record<string, string>) =>
      resolve(some, { secret: () => keys(secret), configMap: () => keys(configMap) }).digest
    const before = digestWith({ a: '1', b: '1' }, { x: '1', z: '1' })
    assert.equal(digestWith({ a: '1', b: '2' }, { x: '1', z: '2' }), before)
    assert.notEqual(digestWith({ a: '2', b: '1' }, { x: '1', z: '1' }), before)
    assert.notEqual(digestWith({ a: '1', b: '1' }, { x: '2', z: '1' }), before)
  })
  test('as before keys could be chosen', () => {
    const parts = [
      ['secret', 's', JSON.stringify(keyDigests({ a: '1' }))],
      ['configMap', 'c', keyDigests({ x: '1' })],
    ]
    const every = spec({ variablesFrom: [{ secretRef: { name: 's' } }, { configMapRef: { name: 'c' } }] })
    const { digest } = resolve(every, { secret: () => keys({ a: '1' }), configMap: () => keys({ x: '1' }) })
    assert.equal(digest, `sha256:${createHash('sha256').update(JSON.stringify(parts)).digest('hex')}`)
  })
  test('ignores the credentials of the source', () => {
    const git = spec({ source: { git: { url: 'https://example.com/a.git', secretRef: { name: 's' } } } })
    assert.equal(
      resolve(git, { secret: () => keys({ password: '1' }) }).digest,
      resolve(git, { secret: () => keys({ password: '2' }) }).digest,
    )
  })
})

test('reports missing objects and keys with their field', () => {
  const all = spec({
    variablesFrom: [{ secretRef: { name: 'missing' } }, { configMapRef: { name: 'missing' } }, { stackRef: { name: 'missing' } }],
    env: [{ name: 'A', secretKeyRef: { name: 's', key: 'z' } }],
    source: { git: { url: 'https://example.com/a.git', secretRef: { name: 'missing' } } },
  })
  assert.deepEqual(resolve(all, { secret: name => (name === 's' ? keys({ a: '1', b: '2' }) : undefined) }).errors, [
    'spec.variablesFrom[0].secretRef.name: Secret "missing" does not exist in namespace "ns"; create it or correct the name',
    'spec.variablesFrom[1].configMapRef.name: ConfigMap "missing" does not exist in namespace "ns"; create it or correct the name',
    'spec.env[0].secretKeyRef.key: Secret "s" has no key "z"; it has a, b',
    'spec.source.git.secretRef.name: Secret "missing" does not exist in namespace "ns"; create it or correct the name',
  ])
  assert.deepEqual(referencedInputs(all), ['secret/missing', 'configMap/missing', 'secret/s'])
})

test('reports missing keys of variables', () => {
  const some = spec({
    variablesFrom: [{ secretRef: { name: 's', keys: { a: 'a', y: 'z' } } }, { configMapRef: { name: 'c', keys: { x: 'x' } } }],
  })
  assert.deepEqual(resolve(some, { secret: () => keys({ a: '1', b: '2' }), configMap: () => keys({}) }).errors, [
    'spec.variablesFrom[0].secretRef.keys[y]: Secret "s" has no key "y"; it has a, b',
    'spec.variablesFrom[1].configMapRef.keys[x]: ConfigMap "c" has no key "x"; it has no keys',
  ])
})

test('withoutValues drops the values of a Secret (invariant 9)', () => {
  const metadata = {
    name: 's',
    namespace: 'ns',
    uid: 'u',
    resourceVersion: '1',
    creationTimestamp: '',
    annotations: { last: 'aHVudGVyMg==' },
  }
  const kept = withoutValues({ apiVersion: 'v1', kind: 'Secret', metadata, data: { password: 'aHVudGVyMg==' } } as never)
  assert.ok(!JSON.stringify(kept).includes('aHVudGVyMg=='))
  assert.deepEqual(Object.keys(kept.keys), ['password'])
})
