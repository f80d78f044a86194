import { deepEqual, equal, match } from 'node:assert/strict'
import { test } from 'node:test'
import { WholeBody } from '../partition/short-request.ts'
import { awaitDefinition } from './await-definition.ts'

const answerOf = (generation: number, established = 'True', headers = {}) => {
  const status = { conditions: [{ type: 'Established', status: established }] }
  const definition = { kind: 'CustomResourceDefinition', metadata: { name: 'boats.harbor.example', generation }, status }
  return { status: 200, headers, body: new WholeBody(JSON.stringify(definition)) }
}
const never = new AbortController().signal

test('the answer comes when all partitions have the definition, and is that of the change', async () => {
  const answer = answerOf(2)
  let reads = 0
  const missing = ['not Established in partition t1 yet', 'not Established in partition t1 yet', undefined]
  const read = async (name: string) => {
    equal(name, 'boats.harbor.example')
    reads++
    return answerOf(2)
  }
  equal(await awaitDefinition(answer, { missingIn: () => missing.shift(), read, signal: never }), answer)
  equal(reads, 2)
})

test('an error, a definition that is not Established, and another form are answered immediately', async () => {
  const fail = () => {
    throw new Error('must not be called')
  }
  const error = { ...answerOf(2), status: 409 }
  const table = { ...answerOf(2), body: new WholeBody('{"kind":"Table"}') }
  for (const answer of [error, answerOf(1, 'False'), table, { ...table, body: new WholeBody('kind: x') }])
    equal(await awaitDefinition(answer, { missingIn: fail, read: fail, signal: never }), answer)
})

test('a partition that does not have it in time is named in a warning, besides others', async () => {
  const signal = AbortSignal.abort()
  const missingIn = () => 'not Established in partition t1 yet'
  const { headers, body } = await awaitDefinition(answerOf(2, 'True', { warning: '299 - "a"' }), {
    missingIn,
    read: async () => answerOf(2),
    signal,
  })
  deepEqual([headers.warning].flat().length, 2)
  match(String(headers.warning), /not Established in partition t1 yet/)
  match(String(body instanceof WholeBody && body.text), /boats/)
})

test('home that does not answer any more ends the wait', async () => {
  const read = () => Promise.reject(new Error('gone'))
  const { headers } = await awaitDefinition(answerOf(2), { missingIn: () => 'not Established in partition t1 yet', read, signal: never })
  match(String(headers.warning), /t1/)
})
