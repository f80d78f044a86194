import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { test } from 'node:test'
import { formatJoinToken, hashSecret, parseJoinToken, verifySecret } from './join-token.ts'
import { looksLikeJoinToken } from './looks-like-join-token.ts'

const token = { id: 'abcdefghi0', secret: 'A'.repeat(43), pin: 'b'.repeat(43) }

test('formats and parses a join token', () => {
  const text = formatJoinToken(token)
  equal(text, `oarlock1.abcdefghi0.${'A'.repeat(43)}.${'b'.repeat(43)}`)
  deepEqual(parseJoinToken(`${text}\n`), token)
})

test('recognizes a truncated join token, and rejects it', () => {
  const text = formatJoinToken(token).slice(0, -1)
  equal(parseJoinToken(text), undefined)
  ok(looksLikeJoinToken(text))
  ok(!looksLikeJoinToken('eyJhbGciOiJIUzI1NiJ9.e30.x'))
})

test('verifies a secret against its hash', () => {
  const hash = hashSecret(token.secret)
  match(hash, /^[0-9a-f]{64}$/)
  ok(verifySecret(token.secret, hash))
  ok(!verifySecret(`${token.secret.slice(0, -1)}B`, hash))
  ok(!verifySecret(token.secret, ''))
})
