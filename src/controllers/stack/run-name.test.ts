import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { labelValueErrors, nameErrors } from '../../kubernetes/object/index.ts'
import { runName, stackLabel } from './run-name.ts'

const stack = (name: string) => ({ metadata: { name, uid: '3F2A1c0d-1111-2222-3333-444444444444' } })

for (const [name, number, want] of [
  ['app', 1, 'app-3f2a1-1'],
  ['app', 12, 'app-3f2a1-12'],
  [`${'x'.repeat(39)}-y`, 1, `${'x'.repeat(39)}-3f2a1-1`],
  [`${'x'.repeat(38)}.-.y`, 7, `${'x'.repeat(38)}-3f2a1-7`],
  ['a.b', 1, 'a.b-3f2a1-1'],
] as const) {
  test(`Run ${number} of ${name} is ${want}`, () => assert.equal(runName(stack(name), number), want))
}

test('every valid Stack name gives valid Run names and labels', () => {
  const part = fc.stringMatching(/^[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?$/)
  fc.assert(
    fc.property(fc.array(part, { minLength: 1, maxLength: 8 }), fc.integer({ min: 1, max: 1e9 }), (parts, number) => {
      const name = parts
        .join('.')
        .slice(0, 253)
        .replace(/[-.]+$/, '')
      assert.deepEqual(nameErrors(runName(stack(name), number), 'dns1123Subdomain'), [])
      assert.deepEqual(labelValueErrors(stackLabel(name)), [])
    }),
    { numRuns: 300 },
  )
})
