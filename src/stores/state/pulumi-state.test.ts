import { deepEqual, equal, match, throws } from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { batch, begin, created, type Entry, namesIn, removed, resource, stateOf, urnOf } from './pulumi-journal.testing.ts'
import { StateDatabase } from './state-database.ts'
import type { StateStoreError } from './state-store-error.ts'
import type { StateLimits } from './state-types.ts'

const stackUid = 'uid'
const run = (epoch: number) => ({ kind: 'Run' as const, runName: `run-${epoch}`, epoch })

function open(t: TestContext, limits?: Partial<StateLimits>) {
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-pulumi-state-'))
  const options = { directory, key: Buffer.alloc(32, 7), limits }
  let database = new StateDatabase(options)
  t.after(() => {
    database.close()
    rmSync(directory, { recursive: true })
  })
  const claim = (epoch: number, update: number) => ({ stackUid, runName: `run-${epoch}`, epoch, update, cliVersion: '3.260.0' })
  return {
    database: () => database,
    reopen: () => {
      database.close()
      database = new StateDatabase(options)
    },
    lock: (epoch: number, abandoned?: number) =>
      database.lock({ stackUid, holder: run(epoch), ...(abandoned && { abandonedHolder: run(abandoned) }) }, 1_000).kind,
    append: (epoch: number, update: number, ...entries: Entry[]) =>
      database.transaction(() => database.appendJournal({ ...claim(epoch, update), bytes: batch(...entries) }, 1_000)),
    complete: (epoch: number, update: number) => database.transaction(() => database.completeJournal(claim(epoch, update), 2_000)),
    checkpoint: (epoch: number, update: number, ...names: string[]) =>
      database.transaction(() =>
        database.writeVersion({ stackUid, author: run(epoch), kind: 'pulumi', bytes: stateOf(...names), update }, 1_000),
      ),
    write: (epoch: number, ...names: string[]) =>
      database.transaction(() => database.writeVersion({ stackUid, author: run(epoch), kind: 'pulumi', bytes: stateOf(...names) }, 1_000)),
    writeAsUser: (bytes: Buffer, kind: 'pulumi' | 'terraform' = 'pulumi') =>
      database.transaction(() => database.writeVersion({ stackUid, author: { kind: 'User', lockId: undefined }, kind, bytes }, 1_000)),
    names: (version?: number) => namesIn(database.readVersion({ stackUid, version, kind: 'pulumi' })?.bytes),
    versions: () => database.versions(stackUid).map(({ version, author, journalEntries }) => [version, author, journalEntries]),
    orphans: () => database.orphans(stackUid).map(({ version, kind, reason }) => [version, kind, reason]),
    orphan: (version: number) => Buffer.from(database.readVersion({ stackUid, version, kind: 'pulumi' })?.bytes ?? '').toString(),
  }
}

const withCode = (code: string) => (error: StateStoreError) => error.code === code

test('a state has what its journal has acknowledged, before and after the update completes, and after a restart', t => {
  const { append, complete, names, versions, database, reopen } = open(t)
  deepEqual(append(1, 1, begin(1, 'a'), created(2, 'a', { operationID: 1 })), { kind: 'accepted', version: 1 })
  deepEqual(append(1, 1, begin(3, 'b'), created(4, 'b', { operationID: 3 }), begin(5, 'c')), { kind: 'accepted', version: 1 })
  deepEqual(
    [names(), names(1)],
    [
      ['a', 'b'],
      ['a', 'b'],
    ],
  )
  deepEqual(versions(), [[1, 'run-1', 5]])
  deepEqual([database().newestVersion(stackUid), database().stats().journals], [1, 1])
  deepEqual(database().pulumiFacts(stackUid), { resources: 2, pendingOperations: 1, pending: [{ type: 'creating', urn: urnOf('c') }] })
  reopen()
  const before = names()
  deepEqual(complete(1, 1), { kind: 'accepted', version: 1 })
  deepEqual([names(), versions(), database().stats().journals], [before, [[1, 'run-1', undefined]], 0])
  deepEqual(complete(1, 1), { kind: 'accepted', version: 1 })
  deepEqual(database().pulumiFacts(stackUid), { resources: 2, pendingOperations: 1, pending: [{ type: 'creating', urn: urnOf('c') }] })
})

