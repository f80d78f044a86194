import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { isEncrypted, secretSignature, secretsIn, signatureKey } from './secret-values.ts'

test('secrets are found at any depth, in their order', () => {
  const secret = (more: object) => ({ [signatureKey]: secretSignature, ...more })
  const [first, second] = [secret({ ciphertext: 'v1:x' }), secret({ plaintext: '"x"' })]
  const found = secretsIn({ a: [{ b: first }], c: { d: [second] } })
  deepEqual(found, [first, second])
  deepEqual(found.map(isEncrypted), [true, false])
  equal(secretsIn({ a: { [signatureKey]: 'other', ciphertext: 'x' } }).length, 0)
})
