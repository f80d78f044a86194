import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { knownStateOf } from './known-state.ts'

const missing = 'the Stack has resources, but no state is stored: version 3 or a later one is required'
const regressed = 'the newest stored state has version 2, but a Run of the Stack has stored version 3'

for (const [what, versions, error, hasJournal] of [
  ['none', [], { reason: 'StateMissing', message: missing }, false],
  ['an older one', [{ version: 1 }, { version: 2 }], { reason: 'StateRegressed', message: regressed }, false],
  ['the expected one', [{ version: 3 }, { version: 1 }], undefined, false],
  ['one with a journal', [{ version: 4, journalEntries: 0 }], undefined, true],
] as const)
  test(`where version 3 is expected, ${what} is ${error ? error.reason : 'no error'}`, () =>
    deepEqual(knownStateOf(3, versions), { error, hasJournal }))