test('the state names the CLI that wrote it, with the magic that the CLI checks', t => {
  const { append, complete, database } = open(t)
  append(1, 1, created(1, 'a'))
  complete(1, 1)
  const { deployment } = JSON.parse(Buffer.from(database().readVersion({ stackUid, kind: 'pulumi' })?.bytes ?? '').toString())
  const magic = createHash('sha256').update('3.260.0').digest('hex')
  deepEqual(deployment.manifest, { time: '1970-01-01T00:00:01.000Z', magic, version: '3.260.0' })
})

test('entries of a transaction that failed are in no later read', t => {
  const { append, complete, names, database } = open(t)
  append(1, 1, created(1, 'a'))
  throws(() =>
    database().transaction(() => {
      database().appendJournal({ stackUid, ...run(1), update: 1, cliVersion: '', bytes: batch(created(2, 'lost')) }, 1_000)
      deepEqual(database().pulumiFacts(stackUid)?.resources, 2)
      throw new Error('the disk is full')
    }),
  )
  deepEqual([names(), database().pulumiFacts(stackUid)?.resources], [['a'], 1])
  append(1, 1, created(2, 'b'))
  complete(1, 1)
  deepEqual(names(), ['a', 'b'])
})

test('a later update applies its entries to what the one before has left', t => {
  const { append, complete, names, versions } = open(t)
  append(1, 1, created(1, 'a'), created(2, 'b'))
  complete(1, 1)
  deepEqual(append(1, 2, removed(1, 0), created(2, 'c')), { kind: 'accepted', version: 2 })
  deepEqual(
    [names(), names(1)],
    [
      ['c', 'b'],
      ['a', 'b'],
    ],
  )
  deepEqual(complete(1, 2), { kind: 'accepted', version: 2 })
  deepEqual(versions(), [
    [2, 'run-1', undefined],
    [1, 'run-1', undefined],
  ])
})

test('a completion that arrives again does not end the update after it, whose entries stay accepted', t => {
  const { append, complete, names, versions } = open(t)
  append(1, 1, created(1, 'a'))
  complete(1, 1)
  append(1, 2, created(1, 'b'))
  deepEqual(complete(1, 1), { kind: 'accepted', version: 1 })
  deepEqual(append(1, 2, created(2, 'c')), { kind: 'accepted', version: 2 })
  deepEqual(versions()[0], [2, 'run-1', 2])
  deepEqual(complete(1, 2), { kind: 'accepted', version: 2 })
  deepEqual(names(), ['b', 'c', 'a'])
})

test('a Run without the lock does not end the update of the Run that holds it', t => {
  const { append, complete, lock, versions } = open(t)
  lock(1)
  append(1, 1, created(1, 'a'))
  complete(2, 1)
  deepEqual(append(1, 1, created(2, 'b')), { kind: 'accepted', version: 1 })
  deepEqual(versions(), [[1, 'run-1', 2]])
})

test('the journal of an update that was cut off becomes a version of its Run when the next one begins', t => {
  const { append, names, versions, lock } = open(t)
  lock(1)
  append(1, 1, created(1, 'a'), begin(2, 'b'))
  lock(2, 1)
  deepEqual(names(), ['a'])
  deepEqual(append(2, 1, created(1, 'c')), { kind: 'accepted', version: 2 })
  deepEqual([names(), names(1)], [['c', 'a'], ['a']])
  deepEqual(versions(), [
    [2, 'run-2', 1],
    [1, 'run-1', undefined],
  ])
})

test('the same entries may be sent again, and other ones under their sequence ids are rejected with the whole batch', t => {
  const { append, names, versions } = open(t)
  append(1, 1, created(1, 'a'), created(2, 'b'))
  deepEqual(append(1, 1, created(2, 'b'), created(3, 'c')), { kind: 'accepted', version: 1 })
  throws(() => append(1, 1, created(4, 'd'), created(3, 'x')), withCode('JournalConflict'))
  deepEqual([names(), versions()], [['a', 'b', 'c'], [[1, 'run-1', 3]]])
})

