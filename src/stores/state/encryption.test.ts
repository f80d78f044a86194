import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Encryption } from './encryption.ts'

test('content that the first version encrypted is decrypted', () => {
  const stored = Buffer.from('ASMrELe5e1QvzToUGm5lek+FrWgiBmatvH9Ct495YX6/YcgOmZ2J7WaAQsNpCwPaLhmk', 'base64')
  const encryption = new Encryption(Buffer.alloc(32, 7))
  assert.equal(encryption.decrypt(stored, ['uid-1', 'version', 3], 13).toString(), '{"version":4}')
  assert.throws(() => encryption.decrypt(stored, ['uid-1', 'version', 4], 13), { code: 'Corrupt' })
})
