import { equal } from 'node:assert/strict'
import { test } from 'node:test'
import { decideJournal, type JournalPosition } from './decide-journal.ts'

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
