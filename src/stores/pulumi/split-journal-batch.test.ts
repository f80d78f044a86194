import { deepStrictEqual, equal, throws } from 'node:assert/strict'
import { test } from 'node:test'
import { JournalBatchError, splitJournalBatch } from './split-journal-batch.ts'

test('entries are split without changing a character', () => {
  const first = '{"sequenceID":1, "text":"a \\"quoted\\" ]} text", "big":12345678901234567890,"list":[[{}]]}'
  const second = '{ "sequenceID" : 2 }'
  const entries = splitJournalBatch(`{ "entries" : [ ${first} ,\n${second} ] }`)
  deepStrictEqual(
    entries.map(({ sequenceId, text }) => [sequenceId, text]),
    [
      [1, first],
      [2, second],
    ],
  )
  equal(entries[0]?.value.text, 'a "quoted" ]} text')
})

test('a backslash at the end of a string does not hide its end', () => {
  const entry = JSON.stringify({ sequenceID: 1, a: 'x\\', b: '\\\\"]}', c: '{' })
  deepStrictEqual(splitJournalBatch(`{"entries":[${entry}]}`)[0]?.text, entry)
})

test('entries that are parsed already are not parsed again', () => {
  const body = '{"entries":[{"sequenceID":1},{"sequenceID":2,"x":[]}]}'
  const { entries: parsed } = JSON.parse(body) as { entries: Record<string, unknown>[] }
  const entries = splitJournalBatch(body, parsed)
  deepStrictEqual(entries, splitJournalBatch(body))
  equal(entries[1]?.value, parsed[1])
})

test('a batch may be empty', () => deepStrictEqual(splitJournalBatch('{"entries":[]}'), []))

const deep = (levels: number) => `{"entries":[{"sequenceID":1,"x":${'['.repeat(levels)}${']'.repeat(levels)}}]}`
for (const { name, body } of [
  { name: 'text', body: 'entries' },
  { name: 'a list', body: '[]' },
  { name: 'no entries', body: '{}' },
  { name: 'another field', body: '{"entries":[],"more":[{}]}' },
  { name: 'two lists of entries', body: '{"entries":[{"sequenceID":1}],"entries":[{"sequenceID":2},{"sequenceID":3}]}' },
  { name: 'an entry that is text', body: '{"entries":["x"]}' },
  { name: 'an entry that is a list', body: '{"entries":[[]]}' },
  { name: 'no sequence id', body: '{"entries":[{"kind":1}]}' },
  { name: 'a sequence id of 0', body: '{"entries":[{"sequenceID":0}]}' },
  { name: 'a fractional sequence id', body: '{"entries":[{"sequenceID":1.5}]}' },
  { name: 'the same sequence id twice', body: '{"entries":[{"sequenceID":1},{"sequenceID":1}]}' },
  { name: 'a value nested 600 deep', body: deep(600) },
  { name: 'an entry that is not JSON', body: '{"entries":[{"sequenceID":1,}]}' },
  { name: 'an entry with brackets of other kinds', body: '{"entries":[{"sequenceID":1]}}' },
  { name: 'a missing comma', body: '{"entries":[{"sequenceID":1}{"sequenceID":2}]}' },
  { name: 'a comma at the end', body: '{"entries":[{"sequenceID":1},]}' },
  { name: 'an entry that does not end', body: '{"entries":[{"sequenceID":1' },
  { name: 'a string that does not end', body: '{"entries":[{"sequenceID":1,"x":"\\"}]}' },
  { name: 'text after it', body: '{"entries":[]}{}' },
  { name: 'no end', body: '{"entries":[]' },
])
  test(`a batch with ${name} is rejected`, () => throws(() => splitJournalBatch(body), JournalBatchError))

test('a value nested 400 deep is accepted', () => equal(splitJournalBatch(deep(400)).length, 1))
