import { deepStrictEqual, equal, match, ok, rejects } from 'node:assert/strict'
import { execFileSync, fork } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import { openStateStore, type PersonHolder, type RunHolder, type StateLimits, type StateStore, type StateStoreError } from './index.ts'
import { StateDatabase } from './state-database.ts'

const key = Buffer.alloc(32, 7)
const never = async () => false
const always = async () => true
const run = (epoch: number): RunHolder => ({ kind: 'Run', runName: `run-${epoch}`, epoch })
const person = (id: string): PersonHolder => ({ kind: 'Person', id, who: 'ada@host', info: { ID: id, Operation: 'OperationTypeApply' } })
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

test('versions are numbered, listed newest first and read back', () =>
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

test('content equal to the newest of the same epoch makes no new version', () =>
  withStore(async store => {
    await write(store, 1, 'one')
    deepStrictEqual(await write(store, 1, 'one'), { kind: 'accepted', version: 1 })
    deepStrictEqual(await write(store, 2, 'one'), { kind: 'accepted', version: 2 })
  }))

test('the inventory is a kind of its own', () =>
  withStore(async store => {
    await write(store, 1, 'state')
    await store.writeVersion({ stackUid: 'uid', runName: 'run-1', epoch: 1, kind: 'inventory', bytes: Buffer.from('list') })
    equal(await textOf(store), 'state')
    equal((await store.readVersion({ stackUid: 'uid', kind: 'inventory' }))?.bytes.toString(), 'list')
  }))

test('a write of an older epoch is kept as an orphan, once (invariant 3)', () =>
  withStore(async store => {
    await store.lock({ stackUid: 'uid', holder: run(5) }, never)
    await write(store, 5, 'current')
    const refused = { kind: 'refused', reason: 'StaleEpoch', orphan: 2, currentEpoch: 5, holder: run(5) }
    deepStrictEqual(await write(store, 4, 'late'), refused)
    deepStrictEqual(await write(store, 4, 'late'), refused)
    equal(await textOf(store), 'current')
    equal(await textOf(store, 2), 'late')
    deepStrictEqual(await store.orphans('uid'), [
      { version: 2, kind: 'terraform', epoch: 4, author: 'run-4', size: 4, createdMs: 1_000, reason: 'StaleEpoch' },
    ])
  }))

test('a lock is broken only over a dead body (invariant 4)', () =>
  withStore(async store => {
    deepStrictEqual(await store.lock({ stackUid: 'uid', holder: run(1) }, never), { kind: 'granted' })
    const held = { kind: 'refused', reason: 'Held', holder: run(1), sinceMs: 1_000 }
    deepStrictEqual(await store.lock({ stackUid: 'uid', holder: run(2) }, never), held)
    const unknown = () => Promise.reject(new Error('the API server does not answer'))
    deepStrictEqual(await store.lock({ stackUid: 'uid', holder: run(2) }, unknown), held, 'not knowing is no proof')
    deepStrictEqual(await store.lock({ stackUid: 'uid', holder: run(2) }, always), { kind: 'granted', broke: run(1) })
    deepStrictEqual(await store.lock({ stackUid: 'uid', holder: run(1) }, always), {
      kind: 'refused',
      reason: 'StaleEpoch',
      currentEpoch: 2,
    })
    deepStrictEqual(await store.unlock({ stackUid: 'uid', holder: run(1) }), { kind: 'refused', holder: run(2) })
    deepStrictEqual(await store.unlock({ stackUid: 'uid', holder: run(2) }), { kind: 'released' })
    deepStrictEqual(await store.unlock({ stackUid: 'uid', holder: run(2) }), { kind: 'free' })
  }))

test('a lock that changed hands while the question was asked is not broken (invariant 4)', () =>
  withStore(async store => {
    await store.lock({ stackUid: 'uid', holder: run(1) }, never)
    const asked: string[] = []
    const result = await store.lock({ stackUid: 'uid', holder: run(3) }, async holder => {
      asked.push(holder.runName)
      if (holder.epoch === 2) return false
      await store.unlock({ stackUid: 'uid', holder: run(1) })
      await store.lock({ stackUid: 'uid', holder: run(2) }, never)
      return true
    })
    deepStrictEqual(asked, ['run-1', 'run-2'])
    deepStrictEqual(result, { kind: 'refused', reason: 'Held', holder: run(2), sinceMs: 1_000 })
  }))

test("a person's lock is never broken, and fences the run before it", () =>
  withStore(async store => {
    await store.lock({ stackUid: 'uid', holder: run(1) }, never)
    await store.unlock({ stackUid: 'uid', holder: run(1) })
    await store.lock({ stackUid: 'uid', holder: person('a') }, never)
    deepStrictEqual(await store.currentLock('uid'), { holder: person('a'), sinceMs: 1_000 })
    equal((await store.lock({ stackUid: 'uid', holder: run(2) }, always)).kind, 'refused')
    deepStrictEqual(await store.writeVersion({ stackUid: 'uid', person: { lockId: 'a' }, bytes: Buffer.from('p') }), {
      kind: 'accepted',
      version: 1,
    })
    equal((await store.writeVersion({ stackUid: 'uid', person: { lockId: 'b' }, bytes: Buffer.from('q') })).kind, 'refused')
    await store.unlock({ stackUid: 'uid', holder: person('a') })
    equal((await write(store, 1, 'late')).kind, 'refused')
    equal((await store.lock({ stackUid: 'uid', holder: run(2) }, never)).kind, 'granted')
    equal(await textOf(store), 'p')
  }))

test('limits: the newest versions and orphans stay, what is dropped is counted (invariant 10)', () =>
  withStore(
    async store => {
      for (let i = 1; i <= 6; i++) await write(store, 9, `v${i}`)
      for (let i = 1; i <= 5; i++) await write(store, 3, `o${i}`)
      deepStrictEqual(
        (await store.versions('uid')).map(({ version }) => version),
        [6, 5, 4],
      )
      deepStrictEqual(
        (await store.orphans('uid')).map(({ version }) => version),
        [11, 10],
      )
      const { droppedVersions, droppedOrphans, stacks } = await store.stats()
      deepStrictEqual({ droppedVersions, droppedOrphans, stacks }, { droppedVersions: 3, droppedOrphans: 3, stacks: 1 })
    },
    { versionsPerStack: 3, orphansPerStack: 2 },
  ))

test('limits: bytes per stack drop old versions and never the newest', () =>
  withStore(
    async store => {
      for (let i = 1; i <= 5; i++) await store.writeVersion({ stackUid: 'uid', runName: 'run-1', epoch: 1, bytes: randomBytes(2_000) })
      deepStrictEqual(
        (await store.versions('uid')).map(({ version }) => version),
        [5],
      )
    },
    { bytesPerStack: 100 },
  ))

test('content over the limit is refused with its size and the limit', () =>
  withStore(
    async store => {
      await rejects(write(store, 1, 'x'.repeat(101)), { code: 'TooLarge', message: 'the state has 101 bytes, at most 100 are allowed' })
      await rejects(store.writeVersion({ stackUid: '', runName: 'r', epoch: 1, bytes: Buffer.from('x') }), { code: 'InvalidArgument' })
      await rejects(store.writeVersion({ stackUid: 'u', runName: 'r', epoch: -1, bytes: Buffer.from('x') }), { code: 'InvalidArgument' })
      equal((await write(store, 1, 'fits')).kind, 'accepted')
    },
    { maxBytes: 100 },
  ))

test('plans are kept by digest, the oldest go', () =>
  withStore(
    async store => {
      for (const digest of ['a', 'b', 'c'])
        await store.putPlan({ stackUid: 'uid', digest, runName: 'run-1', bytes: Buffer.from(`plan ${digest}`) })
      equal(await store.getPlan('uid', 'a'), undefined)
      equal((await store.getPlan('uid', 'c'))?.bytes.toString(), 'plan c')
    },
    { plansPerStack: 2 },
  ))

test('a deleted stack leaves nothing', () =>
  withStore(async store => {
    await store.lock({ stackUid: 'uid', holder: run(1) }, never)
    await write(store, 1, 'one')
    await store.deleteStack('uid')
    const { versions, locks, stacks } = await store.stats()
    deepStrictEqual({ versions, locks, stacks }, { versions: 0, locks: 0, stacks: 0 })
  }))

test('stack tokens: stable over restarts, one per stack, nothing else is accepted', () =>
  withStore(async (store, directory) => {
    const token = store.stackToken('uid')
    match(token, /^[\w-]{43}$/)
    deepStrictEqual(
      [token, store.stackToken('other'), '', `${token}x`].map(text => store.checkStackToken('uid', text)),
      [true, false, false, false],
    )
    await store.close()
    const again = await openStateStore({ directory, key })
    equal(again.stackToken('uid'), token)
    await again.close()
  }))

test('nothing on disk shows the content (encrypted at rest), and files are private', () =>
  withStore(async (store, directory) => {
    await write(store, 1, `{"password":"${'hunter2-'.repeat(4)}"}`)
    await store.putPlan({ stackUid: 'uid', digest: 'd', runName: 'r', bytes: Buffer.from('hunter2-hunter2-') })
    for (const name of readdirSync(directory)) {
      ok(!readFileSync(join(directory, name)).includes('hunter2'), name)
      equal(statSync(join(directory, name)).mode & 0o077, 0, name)
    }
  }))

test('a wrong key, a newer format, a strange file, a second process: typed errors, nothing changed', () =>
  withDirectory(async directory => {
    const file = join(directory, 'state.db')
    const store = await openStateStore({ directory, key })
    await write(store, 1, 'one')
    await rejects(openStateStore({ directory, key }), { code: 'InUse' })
    await store.close()
    await rejects(openStateStore({ directory, key: Buffer.alloc(32, 8) }), {
      code: 'StateKeyMismatch',
      message: /^the key does not open .*state\.db/,
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
    await rejects(openStateStore({ directory, key }), { code: 'DataTooNew', message: /has format 2, this Oarlock reads up to 1/ })
    deepStrictEqual(readFileSync(file), before)
    setVersion(1)
    const again = await openStateStore({ directory, key })
    equal(await textOf(again), 'one')
    await again.close()
  }))

test('a version moved to another place does not open: Corrupt, not garbage', () =>
  withDirectory(async directory => {
    const store = await openStateStore({ directory, key })
    await write(store, 1, 'one')
    await write(store, 1, 'two')
    await store.close()
    const db = new DatabaseSync(join(directory, 'state.db'))
    db.exec('UPDATE version SET sealed = (SELECT sealed FROM version WHERE version = 1) WHERE version = 2')
    db.close()
    const again = await openStateStore({ directory, key })
    await rejects(again.readVersion({ stackUid: 'uid' }), { code: 'Corrupt' })
    equal(await textOf(again, 1), 'one')
    await again.close()
  }))

test('the quota: a typed error, nothing lost, and reading goes on', () =>
  withStore(
    async store => {
      await write(store, 1, 'first', 'kept')
      const fill = async () => {
        for (let i = 0; i < 200; i++) await store.writeVersion({ stackUid: 'big', runName: 'r', epoch: 1, bytes: randomBytes(30_000) })
      }
      await rejects(fill(), { code: 'QuotaExceeded' })
      equal((await store.readVersion({ stackUid: 'kept' }))?.bytes.toString(), 'first')
      await store.deleteStack('big')
      equal((await write(store, 1, 'second', 'kept')).kind, 'accepted')
    },
    { totalBytes: 400_000, maxBytes: 60_000 },
  ))

test('a full disk: a typed error, nothing lost, works again after', async t => {
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-full-'))
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=2m', 'tmpfs', directory], { stdio: 'pipe' })
  } catch (error) {
    rmSync(directory, { recursive: true })
    return t.skip(`cannot mount a small tmpfs here: ${(error as Error).message.split('\n')[0]}`)
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
    const again = await openStateStore({ directory, key })
    equal((await again.versions('uid')).length, acknowledged.length + 1)
    await again.close()
  } finally {
    await store.close()
    execFileSync('umount', [directory])
    rmSync(directory, { recursive: true })
  }
})

test('what waits for the disk is bounded (invariant 10), and a closed store says so', () =>
  withStore(
    async store => {
      const results = await Promise.allSettled(Array.from({ length: 10 }, (_, i) => write(store, 1, `${i}`.repeat(400))))
      const refused = results.filter(({ status }) => status === 'rejected')
      ok(refused.length > 0 && refused.length < 10, `${refused.length} refused`)
      for (const result of refused) equal(((result as PromiseRejectedResult).reason as StateStoreError).code, 'Overloaded')
      equal((await write(store, 1, 'later')).kind, 'accepted')
      await store.close()
      await rejects(write(store, 1, 'too late'), { code: 'Unavailable', message: 'the state store is closed' })
    },
    { pendingBytes: 1_000 },
  ))

/** What the store must do, said naively: everything is remembered, and the rules are checked against the whole history. */
const step = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('write' as const),
      epoch: fc.integer({ min: 1, max: 6 }),
      content: fc.integer({ min: 0, max: 5 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('lock' as const), epoch: fc.integer({ min: 1, max: 6 }), gone: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('unlock' as const), epoch: fc.integer({ min: 1, max: 6 }) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('personLock' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('personWrite' as const), content: fc.integer({ min: 0, max: 5 }) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('personUnlock' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('reopen' as const) }) },
)

test('property: an older epoch is never current, its content is kept, and what was acknowledged survives (invariants 3, 4, 5)', async () => {
  const orphansPerStack = 3
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), steps =>
      withDirectory(async directory => {
        const open = () => new StateDatabase({ directory, key, limits: { orphansPerStack } })
        let store = open()
        let holder: string | undefined
        let fencedBelow = 0
        let highest = 0
        let current: string | undefined
        const contents = new Map<number, string>()
        const orphaned = new Set<number>()
        for (const step of steps) {
          if (step.do === 'reopen') {
            store.close()
            store = open()
          } else if (step.do === 'lock') {
            const breaking = step.gone && holder !== undefined && holder !== 'person' ? run(Number(holder)) : undefined
            const result = store.transaction(() => store.lock({ stackUid: 'uid', holder: run(step.epoch), breaking }, 0))
            const isFree = holder === undefined || holder === String(step.epoch) || breaking !== undefined
            equal(result.kind, isFree && step.epoch >= fencedBelow ? 'granted' : 'refused')
            if (result.kind === 'granted') {
              holder = String(step.epoch)
              fencedBelow = Math.max(fencedBelow, step.epoch)
              highest = Math.max(highest, step.epoch)
            }
          } else if (step.do === 'personLock') {
            const result = store.transaction(() => store.lock({ stackUid: 'uid', holder: person('p') }, 0))
            equal(result.kind, holder === undefined || holder === 'person' ? 'granted' : 'refused')
            if (result.kind === 'granted') {
              holder = 'person'
              fencedBelow = highest + 1
            }
          } else if (step.do === 'unlock' || step.do === 'personUnlock') {
            const me = step.do === 'unlock' ? String(step.epoch) : 'person'
            const claim = step.do === 'unlock' ? run(step.epoch) : person('p')
            const result = store.transaction(() => store.unlock({ stackUid: 'uid', holder: claim }))
            equal(result.kind, holder === undefined ? 'free' : holder === me ? 'released' : 'refused')
            if (holder === me) holder = undefined
          } else {
            const isRun = step.do === 'write'
            const text = `content ${step.content}`
            const author = isRun ? { ...run(step.epoch) } : { kind: 'Person' as const, lockId: 'p' }
            const result = store.transaction(() =>
              store.writeVersion({ stackUid: 'uid', author, kind: 'terraform', bytes: Buffer.from(text) }, 0),
            )
            const may = isRun ? step.epoch >= fencedBelow && (holder === undefined || holder === String(step.epoch)) : holder === 'person'
            equal(result.kind, may ? 'accepted' : 'refused')
            if (result.kind === 'accepted') {
              current = text
              contents.set(result.version, text)
              if (isRun) {
                fencedBelow = Math.max(fencedBelow, step.epoch)
                highest = Math.max(highest, step.epoch)
              }
            } else {
              contents.set(result.orphan, text)
              orphaned.add(result.orphan)
            }
          }
          equal((await Promise.resolve(store.readVersion({ stackUid: 'uid', kind: 'terraform' })))?.bytes.toString(), current)
          for (const { version } of store.versions('uid')) {
            ok(!orphaned.has(version))
            equal(
              Buffer.from(store.readVersion({ stackUid: 'uid', version, kind: 'terraform' })?.bytes ?? []).toString(),
              contents.get(version),
            )
          }
          const kept = store.orphans('uid').map(({ version }) => version)
          deepStrictEqual(kept, [...orphaned].sort((a, b) => b - a).slice(0, orphansPerStack))
          for (const version of kept) {
            equal(
              Buffer.from(store.readVersion({ stackUid: 'uid', version, kind: 'terraform' })?.bytes ?? []).toString(),
              contents.get(version),
            )
          }
          equal(store.stats().droppedOrphans, orphaned.size - kept.length)
        }
        store.close()
      }),
    ),
    { numRuns: 30 },
  )
})

