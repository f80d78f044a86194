import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import type { SecretBody } from '../../kubernetes/client/index.ts'
import type { KubeObject } from '../../kubernetes/object/index.ts'
import { type JoinTokenRecord, joinTokenFromSecret, joinTokenSecret } from './join-secrets.ts'

const record: JoinTokenRecord = {
  id: 'abcdef',
  hash: 'hash',
  pool: 'edge',
  expiresAtMs: Date.parse('2026-01-01T00:00:00Z'),
  uses: 3,
  worker: 'pod-1',
  labels: { zone: 'a' },
  allowLabels: ['gpu', 'disk=ssd', '*'],
}

/** The record as stored, with other texts in `data`; undefined removes a key. */
function secretOf(changes: Record<string, string | undefined> = {}): KubeObject<SecretBody> {
  const { stringData, ...secret } = joinTokenSecret(record)
  const texts = Object.entries({ ...stringData, ...changes }).filter(([, text]) => text !== undefined)
  const data = Object.fromEntries(texts.map(([key, text]) => [key, Buffer.from(text!).toString('base64')]))
  return { apiVersion: 'v1', kind: 'Secret', ...secret, data } as unknown as KubeObject<SecretBody>
}

test('joinTokenFromSecret() returns the record that was stored', () => deepEqual(joinTokenFromSecret(secretOf()), record))

test('a token without uses, worker and label policy has unlimited uses and no labels', () => {
  const secret = secretOf({ uses: undefined, worker: undefined, labelPolicy: undefined })
  deepEqual(joinTokenFromSecret(secret), { ...record, uses: undefined, worker: undefined, labels: {}, allowLabels: [] })
})

for (const [key, ...texts] of [
  [
    'labelPolicy',
    '',
    '{bad',
    'null',
    '[]',
    '{"labels":null}',
    '{"labels":{"a":1}}',
    '{"labels":{"a b":"c"}}',
    '{"allowLabels":"gpu"}',
    '{"allowLabels":"*"}',
    '{"allowLabels":null}',
    '{"allowLabels":[1]}',
  ],
  ['uses', '', 'x', '-1', '1.5', 'Infinity', ' 1', '1e3', '99999999999999999999'],
  ['expiresAt', '', 'tomorrow'],
  ['pool', '', 'not a name'],
  ['hash', ''],
  ['worker', '', 'Not Good', 'a'.repeat(250)],
] as [string, ...string[]][]) {
  for (const text of texts) {
    test(`a Secret whose ${key} is ${JSON.stringify(text).slice(0, 30)} is not a join token`, () =>
      equal(joinTokenFromSecret(secretOf({ [key]: text })), undefined))
  }
}

test('other keys in the label policy do not replace fields of the record', () => {
  const labelPolicy = '{"labels":{},"allowLabels":[],"pool":"other","uses":null}'
  deepEqual(joinTokenFromSecret(secretOf({ labelPolicy })), { ...record, labels: {}, allowLabels: [] })
})

test('a Secret whose name and id differ is not a join token', () => {
  const secret = secretOf()
  equal(joinTokenFromSecret({ ...secret, metadata: { ...secret.metadata, name: 'join-token-other' } }), undefined)
})
