import { deepStrictEqual, equal, match, ok, rejects } from 'node:assert/strict'
import { execFileSync, fork } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { openStateStore, type RunHolder, type StateLimits, type StateStore, type StateStoreError, type UserHolder } from './index.ts'
import { batch, created, namesIn } from './pulumi-journal.testing.ts'

const key = Buffer.alloc(32, 7)
const never = async () => false
const always = async () => true
const run = (epoch: number): RunHolder => ({ kind: 'Run', runName: `run-${epoch}`, epoch })
const user = (id: string): UserHolder => ({ kind: 'User', id, who: 'ada@host', info: { ID: id, Operation: 'OperationTypeApply' } })
const write = (store: StateStore, epoch: number, text: string, stackUid = 'uid') =>
  store.writeVersion({ stackUid, runName: `run-${epoch}`, epoch, bytes: Buffer.from(text) })
const textOf = async (store: StateStore, version?: number) => (await store.readVersion({ stackUid: 'uid', version }))?.bytes.toString()

async function withDirectory(work: (directory: string) => Promise<void>): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-state-'))
  try {
    await work(directory)
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

const withStore = (work: (store: StateStore, directory: string) => Promise<void>, limits?: Partial<StateLimits>) =>
  withDirectory(async directory => {
    const store = await openStateStore({ directory, key, limits, nowMs: () => 1_000 })
    try {
      await work(store, directory)
    } finally {
      await store.close()
    }
  })

test('writes, lists and reads versions through the thread', () =>
  withStore(async store => {
    equal(await store.readVersion({ stackUid: 'uid' }), undefined)
    deepStrictEqual(await write(store, 1, 'one'), { kind: 'accepted', version: 1 })
    deepStrictEqual(await write(store, 1, 'two'), { kind: 'accepted', version: 2 })
    equal(await textOf(store), 'two')
    equal(await textOf(store, 1), 'one')
    const info = { kind: 'terraform', epoch: 1, author: 'run-1', size: 3, createdMs: 1_000 }
    deepStrictEqual(await store.versions('uid'), [
      { version: 2, ...info },
      { version: 1, ...info },
    ])
    deepStrictEqual(await store.versions('other'), [])
  }))

test('the number of open journals is known, also while the thread is idle and after a restart', () =>
  withDirectory(async directory => {
    const store = await openStateStore({ directory, key, idleTimeoutMs: 10 })
    const append = (stackUid: string, update: number) =>
      store.appendJournal({ stackUid, runName: 'run-1', epoch: 1, update, cliVersion: '', bytes: batch(created(1, 'a')) })
    equal(store.openJournals, 0)
    await append('a', 1)
    await append('b', 1)
    equal(store.openJournals, 2)
    await store.completeJournal({ stackUid: 'a', runName: 'run-1', epoch: 1, update: 1 })
    await append('b', 2)
    equal(store.openJournals, 1)
    await append('c', 1)
    await store.deleteStack('b')
    equal(store.openJournals, 1)
    await sleep(50) // Longer than the idle timeout.
    equal(store.openJournals, 1)
    await store.close()
    const reopened = await openStateStore({ directory, key })
    equal(reopened.openJournals, 1)
    await reopened.close()
  }))

test('breaks a lock only when isLockAbandoned resolves to true (invariant 4)', () =>
  withStore(async store => {
    deepStrictEqual(await store.lock({ stackUid: 'uid', holder: run(1) }, never), { kind: 'granted' })
    const held = { kind: 'rejected', reason: 'Held', holder: run(1), sinceMs: 1_000 }
    deepStrictEqual(await store.lock({ stackUid: 'uid', holder: run(2) }, never), held)
    const unknown = () => Promise.reject(new Error('the API server does not respond'))
    deepStrictEqual(await store.lock({ stackUid: 'uid', holder: run(2) }, unknown), held, 'a failed check is no proof')
    deepStrictEqual(await store.lock({ stackUid: 'uid', holder: run(2) }, always), { kind: 'granted', brokenHolder: run(1) })
    deepStrictEqual(await store.lock({ stackUid: 'uid', holder: run(1) }, always), {
      kind: 'rejected',
      reason: 'StaleEpoch',
      currentEpoch: 2,
    })
    deepStrictEqual(await store.unlock({ stackUid: 'uid', holder: run(1) }), { kind: 'rejected', holder: run(2) })
    deepStrictEqual(await store.unlock({ stackUid: 'uid', holder: run(2) }), { kind: 'released' })
    deepStrictEqual(await store.unlock({ stackUid: 'uid', holder: run(2) }), { kind: 'free' })
  }))

test('does not break a lock that another Run acquires during the check (invariant 4)', () =>
  withStore(async store => {
    await store.lock({ stackUid: 'uid', holder: run(1) }, never)
    const checked: string[] = []
    const result = await store.lock({ stackUid: 'uid', holder: run(3) }, async holder => {
      checked.push(holder.runName)
      if (holder.epoch === 2) return false
      await store.unlock({ stackUid: 'uid', holder: run(1) })
      await store.lock({ stackUid: 'uid', holder: run(2) }, never)
      return true
    })
    deepStrictEqual(checked, ['run-1', 'run-2'])
    deepStrictEqual(result, { kind: 'rejected', reason: 'Held', holder: run(2), sinceMs: 1_000 })
  }))

test("never breaks a user's lock, which fences the previous Run", () =>
  withStore(async store => {
    await store.lock({ stackUid: 'uid', holder: run(1) }, never)
    await store.unlock({ stackUid: 'uid', holder: run(1) })
    await store.lock({ stackUid: 'uid', holder: user('a') }, never)
    deepStrictEqual(await store.currentLock('uid'), { holder: user('a'), sinceMs: 1_000 })
    equal((await store.lock({ stackUid: 'uid', holder: run(2) }, always)).kind, 'rejected')
    deepStrictEqual(await store.writeVersion({ stackUid: 'uid', user: { lockId: 'a' }, bytes: Buffer.from('p') }), {
      kind: 'accepted',
      version: 1,
    })
    equal((await store.writeVersion({ stackUid: 'uid', user: { lockId: 'b' }, bytes: Buffer.from('q') })).kind, 'rejected')
    await store.unlock({ stackUid: 'uid', holder: user('a') })
    equal((await write(store, 1, 'late')).kind, 'rejected')
    equal((await store.lock({ stackUid: 'uid', holder: run(2) }, never)).kind, 'granted')
    equal(await textOf(store), 'p')
  }))

test('a stack token is stable across restarts and valid for its stack only', () =>
  withStore(async (store, directory) => {
    const token = await store.stackToken('uid')
    match(token, /^[\w-]{43}$/)
    deepStrictEqual(
      await Promise.all([token, await store.stackToken('other'), '', `${token}x`].map(text => store.checkStackToken('uid', text))),
      [true, false, false, false],
    )
    await store.close()
    const reopened = await openStateStore({ directory, key })
    equal(await reopened.stackToken('uid'), token)
    const { token: rotated } = await reopened.rotateStackToken({ stackUid: 'uid', graceMs: 0 })
    await reopened.close()
    const again = await openStateStore({ directory, key })
    deepStrictEqual([await again.stackToken('uid'), await again.checkStackToken('uid', token)], [rotated, false])
    await again.close()
  }))

test('content is encrypted at rest, and only the owner can read the files', () =>
  withStore(async (store, directory) => {
    await write(store, 1, `{"password":"${'hunter2-'.repeat(4)}"}`)
    await store.putPlan({ stackUid: 'uid', digest: 'd', runName: 'r', bytes: Buffer.from('hunter2-hunter2-') })
    for (const name of readdirSync(directory)) {
      ok(!readFileSync(join(directory, name)).includes('hunter2'), name)
      equal(statSync(join(directory, name)).mode & 0o077, 0, name)
    }
  }))

test('reports a wrong key, a newer format and a second process, and changes nothing', () =>
  withDirectory(async directory => {
    const file = join(directory, 'state.db')
    const store = await openStateStore({ directory, key })
    await write(store, 1, 'one')
    await rejects(openStateStore({ directory, key }), { code: 'InUse' })
    await store.close()
    await rejects(openStateStore({ directory, key: Buffer.alloc(32, 8) }), {
      code: 'StateKeyMismatch',
      message: /^the key cannot decrypt .*state\.db/,
    })
    await rejects(openStateStore({ directory, key: Buffer.alloc(31) }), {
      code: 'InvalidArgument',
      message: 'key must be 32 bytes, got 31',
    })

    const setVersion = (version: number) => {
      const db = new DatabaseSync(file)
      db.exec(`PRAGMA user_version = ${version}`)
      db.close()
    }
    setVersion(2)
    const before = readFileSync(file)
    await rejects(openStateStore({ directory, key }), {
      code: 'DataTooNew',
      message: /has format 2, this version of Oarlock supports up to 1/,
    })
    deepStrictEqual(readFileSync(file), before)
    setVersion(1)
    const reopened = await openStateStore({ directory, key })
    equal(await textOf(reopened), 'one')
    await reopened.close()
  }))

test('reports a version whose row was exchanged as Corrupt', () =>
  withDirectory(async directory => {
    const store = await openStateStore({ directory, key })
    await write(store, 1, 'one')
    await write(store, 1, 'two')
    await store.close()
    const db = new DatabaseSync(join(directory, 'state.db'))
    db.exec('UPDATE version SET sealed = (SELECT sealed FROM version WHERE version = 1) WHERE version = 2')
    db.close()
    const reopened = await openStateStore({ directory, key })
    await rejects(reopened.readVersion({ stackUid: 'uid' }), { code: 'Corrupt' })
    equal(await textOf(reopened, 1), 'one')
    await reopened.close()
  }))

test('reports a full disk, keeps what is stored, and accepts writes once there is space', async t => {
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-full-'))
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=2m', 'tmpfs', directory], { stdio: 'pipe' })
  } catch (error) {
    rmSync(directory, { recursive: true })
    return t.skip(`cannot mount a tmpfs: ${(error as Error).message.split('\n')[0]}`)
  }
  const store = await openStateStore({ directory, key })
  try {
    const acknowledged: number[] = []
    const fill = async () => {
      for (let i = 0; i < 200; i++) {
        const result = await store.writeVersion({ stackUid: 'uid', runName: 'r', epoch: 1, bytes: randomBytes(60_000) })
        if (result.kind === 'accepted') acknowledged.push(result.version)
      }
    }
    await rejects(fill(), (error: StateStoreError) => error.code === 'DiskFull')
    ok(acknowledged.length > 3)
    deepStrictEqual((await store.versions('uid')).map(({ version }) => version).reverse(), acknowledged)
    execFileSync('mount', ['-o', 'remount,size=8m', directory])
    equal((await store.writeVersion({ stackUid: 'uid', runName: 'r', epoch: 1, bytes: randomBytes(60_000) })).kind, 'accepted')
    await store.close()
    const reopened = await openStateStore({ directory, key })
    equal((await reopened.versions('uid')).length, acknowledged.length + 1)
    await reopened.close()
  } finally {
    await store.close()
    execFileSync('umount', [directory])
    rmSync(directory, { recursive: true })
  }
})