test('entries of an older epoch, of a Run without the lock and of a complete update are orphans (invariant 3)', t => {
  const { append, complete, names, lock, orphans, orphan } = open(t)
  lock(2)
  deepEqual(append(1, 1, created(1, 'a')), { kind: 'rejected', reason: 'StaleEpoch', orphan: 1, currentEpoch: 2, holder: run(2) })
  deepEqual(append(1, 1, created(1, 'a')), { kind: 'rejected', reason: 'StaleEpoch', orphan: 1, currentEpoch: 2, holder: run(2) })
  equal(append(3, 1, created(1, 'b')).kind, 'rejected')
  append(2, 1, created(1, 'c'))
  complete(2, 1)
  equal(append(2, 1, created(2, 'd')).kind, 'rejected')
  deepEqual(orphans(), [
    [4, 'pulumi-journal', 'JournalClosed'],
    [2, 'pulumi-journal', 'NotLockHolder'],
    [1, 'pulumi-journal', 'StaleEpoch'],
  ])
  equal(orphan(1), batch(created(1, 'a')).toString())
  deepEqual(names(), ['c'])
  deepEqual(complete(1, 1), { kind: 'rejected', reason: 'StaleEpoch', currentEpoch: 2 })
})

test('a checkpoint replaces the state, after the journal of the update before', t => {
  const { append, write, names, versions } = open(t)
  append(1, 1, created(1, 'a'))
  deepEqual(write(1, 'b'), { kind: 'accepted', version: 2 })
  deepEqual([names(), names(1)], [['b'], ['a']])
  deepEqual(
    versions().map(([version]) => version),
    [2, 1],
  )
  throws(
    () =>
      open(t)
        .database()
        .writeVersion({ stackUid, author: run(1), kind: 'pulumi', bytes: Buffer.from('{}') }, 0),
    withCode('InvalidArgument'),
  )
  const deep = Buffer.from(`{"version":3,"deployment":{"metadata":{"x":${'['.repeat(600)}${']'.repeat(600)}}}}`)
  throws(
    () =>
      open(t)
        .database()
        .writeVersion({ stackUid, author: run(1), kind: 'pulumi', bytes: deep }, 0),
    /nested more than 500 deep/,
  )
})

test('the checkpoints of an update are one version, and older versions stay in the history', t => {
  const { checkpoint, write, names, versions, database, reopen } = open(t, { versionsPerStack: 3 })
  write(1, 'old')
  checkpoint(2, 1, 'a')
  for (let count = 2; count <= 20; count++) {
    if (count === 10) reopen()
    deepEqual(checkpoint(2, 1, ...Array.from({ length: count }, (_, index) => `r${index}`)), { kind: 'accepted', version: count + 1 })
  }
  deepEqual([versions().map(([version]) => version), names()?.length, names(1)], [[21, 1], 20, ['old']])
  deepEqual([database().newestVersion(stackUid), database().stats().droppedVersions], [21, 0])
  // The next update of the Run, and one with the same number of another Run, do not replace it.
  checkpoint(2, 2, 'b')
  checkpoint(3, 2, 'c')
  deepEqual(
    versions().map(([version]) => version),
    [23, 22, 21],
  )
})

test('a checkpoint does not replace what came after the one before', t => {
  const { checkpoint, append, complete, versions } = open(t)
  checkpoint(1, 1, 'a')
  append(1, 2, created(1, 'c'))
  complete(1, 2)
  checkpoint(1, 1, 'd')
  deepEqual(
    versions().map(([version]) => version),
    [3, 2, 1],
  )
})

test('the newest state is known without its content, with the open journal, and whether it has space', t => {
  const { append, complete, write, database } = open(t, { maxBytes: 2_000 })
  const newest = () => database().newestPulumi(stackUid)
  equal(newest(), undefined)
  write(1, 'a')
  deepEqual(newest(), { version: 1, isFull: false })
  for (let entry = 1; entry <= 30; entry++) append(2, 1, created(entry, 'b', { removeNew: entry > 1 ? entry - 1 : null }))
  deepEqual(newest(), { version: 2, isFull: false }, 'many entries, and a small state')
  complete(2, 1)
  append(3, 1, created(1, 'c', { state: resource('c', { inputs: 'x'.repeat(1_700) }) }))
  deepEqual(newest(), { version: 3, isFull: true })
  complete(3, 1)
  deepEqual(newest(), { version: 3, isFull: true })
})

