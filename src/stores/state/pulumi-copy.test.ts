import { deepEqual, equal } from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import { batch, created, namesIn, stateOf } from './pulumi-journal.testing.ts'
import { copyStateFile, inspectStateFile, restoreStateFile } from './state-copy.ts'
import { StateDatabase } from './state-database.ts'

const key = Buffer.alloc(32, 7)
const stackUid = 'uid'
const claim = (epoch: number) => ({ stackUid, runName: `run-${epoch}`, epoch, update: 1, cliVersion: '' })

function directoryOf(t: TestContext): string {
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-pulumi-copy-'))
  t.after(() => rmSync(directory, { recursive: true }))
  return directory
}

test('a restored copy has the open journal, whose Run cannot add to it, and the next one continues from it', async t => {
  const directory = directoryOf(t)
  const [original, restored] = [join(directory, 'original'), join(directory, 'restored')]
  const before = new StateDatabase({ directory: original, key })
  before.writeVersion({ stackUid, author: { kind: 'Run', runName: 'run-1', epoch: 1 }, kind: 'pulumi', bytes: stateOf('a') }, 0)
  before.appendJournal({ ...claim(1), bytes: batch(created(1, 'b')) }, 0)
  before.close()
  mkdirSync(restored)
  await copyStateFile(original, join(restored, 'state.db'))
  deepEqual([...inspectStateFile(join(restored, 'state.db')).newestVersions], [[stackUid, 2]])
  const next = (restoreStateFile(restored, key).get(stackUid) ?? 0) + 1
  const after = new StateDatabase({ directory: restored, key })
  t.after(() => after.close())
  const names = () => namesIn(after.readVersion({ stackUid, kind: 'pulumi' })?.bytes)
  deepEqual(names(), ['b', 'a'])
  equal(after.appendJournal({ ...claim(1), bytes: batch(created(2, 'late')) }, 0).kind, 'rejected')
  equal(after.appendJournal({ ...claim(next), bytes: batch(created(1, 'c')) }, 0).kind, 'accepted')
  deepEqual(names(), ['c', 'b', 'a'])
})

test('the store of a version without journals is inspected and opened, and has journals then', t => {
  const directory = directoryOf(t)
  const earlier = new StateDatabase({ directory, key })
  earlier.writeVersion({ stackUid, author: { kind: 'Run', runName: 'run-1', epoch: 1 }, kind: 'terraform', bytes: Buffer.from('{}') }, 0)
  earlier.close()
  const path = join(directory, 'state.db')
  const file = new DatabaseSync(path)
  for (const table of ['journal', 'journal_digest', 'journal_batch']) file.exec(`DROP TABLE ${table}`)
  file.close()
  deepEqual([...inspectStateFile(path).newestVersions], [[stackUid, 1]])
  const database = new StateDatabase({ directory, key })
  t.after(() => database.close())
  deepEqual(database.appendJournal({ ...claim(1), bytes: batch(created(1, 'a')) }, 0), { kind: 'accepted', version: 2 })
})

test('the store of a version that kept each checkpoint is opened with its open journal, and continues', t => {
  const directory = directoryOf(t)
  const earlier = new StateDatabase({ directory, key })
  const checkpoint = (database: StateDatabase, epoch: number, ...names: string[]) =>
    database.writeVersion(
      { stackUid, author: { kind: 'Run', runName: `run-${epoch}`, epoch }, kind: 'pulumi', bytes: stateOf(...names), update: 1 },
      0,
    )
  checkpoint(earlier, 1, 'a')
  earlier.appendJournal({ ...claim(2), bytes: batch(created(1, 'b')) }, 0)
  earlier.close()
  const path = join(directory, 'state.db')
  const file = new DatabaseSync(path)
  file.exec('DROP TABLE checkpoint')
  file.close()
  deepEqual([...inspectStateFile(path).newestVersions], [[stackUid, 2]])
  const database = new StateDatabase({ directory, key })
  t.after(() => database.close())
  const names = () => namesIn(database.readVersion({ stackUid, kind: 'pulumi' })?.bytes)
  deepEqual(names(), ['b', 'a'])
  deepEqual(database.appendJournal({ ...claim(2), bytes: batch(created(2, 'c')) }, 0), { kind: 'accepted', version: 2 })
  deepEqual(checkpoint(database, 3, 'd'), { kind: 'accepted', version: 3 })
  deepEqual(checkpoint(database, 3, 'd', 'e'), { kind: 'accepted', version: 4 })
  deepEqual(
    database.versions(stackUid).map(({ version }) => version),
    [4, 2, 1],
  )
})