test('rejects writes above pendingBytes (invariant 10) and calls after close', () =>
  withStore(
    async store => {
      const results = await Promise.allSettled(Array.from({ length: 10 }, (_, i) => write(store, 1, `${i}`.repeat(400))))
      const rejected = results.filter(({ status }) => status === 'rejected')
      ok(rejected.length > 0 && rejected.length < 10, `${rejected.length} rejected`)
      for (const result of rejected) equal(((result as PromiseRejectedResult).reason as StateStoreError).code, 'Overloaded')
      equal((await write(store, 1, 'later')).kind, 'accepted')
      await store.close()
      await rejects(write(store, 1, 'too late'), { code: 'Unavailable', message: 'the state store is closed' })
    },
    { pendingBytes: 1_000 },
  ))

test('kill -9 at random times loses no acknowledged write (invariant 5)', () =>
  withDirectory(async directory => {
    type Acknowledged = { stackUid: string; version: number; content: string }
    const acknowledged: Acknowledged[] = []
    for (let round = 1; round <= 5; round++) {
      const child = fork(join(import.meta.dirname, 'write-until-killed.testing.ts'), [directory, String(round)])
      const before = acknowledged.length
      child.on('message', (message: Acknowledged) => acknowledged.push(message))
      await once(child, 'message')
      await sleep(Math.random() * 80) // The kill is to happen at a random time of the writes.
      child.kill('SIGKILL')
      await once(child, 'close')
      ok(acknowledged.length > before)
    }
    const store = await openStateStore({ directory, key, limits: { versionsPerStack: 100_000 } })
    for (const { stackUid, version, content } of acknowledged) {
      equal((await store.readVersion({ stackUid, version }))?.bytes.toString(), content)
    }
    await store.close()
  }))