for (const { name, bytes, kind, want } of [
  { name: 'another state', bytes: stateOf('x'), want: ['x'] },
  { name: 'the state that the update began with', bytes: stateOf('old'), want: ['old'] },
  { name: 'a state of another kind', bytes: Buffer.from('{}'), kind: 'terraform' as const, want: ['a', 'old'] },
])
  test(`${name} that a user writes comes after the journal, which becomes a version of its Run`, t => {
    const { append, writeAsUser, write, names, versions } = open(t)
    write(1, 'old')
    append(1, 1, created(1, 'a'))
    deepEqual(writeAsUser(bytes, kind), { kind: 'accepted', version: 3 })
    deepEqual([names(), names(2)], [want, ['a', 'old']])
    deepEqual(
      versions().map(([version, author]) => [version, author]),
      [
        [3, 'user'],
        [2, 'run-1'],
        [1, 'run-1'],
      ],
    )
  })

test('a user who accepts the newest state accepts the journal with it', t => {
  const { append, names, database } = open(t)
  append(1, 1, created(1, 'a'))
  deepEqual(
    database().transaction(() => database().acceptState({ stackUid, user: 'ada', expectedVersion: 7 }, 1_000)),
    { kind: 'accepted', version: 8 },
  )
  deepEqual([names(), names(1)], [['a'], ['a']])
})

test('a journal that is not understood is neither read nor compacted until a user replaces the state, and then it is an orphan', t => {
  const { append, complete, write, writeAsUser, names, orphans, orphan, versions, lock, database, reopen } = open(t)
  write(1, 'old')
  const big = '{"version":1,"kind":42,"sequenceID":2,"n":12345678901234567890}'
  append(1, 1, created(1, 'a'))
  database().appendJournal({ stackUid, ...run(1), update: 1, cliVersion: '3.300.0', bytes: Buffer.from(`{"entries":[${big}]}`) }, 1_000)
  const message =
    /the journal of Run run-1 \(Pulumi 3.260.0\) cannot be read by this version of Oarlock: unknown entry kind 42 \(sequenceID 2\)/
  throws(() => names(), message)
  throws(() => names(2), message)
  deepEqual(names(1), ['old'])
  throws(() => complete(1, 1), withCode('JournalUnreadable'))
  lock(2)
  throws(() => append(2, 1, created(1, 'b')), withCode('JournalUnreadable'))
  throws(() => write(2, 'c'), withCode('JournalUnreadable'))
  reopen()
  equal(database().newestVersion(stackUid), 2)
  match(database().pulumiFacts(stackUid)?.unreadable ?? '', message)
  deepEqual(versions()[0], [2, 'run-1', 2])
  database().unlock({ stackUid, holder: run(2) })
  deepEqual(writeAsUser(stateOf('old')), { kind: 'accepted', version: 3 })
  deepEqual(orphans(), [[2, 'pulumi-journal', 'JournalUnreadable']])
  equal(orphan(2), `{"entries":[${JSON.stringify(created(1, 'a'))},${big}]}`)
  deepEqual([names(), database().pulumiFacts(stackUid)], [['old'], { resources: 1, pendingOperations: 0 }])
})

test('a journal has limits, and a batch beyond them changes nothing', t => {
  const { append, names } = open(t, { journalEntries: 3, journalBytes: 2_000, journalBatchBytes: 1_500 })
  append(1, 1, created(1, 'a'), created(2, 'b'))
  throws(() => append(1, 1, created(3, 'c'), created(4, 'd')), withCode('TooLarge'))
  throws(
    () => append(1, 1, created(3, 'c', { state: resource('c', { inputs: 'x'.repeat(1_600) }) })),
    /batch of journal entries has \d+ bytes, at most 1500/,
  )
  append(1, 1, created(3, 'c'))
  deepEqual(append(1, 1, created(3, 'c')), { kind: 'accepted', version: 1 })
  deepEqual(names(), ['a', 'b', 'c'])
  const large = open(t, { journalBytes: 2_000 })
  large.append(1, 1, created(1, 'a', { state: resource('a', { inputs: 'x'.repeat(1_300) }) }))
  throws(() => large.append(1, 1, created(2, 'b', { state: resource('b', { inputs: 'x'.repeat(700) }) })), withCode('TooLarge'))
  large.complete(1, 1)
  // The state that a journal begins with counts: what results is not larger.
  throws(
    () => large.append(1, 2, created(1, 'b', { state: resource('b', { inputs: 'x'.repeat(700) }) })),
    /the state and its journal would have \d+ bytes/,
  )
  large.append(1, 2, created(1, 'b'))
})

