import { equal, match } from 'node:assert/strict'
import { test } from 'node:test'
import { type Begun, journalSizeError } from './decide-journal-size.ts'

const limits = { journalEntries: 160, journalBytes: 16_000, maxBytes: 8_000 }

for (const { name, entries = 1, bytes = 0, begun, resultBytes, want } of [
  { name: 'results fit up to the limits', entries: 160, bytes: 16_000, begun: 'none' },
  { name: 'results beyond the entries', entries: 161, begun: 'none', want: /161 entries, at most 160 are allowed$/ },
  { name: 'results beyond the bytes', bytes: 16_001, begun: 'none', want: /16001 bytes, at most 16000 are allowed$/ },
  {
    name: 'an operation leaves entries for results',
    entries: 151,
    begun: 'other',
    want: /at most 150 are allowed before an operation begins/,
  },
  { name: 'an operation leaves bytes for results', bytes: 15_001, begun: 'other', want: /at most 15000 are allowed before an operation/ },
  { name: 'a change or a deletion of a large state begins', bytes: 15_000, begun: 'other', resultBytes: 15_000 },
  { name: 'a creation is not measured while both are small', bytes: 7_000, begun: 'addition' },
  { name: 'a creation begins if the result is small', bytes: 15_000, begun: 'addition', resultBytes: 7_000 },
  { name: 'a creation in a large state', bytes: 7_001, begun: 'addition', resultBytes: 7_001, want: /above 7000 no resource can be added/ },
] satisfies { name: string; entries?: number; bytes?: number; begun: Begun; resultBytes?: number; want?: RegExp }[])
  test(`the size of a journal: ${name}`, () => {
    const measure = () => {
      if (resultBytes === undefined) throw new Error('the result is not needed')
      return resultBytes
    }
    const error = journalSizeError({ entries, bytes }, begun, limits, measure)
    if (want) match(error ?? '', want)
    else equal(error, undefined)
  })
