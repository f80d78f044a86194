import assert from 'node:assert/strict'
import { test } from 'node:test'
import { engineNames } from '../../api/index.ts'
import { describeDiagnostics } from './diagnostics.ts'
import { detectEngines, loadEngine } from './index.ts'
import { maskSecrets, secretValues } from './secret-values.ts'

test('loads every engine by name, and rejects an unknown name with the list of names', async () => {
  for (const name of engineNames) assert.equal((await loadEngine(name)).name, name)
  await assert.rejects(
    loadEngine('chef'),
    /^RangeError: unknown engine "chef": it must be one of terraform, opentofu, pulumi, ansible, manifests, command$/,
  )
})

test('detection reports for each engine why it was not found', async () => {
  const found = await detectEngines({ PATH: '/nowhere', OARLOCK_TOFU: '/also/nowhere/tofu' })
  assert.deepEqual(Object.keys(found), [...engineNames])
  assert.deepEqual(found.command, { found: true, version: 'built in', path: '' })
  assert.deepEqual(found.terraform?.found === false && found.terraform.reasons, [
    'terraform is not on the PATH',
    'OARLOCK_TERRAFORM is not set',
  ])
  assert.deepEqual(found.opentofu?.found === false && found.opentofu.reasons, ['OARLOCK_TOFU=/also/nowhere/tofu is not an executable file'])
})

test('invariant 9: strings nested in sensitive values are masked, longest first, also in JSON', () => {
  const secrets = secretValues({ a: { list: ['line "one"\nline two', 'abc'] }, b: 'line "one" and more', c: 'public' }, ['a', 'b'])
  assert.deepEqual(secrets, ['line "one"\nline two', 'line "one" and more', 'line "one"', 'line two'])
  assert.equal(maskSecrets('x line "one" and more, line \\"one\\", public abc', secrets), 'x ***, ***, public abc')
})

test('a message has the first error in full, its location, and the number of further errors', () => {
  const error = (summary: string) => ({ severity: 'error' as const, summary, detail: 'first\n\n  second', file: 'a.tf', line: 3 })
  assert.equal(describeDiagnostics([error('A'), error('B'), error('C')], ''), 'A: first second (a.tf line 3); 2 more errors, see the log')
  assert.equal(describeDiagnostics([{ severity: 'warning', summary: 'w' }], 'exit code 1'), 'exit code 1')
  assert.equal(describeDiagnostics([], 'x'.repeat(5_000)).length, 2_000)
})
