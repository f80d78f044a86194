import { deepEqual, equal } from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { eventually } from '../../../test/support/eventually.ts'
import { openStateStore, type StateStore, type UserHolder } from '../../stores/state/index.ts'
import { checkStoredState, stateCheckOf } from './state-check.ts'

const folder = mkdtempSync(join(tmpdir(), 'oarlock-state-check-'))
after(() => rmSync(folder, { recursive: true, force: true }))
const key = Buffer.alloc(32, 7)
const holder: UserHolder = { kind: 'User', id: 'lock-1', who: 'ada@laptop', info: { ID: 'lock-1' } }
const never = async () => false

/** The store, and how often its file was read for a check. */
function counted(store: StateStore): { reads: number } & Pick<StateStore, 'mayHaveFacts' | 'facts'> {
  const counting = {
    reads: 0,
    mayHaveFacts: (uid: string) => store.mayHaveFacts(uid),
    facts: (uid: string) => {
      counting.reads++
      return store.facts(uid)
    },
  }
  return counting
}

test('the file is read for a Stack without a state only while a user may have locked it', async () => {
  const store = await openStateStore({ directory: join(folder, 'a'), key })
  const counting = counted(store)
  deepEqual(await checkStoredState(counting, 'u', 0), {})
  await store.lock({ stackUid: 'u', holder: { kind: 'Run', runName: 'r', epoch: 1 } }, never)
  deepEqual(await checkStoredState(counting, 'u', 0), {})
  equal(counting.reads, 0)
  await store.unlock({ stackUid: 'u', holder: { kind: 'Run', runName: 'r', epoch: 1 } })
  await store.lock({ stackUid: 'u', holder }, never)
  const { lock } = await checkStoredState(counting, 'u', 0)
  equal(lock?.holder, 'ada@laptop (lock id lock-1)')
  deepEqual(await checkStoredState(counting, 'other', 0), {})
  equal(counting.reads, 1)
  await store.unlock({ stackUid: 'u', holder: { kind: 'User', id: 'lock-1' } as UserHolder })
  deepEqual(await checkStoredState(counting, 'u', 0), {})
  deepEqual(await checkStoredState(counting, 'u', 0), {})
  equal(counting.reads, 2)
  await store.close()
})

test('a lock of a user that is older than the process is read', async () => {
  const directory = join(folder, 'b')
  const before = await openStateStore({ directory, key })
  await before.lock({ stackUid: 'u', holder }, never)
  await before.close()
  const store = await openStateStore({ directory, key, idleTimeoutMs: 10 })
  equal((await checkStoredState(store, 'u', 0)).lock?.holder, 'ada@laptop (lock id lock-1)')
  // Nothing is known of the file while it is closed.
  await eventually(() => store.mayHaveFacts('other'), 'the store to close its file')
  equal((await checkStoredState(store, 'u', 0)).lock?.holder, 'ada@laptop (lock id lock-1)')
  await store.close()
})

test('a journal that is not understood is read for a Stack that requires no state, also after a restart', async () => {
  const directory = join(folder, 'd')
  const store = await openStateStore({ directory, key })
  const run = { runName: 'r', epoch: 1 }
  const bytes = Buffer.from('{"entries":[{"version":1,"kind":42,"sequenceID":1}]}')
  await store.lock({ stackUid: 'u', holder: { kind: 'Run', ...run } }, never)
  equal((await store.appendJournal({ stackUid: 'u', ...run, update: 1, cliVersion: '3.300.0', bytes })).kind, 'accepted')
  equal((await checkStoredState(store, 'u', 0)).error?.reason, 'JournalUnreadable')
  await store.close()
  const next = await openStateStore({ directory, key })
  equal((await checkStoredState(next, 'u', 0)).error?.reason, 'JournalUnreadable')
  equal(next.mayHaveFacts('other'), false)
  await next.close()
})

test('the file is read for a Stack that requires a state', async () => {
  const store = await openStateStore({ directory: join(folder, 'c'), key })
  equal((await checkStoredState(store, 'u', 1)).error?.reason, 'StateMissing')
  await store.writeVersion({ stackUid: 'u', runName: 'r', epoch: 1, bytes: Buffer.from('{}') })
  deepEqual(await checkStoredState(store, 'u', 1), {})
  await store.close()
})

const pulumi = { resources: 1, pendingOperations: 0 }
const lock = { holder: 'ada', sinceMs: 1 }

for (const { name, expected, facts, want } of [
  { name: 'a state that is new enough is no error', expected: 3, facts: { newest: 3, pulumi }, want: {} },
  { name: 'the lock of a user is reported', expected: 0, facts: { newest: 0, userLock: lock }, want: { lock } },
  {
    name: 'a journal that is not understood is an error',
    ...{ expected: 0, facts: { newest: 3, pulumi: { ...pulumi, unreadable: 'unknown entry kind 42' } } },
    want: { error: { reason: 'JournalUnreadable', message: 'unknown entry kind 42' } },
  },
  {
    name: 'that a state is older matters more',
    ...{ expected: 4, facts: { newest: 3, pulumi: { ...pulumi, unreadable: 'unknown entry kind 42' } } },
    want: {
      error: { reason: 'StateRegressed', message: 'the newest stored state has version 3, but a Run of the Stack has stored version 4' },
    },
  },
])
  test(name, () => deepEqual(stateCheckOf(expected, facts), want))
