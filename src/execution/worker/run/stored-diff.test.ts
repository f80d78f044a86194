import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import type { Run } from '../../../api/index.ts'
import { createMasker } from '../../../stores/log/index.ts'
import { storedDiff } from './stored-diff.ts'

const run = { metadata: { name: 'web-1' }, spec: { stack: { engine: 'command' } } } as Run
const plan = { intent: 'apply' as const, digest: 'sha256:1', add: 1, change: 0, destroy: 0, hasChanges: true, summary: [] }
const mask = (text: string) => text.replaceAll('secret', '***')

test('masks secrets in the text, and in values and keys of the document', () => {
  const stored = storedDiff(run, plan, { text: 'a secret', document: { secret: ['secret', { deep: 'my secret' }], n: 1 } }, mask)
  deepEqual(stored, {
    ...{ runName: 'web-1', digest: 'sha256:1', engine: 'command', add: 1, change: 0, destroy: 0 },
    text: 'a ***',
    document: { '***': ['***', { deep: 'my ***' }], n: 1 },
  })
})

test('masks numbers and booleans of the document as in the text', () => {
  const { mask } = createMasker(['48151623', '12345678901234567890', '00420.50', 'true'])
  const document = { pin: 48151623, long: Number('12345678901234567890'), price: 420.5, on: true, off: false, n: 1, nothing: null }
  const stored = storedDiff(run, plan, { text: 'pin = 48151623', document }, mask)
  equal(stored.text, 'pin = ***')
  deepEqual(stored.document, { pin: '***', long: '***', price: '***', on: '***', off: false, n: 1, nothing: null })
})

test('states what is missing in a text over the limit, and keeps no part of a document over it', () => {
  const text = ['first', 'second', 'third', 'fourth'].join('\n')
  const stored = storedDiff(run, plan, { text, document: { long: 'x'.repeat(20) } }, mask, 14)
  equal(stored.text, 'first\nsecond')
  deepEqual(stored.missing, { lines: 2, bytes: text.length - 'first\nsecond'.length })
  equal(stored.document, undefined)
  const oneLine = storedDiff(run, plan, { text: 'x'.repeat(20), document: {} }, mask, 14)
  deepEqual([oneLine.text, oneLine.missing], ['', { lines: 1, bytes: 20 }])
})
