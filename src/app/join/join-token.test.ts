import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { test } from 'node:test'
import { formatJoinToken, hashSecret, looksLikeJoinToken, parseJoinToken, verifySecret } from './join-token.ts'

const token = { id: 'abcdefghi0', secret: 'A'.repeat(43), pin: 'b'.repeat(43) }

test('a join token is one text that says which it is, what it opens and whom to trust', () => {
  const text = formatJoinToken(token)
  equal(text, `oarlock1.abcdefghi0.${'A'.repeat(43)}.${'b'.repeat(43)}`)
  deepEqual(parseJoinToken(`${text}\n`), token)
})

test('what was cut short is no other kind of credential', () => {
  const text = formatJoinToken(token).slice(0, -1)
  equal(parseJoinToken(text), undefined)
  ok(looksLikeJoinToken(text))
  ok(!looksLikeJoinToken('eyJhbGciOiJIUzI1NiJ9.e30.x'))
})

test('of the secret only a hash is kept, and compared whole', () => {
  const hash = hashSecret(token.secret)
  match(hash, /^[0-9a-f]{64}$/)
  ok(verifySecret(token.secret, hash))
  ok(!verifySecret(`${token.secret.slice(0, -1)}B`, hash))
  ok(!verifySecret(token.secret, ''))
})
