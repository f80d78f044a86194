import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { batchKeyOf, shortRoute, WholeBody } from './short-request.ts'

const pod = '/api/v1/namespaces/a/pods/web'
const json = { accept: 'application/json' }
const text = Buffer.from('{"name":"ü"}')
for (const [name, method, path, headers, body, want] of [
  ['a read of one object', 'GET', `${pod}?pretty=true`, json, undefined, true],
  ['a list', 'GET', '/api/v1/namespaces/a/pods', json, undefined, false],
  ['a log', 'GET', `${pod}/log?follow=true`, json, undefined, false],
  ['a creation', 'POST', '/api/v1/namespaces/a/pods', json, text, true],
  ['a patch of a status', 'PATCH', `${pod}/status`, {}, text, true],
  ['a stream', 'POST', `${pod}/exec?command=sh`, json, undefined, false],
  ['a body that is no text', 'POST', '/api/v1/namespaces/a/pods', json, Buffer.from([0x6b, 0x38, 0x73, 0, 0xff]), false],
  ['a long body', 'PUT', pod, json, Buffer.alloc(300_000, 'x'), false],
  ['an answer that may be no text', 'GET', pod, { accept: 'application/vnd.kubernetes.protobuf, application/json' }, undefined, false],
  ['a deletion of a collection, which is a list', 'DELETE', '/api/v1/namespaces/a/pods', json, undefined, false],
  ['discovery', 'GET', '/apis', json, undefined, false],
] as const)
  test(`${name} is ${want ? '' : 'not '}short`, () => equal(shortRoute(method, path, headers, body) !== undefined, want))

test('reads of one user share a connection; writes, Leases and other users do not', () => {
  const flowOf = (method: string, path: string, name = 'ada') => {
    const route = shortRoute(method, path, json, method === 'GET' ? undefined : text)
    return route && batchKeyOf(method, route, { name, groups: [] })
  }
  const lease = '/apis/coordination.k8s.io/v1/namespaces/a/leases/x'
  equal(flowOf('GET', pod), 'ada')
  equal(flowOf('GET', pod, 'bob'), 'bob')
  equal(flowOf('PATCH', pod), undefined)
  equal(flowOf('GET', lease), undefined)
})

test('a whole body is read as one chunk of UTF-8', async () => {
  const chunks: string[] = []
  for await (const chunk of new WholeBody('{"a":"ü"}')) chunks.push(chunk.toString())
  deepEqual(chunks, ['{"a":"ü"}'])
  for await (const _ of new WholeBody('')) throw new Error('an empty body has no chunk')
})
