import { equal } from 'node:assert/strict'
import { test } from 'node:test'
import { isReview, reviewedNamespace } from './read-review.ts'

const field = (number: number, value: string | Buffer) => {
  const bytes = Buffer.from(value)
  return Buffer.concat([Buffer.from([number * 8 + 2, bytes.length]), bytes])
}
const access = 'selfsubjectaccessreviews.authorization.k8s.io'
const rules = 'selfsubjectrulesreviews.authorization.k8s.io'
const tokens = 'tokenreviews.authentication.k8s.io'
const account = (namespace: string) =>
  ['e30', Buffer.from(JSON.stringify({ sub: `system:serviceaccount:${namespace}:robot` })).toString('base64url'), 'x'].join('.')
const inJson = (table: string, spec: object) => reviewedNamespace(table, Buffer.from(JSON.stringify({ spec })), 'application/json')
const inProtobuf = (table: string, spec: Buffer) =>
  reviewedNamespace(
    table,
    Buffer.concat([Buffer.from('k8s\0'), field(1, field(2, 'Review')), field(2, Buffer.concat([field(1, ''), field(2, spec)]))]),
    'application/vnd.kubernetes.protobuf',
  )

test('the namespace of an access, of rules and of a token is found in JSON, YAML and protobuf', () => {
  equal(inJson(access, { resourceAttributes: { namespace: 'a', verb: 'get' } }), 'a')
  equal(inJson(rules, { namespace: 'a' }), 'a')
  equal(inJson(tokens, { token: account('a') }), 'a')
  equal(reviewedNamespace(rules, Buffer.from('spec:\n  namespace: a\n'), 'application/yaml'), 'a')
  equal(inProtobuf(access, field(1, Buffer.concat([field(1, 'a'), field(2, 'get')]))), 'a')
  equal(inProtobuf(rules, field(1, 'a')), 'a')
  equal(inProtobuf(tokens, field(1, account('a'))), 'a')
})

test('a review of no namespace, and what is no review, has none', () => {
  equal(inJson(access, { resourceAttributes: { verb: 'get', resource: 'nodes' } }), undefined)
  equal(inJson(access, { nonResourceAttributes: { path: '/metrics', verb: 'get' } }), undefined)
  equal(inJson(tokens, { token: 'no-account' }), undefined)
  equal(inProtobuf(access, field(2, field(1, '/metrics'))), undefined)
  equal(reviewedNamespace(access, Buffer.from('{'), 'application/json'), undefined)
  equal(reviewedNamespace(access, Buffer.from('k8s\0\x0a\x7f'), ''), undefined)
  equal(isReview('localsubjectaccessreviews.authorization.k8s.io'), false, 'its path has the namespace')
  equal(isReview(access), true)
})
