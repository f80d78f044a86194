import { equal } from 'node:assert/strict'
import { test } from 'node:test'
import { decideComplete, decideJournal, type JournalPosition } from './decide-journal.ts'

const open: JournalPosition = { epoch: 3, runName: 'run-3', update: 2, isOpen: true }
const claim = (update: number, epoch = 3, runName = `run-${epoch}`) => ({ epoch, runName, update })

for (const { name, current, of, want } of [
  { name: 'the first update of a Stack begins', current: undefined, of: claim(1), want: 'begin' },
  { name: 'the update whose journal is open continues', current: open, of: claim(2), want: 'append' },
  { name: 'a later update of the Run begins', current: open, of: claim(3), want: 'begin' },
  { name: 'an update of a later Run begins', current: open, of: claim(1, 4), want: 'begin' },
  { name: 'an earlier update of the Run is closed', current: open, of: claim(1), want: 'closed' },
  { name: 'a completed update is closed', current: { ...open, isOpen: false }, of: claim(2), want: 'closed' },
  { name: 'the update after a completed one begins', current: { ...open, isOpen: false }, of: claim(3), want: 'begin' },
  { name: 'an update of a Run that continues from a lowered fence begins', current: open, of: claim(1, 2), want: 'begin' },
])
  test(name, () => equal(decideJournal(current, of), want))

for (const { name, current, of, mayWrite = true, want } of [
  { name: 'the update whose journal is open is compacted', current: open, of: claim(2), want: 'compact' },
  { name: 'also if another one holds the lock', current: open, of: claim(2), mayWrite: false, want: 'compact' },
  { name: 'the completion of an earlier update that arrives again changes nothing', current: open, of: claim(1), want: 'ended' },
  { name: 'a completion that arrives again changes nothing', current: { ...open, isOpen: false }, of: claim(2), want: 'ended' },
  { name: 'an update without entries closes that of a Run before', current: open, of: claim(1, 4), want: 'close' },
  { name: 'an update without entries closes the one before of its Run', current: open, of: claim(3), want: 'close' },
  { name: 'the first update of a Stack has no entries', current: undefined, of: claim(1), want: 'close' },
  { name: 'a journal of the holder of the lock stays open', current: open, of: claim(1, 4), mayWrite: false, want: 'ended' },
])
  test(`complete: ${name}`, () => equal(decideComplete(current, of, mayWrite), want))
