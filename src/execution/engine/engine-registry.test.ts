import assert from 'node:assert/strict'
import { test } from 'node:test'
import { describeDiagnostics } from './engine-error.ts'
import { detectEngines, loadEngine } from './index.ts'
import { maskSecrets, secretValues } from './secret-values.ts'

test('every engine is found by its name, and an unknown one is refused with the names there are', async () => {
  for (const name of ['terraform', 'opentofu', 'manifests', 'command']) assert.equal((await loadEngine(name)).name, name)
  await assert.rejects(
    loadEngine('pulumi'),
    /^RangeError: engine "pulumi" is not known: it must be one of terraform, opentofu, manifests, command$/,
  )
})

test('detection says for each engine what was looked for and how to get it', async () => {
  const found = await detectEngines({ PATH: '/nowhere', OARLOCK_TOFU: '/also/nowhere/tofu' })
  assert.deepEqual(Object.keys(found), ['terraform', 'opentofu', 'manifests', 'command'])
  assert.deepEqual(found.command, { found: true, version: 'built in', path: '' })
  assert.deepEqual(found.terraform?.found === false && found.terraform.lookedFor, [
    'OARLOCK_TERRAFORM (not set)',
    'terraform on PATH (/nowhere)',
  ])
  assert.deepEqual(found.opentofu?.found === false && found.opentofu.lookedFor, ['OARLOCK_TOFU=/also/nowhere/tofu'])
})

test('invariant 9: secrets are found inside values and hidden, the longest first, also as JSON', () => {
  const secrets = secretValues({ a: { list: ['line "one"\nline two', 'abc'] }, b: 'line "one" and more', c: 'public' }, ['a', 'b'])
  assert.deepEqual(secrets, ['line "one"\nline two', 'line "one" and more', 'line "one"', 'line two'])
  assert.equal(maskSecrets('x line "one" and more, line \\"one\\", public abc', secrets), 'x ***, ***, public abc')
})

test('a message has the first error in full, its place, and how many more there are', () => {
  const error = (summary: string) => ({ severity: 'error' as const, summary, detail: 'first\n\n  second', file: 'a.tf', line: 3 })
  assert.equal(describeDiagnostics([error('A'), error('B'), error('C')], ''), 'A: first second (a.tf line 3); 2 more errors, see the log')
  assert.equal(describeDiagnostics([{ severity: 'warning', summary: 'w' }], 'exit code 1'), 'exit code 1')
  assert.equal(describeDiagnostics([], 'x'.repeat(5_000)).length, 2_000)
})
