import { deepStrictEqual, equal, match, ok, rejects } from 'node:assert/strict'
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync, truncateSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { mountTmpfs, tmpfsUnavailable } from '../../../test/support/mount-tmpfs.ts'
import { type LogLimits, type LogStore, openLogStore } from './index.ts'

const key = { namespace: 'apps', run: 'net-ab12c-1' }
const keyOf = (run: string) => ({ namespace: 'apps', run })

async function withStore(work: (store: LogStore, directory: string) => Promise<void>, limits?: Partial<LogLimits>): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-log-'))
  const store = openLogStore({ directory, limits })
  try {
    await work(store, directory)
  } finally {
    await store.close()
    rmSync(directory, { recursive: true, force: true })
  }
}

const textOf = async (store: LogStore, options = {}) => (await store.read(key, options)).bytes.toString()
const appendText = (store: LogStore, offset: number, text: string, to = key) => store.append(to, offset, Buffer.from(text))

test('reads appended text by offset and by tail', () =>
  withStore(async (store, directory) => {
    deepStrictEqual(await appendText(store, 0, 'one\ntwo\n'), { kind: 'appended', offset: 8 })
    deepStrictEqual(await appendText(store, 8, 'three\n'), { kind: 'appended', offset: 14 })
    equal(await textOf(store), 'one\ntwo\nthree\n')
    equal(await textOf(store, { offset: 4 }), 'two\nthree\n')
    for (const [tailLines, want] of [
      [0, ''],
      [1, 'three\n'],
      [2, 'two\nthree\n'],
      [9, 'one\ntwo\nthree\n'],
    ] as const) {
      equal(await textOf(store, { tailLines }), want)
    }
    deepStrictEqual(await store.read({ namespace: 'apps', run: 'unknown' }), {
      bytes: Buffer.alloc(0),
      offset: 0,
      nextOffset: 0,
      ended: false,
    })
    equal(statSync(join(directory, 'apps', `${key.run}.log`)).mode & 0o077, 0)
  }))

test('ignores a repeated append and rejects a gap', () =>
  withStore(async store => {
    await appendText(store, 0, 'one\n')
    deepStrictEqual(await appendText(store, 0, 'one\n'), { kind: 'appended', offset: 4 })
    deepStrictEqual(await appendText(store, 0, 'one\ntwo\n'), { kind: 'appended', offset: 8 })
    deepStrictEqual(await appendText(store, 9, 'x'), { kind: 'gap', expected: 8 })
    equal(await textOf(store), 'one\ntwo\n')
    await store.end(key)
    await store.end(key)
    deepStrictEqual(await appendText(store, 8, 'late'), { kind: 'ended' })
    await rejects(appendText(store, -1, 'x'), RangeError)
  }))

test('on a full disk an append fails, what was acknowledged stays, and the log continues when there is space', {
  skip: tmpfsUnavailable() ?? false,
}, async () => {
  const disk = mountTmpfs(256 * 1024)
  try {
    const store = openLogStore({ directory: disk.path })
    let acknowledged = ''
    const append = async () => {
      const text = `${String(acknowledged.length).padStart(9_999)}\n`
      await appendText(store, acknowledged.length, text)
      acknowledged += text
    }
    await append()
    const ballast = join(disk.path, 'ballast')
    writeFileSync(ballast, Buffer.alloc(128 * 1024))
    let failure: unknown
    for (let i = 0; i < 30 && failure === undefined; i++) await append().catch(error => (failure = error))
    equal((failure as NodeJS.ErrnoException).code, 'ENOSPC')
    equal(await textOf(store), acknowledged)
    rmSync(ballast)
    await append()
    await store.close()
    const again = openLogStore({ directory: disk.path })
    equal(await textOf(again), acknowledged)
    await again.close()
  } finally {
    await disk.unmount()
  }
})

test('stores concurrent appends once and in order', () =>
  withStore(async store => {
    const results = await Promise.all(Array.from({ length: 20 }, () => appendText(store, 0, 'once\n')))
    ok(results.every(({ kind }) => kind === 'appended'))
    equal(await textOf(store), 'once\n')
  }))

for (const { namespace, run } of [
  { namespace: '..', run: 'a' },
  { namespace: 'apps', run: '../../etc/passwd' },
  { namespace: 'apps', run: '..' },
  { namespace: 'a/b', run: 'a' },
  { namespace: 'apps', run: 'A' },
  { namespace: '', run: 'a' },
  { namespace: 'apps', run: 'a\0b' },
]) {
  test(`rejects an invalid name: ${JSON.stringify({ namespace, run })}`, () =>
    withStore(async (store, directory) => {
      await rejects(appendText(store, 0, 'x', { namespace, run }), { name: 'LogNameError', message: /is invalid/ })
      deepStrictEqual(readdirSync(directory), [])
    }))
}

test('stores logs with long names in separate files', () =>
  withStore(async (store, directory) => {
    const long = ['b', 'c'].map(last => keyOf('a'.repeat(240) + last))
    for (const name of long) await appendText(store, 0, name.run.slice(-1), name)
    deepStrictEqual(await Promise.all(long.map(async name => (await store.read(name)).bytes.toString())), ['b', 'c'])
    for (const name of readdirSync(join(directory, 'apps'))) ok(name.length <= 255)
  }))