test('kill -9 at random instants loses nothing that was acknowledged (invariant 5)', () =>
  withDirectory(async directory => {
    type Acknowledged = { stackUid: string; version: number; content: string }
    const acknowledged: Acknowledged[] = []
    for (let round = 1; round <= 5; round++) {
      const child = fork(join(import.meta.dirname, 'kill-writer.testing.ts'), [directory, String(round)])
      const before = acknowledged.length
      child.on('message', (message: Acknowledged) => acknowledged.push(message))
      await once(child, 'message')
      await sleep(Math.random() * 80)
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

// The number that chose the thread; on a shared machine it is printed and not asserted.
test('12 engines writing 100 KB every 100 ms do not stop the event loop', { timeout: 20_000 }, t =>
  withStore(async store => {
    const state = (engine: number, i: number) => Buffer.from(JSON.stringify({ engine, i, text: 'resource '.repeat(11_000) }))
    const delay = monitorEventLoopDelay({ resolution: 1 })
    const answeredMs: number[] = []
    delay.enable()
    await Promise.all(
      Array.from({ length: 12 }, async (_, engine) => {
        await sleep(engine * 8)
        for (let i = 0; i < 10; i++) {
          const startMs = performance.now()
          await write(store, 1, state(engine, i).toString(), `uid-${engine}`)
          answeredMs.push(performance.now() - startMs)
          await sleep(Math.max(0, 100 - (performance.now() - startMs)))
        }
      }),
    )
    delay.disable()
    answeredMs.sort((a, b) => a - b)
    const ms = (ns: number) => (ns / 1e6).toFixed(1)
    const p = (share: number) => answeredMs[Math.floor(answeredMs.length * share)]?.toFixed(1)
    t.diagnostic(
      `event loop delay p50 ${ms(delay.percentile(50))} p99 ${ms(delay.percentile(99))} max ${ms(delay.max)} ms; write p50 ${p(0.5)} p99 ${p(0.99)} ms`,
    )
    equal(answeredMs.length, 120)
  }),
)