test('kill -9 in the middle of journals and checkpoints loses no acknowledged entry (invariant 5)', () =>
  withDirectory(async directory => {
    const acknowledged = new Map<string, Set<string>>()
    let checkpoint: string[] = []
    for (let round = 1; round <= 4; round++) {
      const child = fork(join(import.meta.dirname, 'append-until-killed.testing.ts'), [directory, String(round)])
      child.on('message', ({ stackUid, names }: { stackUid: string; names: string[] }) => {
        if (stackUid === 'checkpoints') checkpoint = names
        else acknowledged.set(stackUid, new Set([...(acknowledged.get(stackUid) ?? []), ...names]))
      })
      await once(child, 'message')
      await sleep(Math.random() * 80) // The kill is to happen at a random time of the writes.
      child.kill('SIGKILL')
      await once(child, 'close')
      const store = await openStateStore({ directory, key })
      for (const [stackUid, names] of acknowledged) {
        const stored = namesIn((await store.readVersion({ stackUid, kind: 'pulumi' }))?.bytes) ?? []
        deepStrictEqual([...names.difference(new Set(stored))], [], `round ${round}, ${stackUid}`)
        equal(new Set(stored).size, stored.length)
      }
      const versions = await store.versions('checkpoints')
      const stored = namesIn((await store.readVersion({ stackUid: 'checkpoints', kind: 'pulumi' }))?.bytes) ?? []
      // The newest checkpoint that was acknowledged, or one that was stored after it: round, update, resources.
      const orderOf = (names: readonly string[]) =>
        [...(names[0] ?? '0-0').split('-'), names.length].map(part => String(part).padStart(6, '0'))
      ok(orderOf(stored).join() >= orderOf(checkpoint).join(), `${orderOf(stored)} is before ${orderOf(checkpoint)}`)
      // One version for each update.
      const updates = await Promise.all(
        versions.map(async ({ version }) => namesIn((await store.readVersion({ stackUid: 'checkpoints', version }))?.bytes)?.[0]),
      )
      equal(new Set(updates).size, updates.length)
      await store.close()
    }
    ok(acknowledged.size > 0)
  }))
