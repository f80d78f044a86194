import { deepEqual, equal, ok } from 'node:assert/strict'
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { openLogStore } from './log-store.ts'
import { offsetSince, readTimes, recordTime, recoverTimes, TimestampPrefixer } from './log-times.ts'

const directory = mkdtempSync(join(tmpdir(), 'oarlock-times-'))
after(() => rmSync(directory, { recursive: true, force: true }))

const startMs = Date.parse('2026-06-01T10:00:00Z')
const key = { namespace: 'team', run: 'web-1' }

test('a store records when each part of a log was stored, once per second', async () => {
  let nowMs = startMs
  const store = openLogStore({ directory: join(directory, 'store'), nowMs: () => nowMs })
  await store.append(key, 0, Buffer.from('one\n'))
  nowMs += 500
  await store.append(key, 4, Buffer.from('two\n'))
  nowMs += 1_000
  await store.append(key, 8, Buffer.from('three\nfo'))
  nowMs += 5_000
  await store.append(key, 16, Buffer.from('ur\nfive\n'))
  const times = await store.times(key)
  deepEqual(times, [
    { offset: 0, atMs: startMs },
    { offset: 8, atMs: startMs + 1_500 },
    { offset: 16, atMs: startMs + 6_500 },
  ])
  const since = async (ms: number) => (await store.read(key, { sinceMs: startMs + ms })).bytes.toString()
  equal(await since(0), 'one\ntwo\nthree\nfour\nfive\n')
  equal(await since(1_000), 'three\nfour\nfive\n')
  equal(await since(7_000), '')
  equal((await store.read(key, { sinceMs: startMs, tailLines: 1 })).bytes.toString(), 'five\n')

  await store.close()
  const reopened = openLogStore({ directory: join(directory, 'store'), nowMs: () => nowMs })
  await reopened.append(key, 24, Buffer.from('six\n'))
  equal((await reopened.times(key)).length, 4, 'a store that starts again records the time')
  const backup: string[] = []
  for await (const { name } of reopened.backUp()) backup.push(name)
  deepEqual(backup, ['team/web-1.meta', 'team/web-1.log', 'team/web-1.times'])
  await reopened.remove(key)
  deepEqual(await reopened.times(key), [])
  await reopened.close()
})

test('prefixes each line with the time of its first byte, however the log is divided', () => {
  const times = [
    { offset: 4, atMs: startMs },
    { offset: 12, atMs: startMs + 9_900 },
  ]
  const log = Buffer.from('old\nfirst\nand second\nlast')
  const want = '-------------------- old\n2026-06-01T10:00:00Z first\n2026-06-01T10:00:00Z and second\n2026-06-01T10:00:09Z last'
  for (const size of [1, 2, 7, 100]) {
    const prefixer = new TimestampPrefixer(0)
    let text = ''
    for (let at = 0; at < log.byteLength; at += size) text += prefixer.push(log.subarray(at, at + size), times)
    equal(text, want, `in chunks of ${size}`)
  }
})

test('an append that was rolled back leaves no time, and neither does a record that a crash cut', async () => {
  const path = join(directory, 'rolled-back')
  let state = await recoverTimes(path)
  state = await recordTime(path, state, 0, startMs)
  state = await recordTime(path, state, 100, startMs + 2_000)
  state = await recordTime(path, state, 100, startMs + 4_000)
  deepEqual(await readTimes(path), [
    { offset: 0, atMs: startMs },
    { offset: 100, atMs: startMs + 4_000 },
  ])
  writeFileSync(`${path}.times`, Buffer.alloc(5), { flag: 'a' })
  await recordTime(path, await recoverTimes(path), 200, startMs + 9_000)
  deepEqual((await readTimes(path)).at(-1), { offset: 200, atMs: startMs + 9_000 })
})

test('a log without times is read from its beginning', () => equal(offsetSince([], startMs, 50), 0))

test('the times of a week of output every second take less than 200 KB', async () => {
  const path = join(directory, 'week')
  let state = await recoverTimes(path)
  // Only appends at which a time may be recorded, so that the test is quick.
  for (let atMs = startMs; atMs < startMs + 7 * 86_400_000; atMs += 1_000 * 2 ** Math.floor(state.records / 4_096))
    state = await recordTime(path, state, atMs - startMs, atMs)
  const { size } = statSync(`${path}.times`)
  ok(size < 500_000, `${size}`)
  equal(size, state.records * 12)
})
