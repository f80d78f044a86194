import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { decideStop } from './decide-stop.ts'
import type { StopCause } from './stop-cause.ts'

const canceled: StopCause = { kind: 'Canceled' }
const timeout: StopCause = { kind: 'Timeout', timeout: '1m' }
const leaseLost: StopCause = { kind: 'LeaseLost' }
const deleted: StopCause = { kind: 'OwnershipLost', detail: 'it was deleted' }
const reassigned: StopCause = { kind: 'OwnershipLost', detail: 'it was assigned to another worker' }

for (const [name, current, next, cause, interrupt, forbidWrites] of [
  ['the first cause interrupts the engine and is reported', undefined, canceled, canceled, true, false],
  ['a later cause neither interrupts again nor replaces the first', timeout, canceled, timeout, false, false],
  ['a lost Lease interrupts; the fence decides when writes end', undefined, leaseLost, leaseLost, true, false],
  ['lost ownership as the first cause interrupts and forbids writes', undefined, deleted, deleted, true, true],
  ['lost ownership replaces an earlier cause and does not interrupt again', canceled, deleted, deleted, false, true],
  ['the last cause of lost ownership is kept', deleted, reassigned, reassigned, false, true],
  ['a cause after lost ownership changes nothing', deleted, canceled, deleted, false, false],
] as [string, StopCause | undefined, StopCause, StopCause, boolean, boolean][]) {
  test(name, () => deepEqual(decideStop(current, next), { cause, interrupt, forbidWrites }))
}