test('every follower receives all appends and ends with the log', () =>
  withStore(async store => {
    await appendText(store, 0, 'before\n')
    const seen = Array.from({ length: 50 }, () => '')
    let arrived: () => void = () => undefined
    const followers = seen.map(async (_, i) => {
      for await (const bytes of store.follow(key)) {
        seen[i] += bytes.toString()
        arrived()
      }
    })
    const until = async (text: string) => {
      while (!seen.every(all => all === text)) await new Promise<void>(resolve => (arrived = resolve))
    }
    await until('before\n')
    await appendText(store, 7, 'now\n')
    await until('before\nnow\n')
    equal((await store.stats()).followers, 50)
    await appendText(store, 11, 'last')
    await store.end(key)
    await Promise.all(followers)
    ok(seen.every(text => text === 'before\nnow\nlast\n'))
    equal((await store.stats()).followers, 0)
  }))

test('a follower may start before the log and ends with its signal, the removal or the store', () =>
  withStore(async store => {
    const collect = async (signal?: AbortSignal) => {
      let text = ''
      for await (const bytes of store.follow(key, { signal, tailLines: 10 })) text += bytes.toString()
      return text
    }
    const abort = new AbortController()
    const first = collect(abort.signal)
    const second = collect()
    await appendText(store, 0, 'x\n')
    abort.abort()
    ok(['', 'x\n'].includes(await first))
    await store.remove(key)
    await second
    const third = collect()
    await appendText(store, 0, 'again\n')
    equal(await textOf(store), 'again\n')
    await store.close()
    await third
  }))

test('continues a log that had not ended after a restart', () =>
  withStore(async (store, directory) => {
    await appendText(store, 0, 'one\nlong-line')
    const again = openLogStore({ directory })
    equal(await again.receivedBytes(key), 13)
    deepStrictEqual(await appendText(again, 4, 'long-line is long\n'), { kind: 'appended', offset: 22 })
    await again.end(key)
    await again.close()
    const third = openLogStore({ directory })
    equal((await third.read(key)).bytes.toString(), 'one\nlong-line is long\n')
    equal((await third.read(key)).ended, true)
    deepStrictEqual(await appendText(third, 22, 'x'), { kind: 'ended' })
    await third.close()
  }))

test('rolls back an interrupted append, which is sent again', () =>
  withStore(async (store, directory) => {
    await appendText(store, 0, 'one\n')
    await appendText(store, 4, 'two\nthree\n')
    const file = join(directory, 'apps', `${key.run}.log`)
    for (const size of [4, 7, 13]) {
      truncateSync(file, size)
      const again = openLogStore({ directory })
      equal(await again.receivedBytes(key), 4)
      await appendText(again, 4, 'two\nthree\n')
      equal((await again.read(key)).bytes.toString(), 'one\ntwo\nthree\n')
      await again.close()
    }
  }))

test('marks bytes lost by a power failure, and keeps the log with a corrupt meta file', () =>
  withStore(async (store, directory) => {
    await appendText(store, 0, 'one\n')
    await appendText(store, 4, 'two\n')
    const path = join(directory, 'apps', key.run)
    truncateSync(`${path}.log`, 2)
    const again = openLogStore({ directory })
    equal((await again.read(key)).bytes.toString(), 'on\n[oarlock] part of this log was lost when the machine stopped\n')
    await again.close()
    writeFileSync(`${path}.meta`, '{')
    const third = openLogStore({ directory })
    match((await third.read(key)).bytes.toString(), /^on\n/)
    await third.close()
  }))

test('enforces the limits of a log across a restart', () =>
  withStore(
    async (store, directory) => {
      for (let i = 0; i < 8; i++) await appendText(store, i * 10, '123456789\n')
      const again = openLogStore({ directory, limits: store.limits })
      await appendText(again, 80, '123456789\n')
      await again.end(key)
      equal(
        (await again.read(key)).bytes.toString(),
        `${'123456789\n'.repeat(5)}[oarlock] log truncated: limit of 50 bytes reached, further output is dropped\n[oarlock] log truncated: limit of 50 bytes reached, 40 more bytes dropped\n`,
      )
      await again.close()
    },
    { bytesPerRun: 50 },
  ))

test('deletes the oldest ended logs above the total limit and keeps active ones (invariant 10)', () =>
  withStore(
    async (store, directory) => {
      const names = ['run-1', 'run-2', 'run-3', 'run-4', 'run-5']
      for (const [i, name] of names.entries()) {
        await appendText(store, 0, 'x'.repeat(100), keyOf(name))
        if (name !== 'run-1') await store.end(keyOf(name))
        const seconds = Date.now() / 1000 - 1_000 + i
        utimesSync(join(directory, 'apps', `${name}.meta`), seconds, seconds)
      }
      await appendText(store, 0, 'x'.repeat(100), keyOf('run-6'))
      deepStrictEqual(
        names.filter(name => existsSync(join(directory, 'apps', `${name}.log`))),
        ['run-1', 'run-4', 'run-5'],
      )
      const { droppedLogs, runs } = await store.stats()
      deepStrictEqual({ droppedLogs, runs }, { droppedLogs: 2, runs: 4 })
    },
    { totalBytes: 510 },
  ))

test('limits the number of logs across a restart and deletes abandoned ones', () =>
  withStore(
    async (store, directory) => {
      for (let i = 0; i < 10; i++) await appendText(store, 0, 'x', keyOf(`run-${i}`))
      const again = openLogStore({ directory, limits: store.limits, nowMs: () => Date.now() + 3_600_001 })
      await appendText(again, 0, 'x', keyOf('run-new'))
      equal((await again.stats()).runs, 9)
      ok(existsSync(join(directory, 'apps', 'run-new.log')))
      await again.close()
    },
    { retainedRuns: 10 },
  ))

test('removes a log from disk and from the statistics', () =>
  withStore(async (store, directory) => {
    await appendText(store, 0, 'one\n')
    await store.remove(key)
    await store.remove(key)
    deepStrictEqual(readdirSync(directory), [])
    deepStrictEqual(await store.stats(), { runs: 0, bytes: 0, droppedLogs: 0, followers: 0 })
  }))
