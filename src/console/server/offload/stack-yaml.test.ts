import { deepEqual, doesNotMatch, equal, match, ok } from 'node:assert/strict'
import { test } from 'node:test'
import type { Stack } from '../../../api/index.ts'
import { StatusError } from '../../../kubernetes/object/index.ts'
import { parseStackYaml, problemsOf, stackYaml } from './stack-yaml.ts'

const stack = {
  metadata: {
    name: 'a',
    namespace: 'b',
    uid: 'u',
    resourceVersion: '7',
    generation: 2,
    creationTimestamp: '2026-01-01T00:00:00Z',
    labels: { x: 'y' },
  },
  spec: { engine: 'command', source: { inline: { files: { 'main.tf': 'one\ntwo\n' } } }, variablesFrom: [{ secretRef: { name: 's' } }] },
} as unknown as Stack
const text = stackYaml(stack)

test('what only the server sets is not part of the text, and files are blocks of lines', () => {
  match(text, /^apiVersion: oarlock\.dev\/v1alpha1\nkind: Stack\nmetadata:\n {2}name: a\n {2}namespace: b\n {2}labels:\n {4}x: "y"\nspec:/)
  match(text, /main\.tf: \|\n {10}one\n {10}two/)
  deepEqual(parseStackYaml(text, { namespace: 'b', name: 'a' }).object?.spec, stack.spec)
})

test('a text that is not YAML, and one of another object, are rejected with the line', () => {
  const [broken] = parseStackYaml('a: [1\nb: 2\n', { namespace: 'b', name: 'a' }).problems
  equal(typeof broken?.line, 'number')
  deepEqual(parseStackYaml(text.replace('name: a', 'name: c'), { namespace: 'b', name: 'a' }).problems, [
    { field: 'metadata.name', message: 'must be a, as it is of this Stack', line: 4 },
  ])
  equal(parseStackYaml('- 1', { namespace: 'b', name: 'a' }).problems.length, 1)
})

test('a text is read as the API server reads it', () => {
  const variables = { country: 'no', mode: '0777', on: 'yes' }
  const shown = stackYaml({ ...stack, spec: { ...stack.spec, variables } })
  deepEqual(parseStackYaml(shown, { namespace: 'b', name: 'a' }).object?.spec.variables, variables)
  const written = text.replace('spec:', 'spec:\n  suspend: yes')
  equal(parseStackYaml(written, { namespace: 'b', name: 'a' }).object?.spec.suspend, true)
})

test('text that reverses is quoted, in the YAML and so in its differences, and stays the same', () => {
  const variables = { image: 'a\u202egnp.exe', motd: 'one\r\ntwo\u2028' }
  const shown = stackYaml({ ...stack, spec: { ...stack.spec, variables } })
  match(shown, /image: "a\\u202egnp\.exe"/)
  doesNotMatch(shown, /[\u202e\r\u2028]/)
  deepEqual(parseStackYaml(shown, { namespace: 'b', name: 'a' }).object?.spec.variables, variables)
})

test('a hostile text neither blocks the server nor fails it', () => {
  const startMs = performance.now()
  const keys = (count: number) => Array.from({ length: count }, (_, index) => `  k${index}: 1\n`).join('')
  const anchors = Array.from({ length: 20_000 }, (_, index) => `&a${index} 1,*a${index}`).join(',')
  for (const [hostile, message] of [
    // The library compares every pair of keys: this many take 20 seconds.
    [`${text}\n${keys(60_000).replaceAll('  k', 'k')}`, undefined],
    [`${text}\nx: [${anchors}]`, undefined],
    [`${text}\nx: *missing`, 'an alias must follow its anchor'],
    [
      `${text}\nx: &a [1,1,1,1,1,1,1,1]\n${'bcdefgh'.replace(/./g, (name, at: number) => `${name}: &${name} [${`*${'abcdefg'[at]},`.repeat(8)}]\n`)}`,
      'aliases expand to too many values',
    ],
    [`${text}\n? [[[[[[[[a]]]]]]]]\n: 1`, 'a key must be a string, not a map, a list or an alias'],
    [`${text}\nx: ${'['.repeat(100_000)}`, undefined],
  ] as const) {
    const { problems, lineOf } = parseStackYaml(hostile, { namespace: 'b', name: 'a' })
    if (message !== undefined) equal(problems[0]?.message, message)
    lineOf('spec.engine')
  }
  // 3 s; comparing every pair of keys takes minutes, and a timeout does not end a test that does not await.
  ok(performance.now() - startMs < 15_000)
})

test('what the server rejects is at the line of its field, or of the nearest one around it', () => {
  const { lineOf } = parseStackYaml(text, { namespace: 'b', name: 'a' })
  const cause = (field: string) => ({ reason: 'FieldValueInvalid' as const, field, message: 'wrong' })
  const error = new StatusError('Invalid', 'no', {
    details: { causes: [cause('spec.engine'), cause('spec.variablesFrom[0].secretRef.key')] },
  })
  const lines = text.split('\n')
  deepEqual(problemsOf(error, lineOf), [
    { field: 'spec.engine', message: 'wrong', line: lines.findIndex(line => line.includes('engine:')) + 1 },
    { field: 'spec.variablesFrom[0].secretRef.key', message: 'wrong', line: lines.findIndex(line => line.includes('secretRef:')) + 1 },
  ])
  deepEqual(problemsOf(new StatusError('BadRequest', 'strict decoding error: unknown field "spec.engin", unknown field "x"'), lineOf), [
    { field: 'spec.engin', message: 'unknown field', line: lines.indexOf('spec:') + 1 },
    { field: 'x', message: 'unknown field' },
  ])
  deepEqual(problemsOf(new StatusError('Forbidden', 'not allowed'), lineOf), [{ message: 'not allowed' }])
})
