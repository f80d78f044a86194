import { deepEqual, rejects } from 'node:assert/strict'
import { test } from 'node:test'
import { StreamBody } from './stream-body.ts'

function recorded() {
  const calls: string[] = []
  const body = new StreamBody({
    drained: () => void calls.push('drained'),
    consumed: length => void calls.push(`consumed ${length}`),
    cancel: () => void calls.push('cancel'),
  })
  return { body, calls }
}

test('delivers buffered chunks, then the end, and reports the progress of the reader', async () => {
  const { body, calls } = recorded()
  body.push('ab')
  body.push(Buffer.from('c'))
  body.end()
  const chunks: string[] = []
  for await (const chunk of body) chunks.push(String(chunk))
  deepEqual(chunks, ['ab', 'c'])
  deepEqual(calls, ['drained', 'consumed 2', 'consumed 1'])
})

test('delivers the chunks before an error, then throws it', async () => {
  const { body } = recorded()
  body.push('a')
  body.fail(new Error('reset'))
  const chunks: string[] = []
  await rejects(async () => {
    for await (const chunk of body) chunks.push(String(chunk))
  }, /reset/)
  deepEqual(chunks, ['a'])
})

test('cancels the source once when the reader leaves early, and ignores later chunks', async () => {
  const { body, calls } = recorded()
  body.push('a')
  for await (const _ of body) break
  body.push('b')
  body.end()
  deepEqual(calls, ['drained', 'cancel'])
})