test('a state that its journal makes large gets no more resources, loses none, and is read and reduced by the next update', t => {
  const limits = { maxBytes: 4_600, journalBytes: 40_000 }
  const { append, complete, names, write, database } = open(t, limits)
  const large = (name: string) => resource(name, { inputs: 'x'.repeat(1_000) })
  const creating = (sequenceID: number, name: string) => begin(sequenceID, name, { operation: { type: 'creating', resource: large(name) } })
  const done = (sequenceID: number, name: string) => created(sequenceID, name, { operationID: sequenceID - 1, state: large(name) })
  append(1, 1, creating(1, 'a'), done(2, 'a'))
  // Base and journal are above the limit, and what they result in is not.
  append(1, 1, creating(3, 'b'))
  append(1, 1, done(4, 'b'))
  const isFull = (result: ReturnType<typeof append>) => result.kind === 'full' && /above 4025 no resource can be added/.test(result.message)
  append(1, 1, { ...creating(5, 'c'), operation: { type: 'updating', resource: large('c') } })
  equal(isFull(append(1, 1, creating(7, 'd'))), true)
  // Results of operations in flight are stored, also with the begin of another one, and when the request is repeated.
  append(1, 1, done(6, 'c'), done(8, 'e'))
  equal(isFull(append(1, 1, creating(10, 'd'), done(9, 'f'))), true)
  equal(isFull(append(1, 1, creating(10, 'd'), done(9, 'f'))), true)
  deepEqual(database().pulumiFacts(stackUid), { resources: 5, pendingOperations: 0 })
  complete(1, 1)
  deepEqual(names(), ['a', 'b', 'c', 'e', 'f'])
  equal((database().readVersion({ stackUid, kind: 'pulumi' })?.bytes.byteLength ?? 0) > limits.maxBytes, true)
  const accepted = database().transaction(() => database().acceptState({ stackUid, user: 'ada', expectedVersion: 5 }, 1_000))
  deepEqual(accepted, { kind: 'accepted', version: 6 })
  equal(isFull(append(2, 1, creating(1, 'g'))), true)
  equal(database().openJournals, 0)
  append(2, 1, { ...begin(1, 'a'), operation: { type: 'deleting', resource: large('a') } })
  append(2, 1, { ...removed(2, 0), operationID: 1 }, removed(3, 1), removed(4, 2))
  append(2, 1, creating(5, 'g'))
  append(2, 1, done(6, 'g'))
  complete(2, 1)
  deepEqual(names(), ['g', 'e', 'f'])
  throws(() => write(2, ...Array.from({ length: 100 }, (_, index) => String(index))), withCode('TooLarge'))
})

test('no limit deletes the state that a journal began with', t => {
  const { append, names, write, database } = open(t, { versionsPerStack: 1 })
  write(1, 'old')
  append(1, 1, created(1, 'a'))
  for (let serial = 0; serial < 3; serial++)
    database().writeVersion({ stackUid, author: run(1), kind: 'inventory', bytes: Buffer.from(`{"n":${serial}}`) }, 1_000)
  deepEqual(names(), ['a', 'old'])
})

test('a Stack that is deleted leaves no journal', t => {
  const { append, names, database } = open(t)
  append(1, 1, created(1, 'a'))
  database().deleteStack(stackUid)
  deepEqual([names(), database().newestVersion(stackUid), database().stats().journals], [undefined, 0, 0])
  equal(database().pulumiFacts(stackUid), undefined)
  append(1, 1, created(1, 'b'))
  deepEqual(names(), ['b'])
})

test('a batch that is no list of entries is rejected', t => {
  const { database } = open(t)
  const append = (text: string | Buffer) =>
    database().appendJournal({ stackUid, ...run(1), update: 1, cliVersion: '', bytes: Buffer.from(text as string) }, 0)
  for (const text of ['', 'x', '{}', '{"entries":[1]}', Buffer.from([0xff])]) throws(() => append(text), withCode('InvalidArgument'))
  equal(database().newestVersion(stackUid), 0)
})
