import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RowCipher, type RowId } from './row-cipher.ts'

const key = Buffer.alloc(32, 7)
const row: RowId = ['secrets', 'default/a']
const plain = Buffer.from('hunter2')

test('a row is decrypted with the key, purpose and row it was encrypted with, and with no others', () => {
  const cipher = new RowCipher(key, 'rows')
  const encrypted = cipher.encrypt(plain, row)
  assert.equal(cipher.decrypt(encrypted, row).toString(), 'hunter2')
  for (const [name, other, at] of [
    ['another key', new RowCipher(Buffer.alloc(32, 8), 'rows'), row],
    ['another purpose', new RowCipher(key, 'tokens'), row],
    ['another first element', cipher, ['configmaps', 'default/a']],
    ['another second element', cipher, ['secrets', 'default/b']],
  ] as const) {
    assert.throws(() => other.decrypt(encrypted, at), name)
  }
})

test('every changed byte and every truncation is detected', () => {
  const cipher = new RowCipher(key, 'rows')
  const encrypted = cipher.encrypt(plain, row)
  for (let i = 0; i < encrypted.length; i++) {
    const changed = Buffer.from(encrypted)
    changed[i]! ^= 1
    assert.throws(() => cipher.decrypt(changed, row), `byte ${i}`)
    assert.throws(() => cipher.decrypt(encrypted.subarray(0, i), row), `the first ${i} bytes`)
  }
})

test('equal contents have different ciphertexts', () => {
  const cipher = new RowCipher(key, 'rows')
  assert.notDeepEqual(cipher.encrypt(plain, row), cipher.encrypt(plain, row))
})
