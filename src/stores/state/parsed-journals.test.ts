import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import type { RawJournalEntry } from '../pulumi/index.ts'
import type { Journal } from './journal-table.ts'
import { ParsedJournals } from './parsed-journals.ts'
import { created } from './pulumi-journal.testing.ts'

const raw = (sequenceId: number): RawJournalEntry => {
  const value = created(sequenceId, `r${sequenceId}`)
  return { sequenceId, text: JSON.stringify(value), value }
}
const journalOf = (entries: number, bytes: number, more: Partial<Journal> = {}): Journal => ({
  ...{ epoch: 1, runName: 'run-1', update: 1, isOpen: true, version: 1, baseVersion: 0, cliVersion: '', changedMs: 0 },
  ...{ entries, bytes, ...more },
})
const idsOf = (parsed: ParsedJournals, stackUid: string, journal: Journal) =>
  parsed.get(stackUid, journal)?.map(({ sequenceId }) => sequenceId)

test('the entries of a journal are in memory, and of no other journal or number of entries', () => {
  const parsed = new ParsedJournals(1_000)
  parsed.append('a', journalOf(0, 0), journalOf(2, 20), [raw(1), raw(2)])
  parsed.append('a', journalOf(2, 20), journalOf(3, 30), [raw(3)])
  deepEqual(idsOf(parsed, 'a', journalOf(3, 30)), [1, 2, 3])
  for (const other of [
    journalOf(2, 20),
    journalOf(3, 30, { update: 2 }),
    journalOf(3, 30, { runName: 'run-2' }),
    journalOf(3, 30, { epoch: 2 }),
  ])
    equal(parsed.get('a', other), undefined)
  equal(parsed.get('b', journalOf(3, 30)), undefined)
  // The transaction of the entry before has failed.
  parsed.append('a', journalOf(2, 20), journalOf(3, 30), [raw(4)])
  equal(parsed.get('a', journalOf(3, 30)), undefined)
  parsed.set('a', journalOf(1, 10), [])
  parsed.clear()
  equal(parsed.get('a', journalOf(0, 10)), undefined)
})

test('the journals used least recently are dropped beyond the limit, and one that is larger is not kept', () => {
  const parsed = new ParsedJournals(100)
  for (const stackUid of ['a', 'b', 'c']) parsed.append(stackUid, journalOf(0, 0), journalOf(1, 30), [raw(1)])
  deepEqual(idsOf(parsed, 'a', journalOf(1, 30)), [1])
  parsed.append('d', journalOf(0, 0), journalOf(1, 60), [raw(1)])
  deepEqual(
    ['a', 'b', 'c', 'd'].map(stackUid => idsOf(parsed, stackUid, journalOf(1, stackUid === 'd' ? 60 : 30)) !== undefined),
    [true, false, false, true],
  )
  parsed.append('a', journalOf(1, 30), journalOf(2, 101), [raw(2)])
  deepEqual([parsed.get('a', journalOf(2, 101)), parsed.get('a', journalOf(1, 30))], [undefined, undefined])
  deepEqual(idsOf(parsed, 'd', journalOf(1, 60)), [1])
})
