import { deepEqual, equal, match, ok, throws } from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import {
  appendFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { mountTmpfs, tmpfsUnavailable } from '../../../test/support/mount-tmpfs.ts'
import { silentLog } from '../../kubernetes/controller/index.ts'
import { HistoryFile } from './history-file.ts'

const directory = mkdtempSync(join(tmpdir(), 'oarlock-history-'))
after(() => rmSync(directory, { recursive: true, force: true }))
const nowMs = Date.parse('2026-06-02T10:00:00Z')
const log = silentLog
/** What was logged, without the paths. */
const recorded = () => {
  const messages: string[] = []
  const record = (_fields: object, message: string) => void messages.push(message)
  return { messages, log: { ...silentLog, info: record, warn: record } as typeof silentLog }
}
const open = (path: string, at = nowMs) => new HistoryFile(path, { log, nowMs: at })
const sample = (atMs: number, workers = 1) => ({ atMs, values: { workers } })

test('a history continues after a restart; damaged lines and what is older than a day are left out', () => {
  const path = join(directory, 'restart')
  const first = open(path)
  for (let index = 0; index < 10; index++) first.add(sample(nowMs + index * 10_000, index))
  const scaling = { pool: 'default', atMs: nowMs, from: 0, to: 1, min: 0, max: 2, queued: 1, busy: 0 }
  first.add({ atMs: nowMs, scaling })
  equal(statSync(path).mode & 0o777, 0o600)
  appendFileSync(
    path,
    `null\n{"atMs":"x"}\n{"atMs":1,"values":{"workers":5}}\n{"atMs":${nowMs},"values":{"workers":"5"}}\n{"atMs":${nowMs},"scaling":{"pool":"default"}}\n{"atMs":17`,
  )
  const laterMs = nowMs + 200_000
  const second = open(path, laterMs)
  deepEqual(second.history.facts(laterMs, 60).series.workers, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
  deepEqual(second.history.poolFacts(laterMs, 60, 'default').scalings, [scaling])
  second.add(sample(laterMs, 10))
  deepEqual(open(path, laterMs).history.facts(laterMs, 60).series.workers?.at(-1), 10)
})

test('the file is bounded', () => {
  const path = join(directory, 'bounded')
  const file = open(path)
  const values = Object.fromEntries(Array.from({ length: 50 }, (_, index) => [`series-number-${index}`, index]))
  let largest = 0
  for (let index = 0; index < 4_000; index++) {
    file.add({ atMs: nowMs + index * 10_000, values })
    largest = Math.max(largest, statSync(path).size)
  }
  ok(largest < 4 * 1024 * 1024, `${largest} bytes`)
  const lines = readFileSync(path, 'utf8').trim().split('\n').length
  ok(lines < 4_000, `${lines} lines`)
})

test('a damaged file is kept aside, in place of an earlier one, and what can be read of it continues', () => {
  const path = join(directory, 'damaged')
  for (const garbage of ['\0'.repeat(4_096), '{"atMs":17', 'not of this program\n'.repeat(3)]) {
    writeFileSync(path, `${JSON.stringify(sample(nowMs - 60_000))}\n${garbage}`)
    const { messages, log } = recorded()
    const file = new HistoryFile(path, { log, nowMs })
    deepEqual(file.history.facts(nowMs, 60).series.workers, [1])
    equal(readFileSync(`${path}.damaged`, 'utf8').endsWith(garbage), true)
    equal(readFileSync(path, 'utf8'), `${JSON.stringify(sample(nowMs - 60_000))}\n`)
    match(
      messages.join('; '),
      /^the history of the console has damaged lines, which are left out; the history of the console as it was is kept here$/,
    )
  }
})

test('what is later than the clock is left out, and kept aside, because the clock may be wrong', () => {
  const path = join(directory, 'clock')
  const text = `${JSON.stringify(sample(nowMs - 60_000))}\n${JSON.stringify(sample(nowMs + 3_600_000))}\n`
  writeFileSync(path, text)
  const { messages, log } = recorded()
  const file = new HistoryFile(path, { log, nowMs })
  deepEqual(file.history.facts(nowMs, 60).series.workers, [1])
  equal(readFileSync(`${path}.damaged`, 'utf8'), text)
  match(messages.join('; '), /^the history of the console has entries that are later than the clock, which are left out; /)
})

test('a FIFO in its place does not block the start, and is not replaced', () => {
  const path = join(directory, 'fifo')
  execFileSync('mkfifo', [path])
  const { messages, log } = recorded()
  new HistoryFile(path, { log, nowMs }).add(sample(nowMs))
  ok(lstatSync(path).isFIFO())
  match(messages.join('; '), /^the history of the console cannot be read: /)
})

test('of a file that is too large the newest part is kept', () => {
  const path = join(directory, 'large')
  const line = (index: number) => `${JSON.stringify(sample(nowMs - 600_000 + index * 10_000, index))}\n`
  writeFileSync(path, Array.from({ length: 60 }, (_, index) => line(index)).join(''))
  const { messages, log } = recorded()
  const file = new HistoryFile(path, { log, nowMs, maxReadBytes: line(50).length * 10 + 5 })
  deepEqual(file.history.facts(nowMs, 60).series.workers, [50, 51, 52, 53, 54, 55, 56, 57, 58, 59])
  deepEqual(messages, [`the history of the console is larger than ${line(50).length * 10 + 5} bytes: only its newest part is kept`])
})

test('a file that cannot be read stays in its place, and its entries come before those in memory when it can be read', () => {
  const path = join(directory, 'unreadable')
  writeFileSync(`${path}.damaged`, 'an earlier one')
  symlinkSync(path, path)
  const { messages, log } = recorded()
  const file = new HistoryFile(path, { log, nowMs })
  file.add(sample(nowMs, 2))
  deepEqual(file.history.facts(nowMs, 60).series.workers, [2])
  rmSync(path)
  const stored = `${JSON.stringify(sample(nowMs - 10_000))}\n`
  writeFileSync(path, stored)
  for (let index = 3; index < 7; index++) file.add(sample(nowMs + index * 10_000, index))
  equal(readFileSync(path, 'utf8'), stored, 'a retry is one in six entries')
  const laterMs = nowMs + 70_000
  file.add(sample(laterMs, 7))
  const workers = [1, 2, 3, 4, 5, 6, 7]
  deepEqual(file.history.facts(laterMs, 60).series.workers, workers)
  deepEqual(open(path, laterMs).history.facts(laterMs, 60).series.workers, workers)
  equal(readFileSync(`${path}.damaged`, 'utf8'), 'an earlier one')
  deepEqual(messages, [
    'the history of the console cannot be read: charts start empty, and new values are in memory only',
    'the history of the console is stored again',
  ])
})

test('a damaged file that cannot be kept aside is not overwritten until it can be', () => {
  const path = join(directory, 'not-kept')
  const content = `${JSON.stringify(sample(nowMs - 10_000))}\nnot of this program\n`
  writeFileSync(path, content)
  mkdirSync(`${path}.damaged`)
  const { messages, log } = recorded()
  const file = new HistoryFile(path, { log, nowMs })
  for (let index = 0; index < 11; index++) file.add(sample(nowMs + index * 10_000, 2))
  equal(readFileSync(path, 'utf8'), content)
  rmdirSync(`${path}.damaged`)
  const laterMs = nowMs + 110_000
  file.add(sample(laterMs, 3))
  equal(readFileSync(`${path}.damaged`, 'utf8'), content)
  deepEqual(open(path, laterMs).history.facts(laterMs, 60).series.workers, [1, ...Array(11).fill(2), 3])
  deepEqual(messages, [
    'the history of the console has damaged lines, which are left out',
    'the damaged history of the console cannot be kept: new values are in memory only',
    'the history of the console as it was is kept here',
    'the history of the console is stored again',
  ])
})

test('on a full disk the history continues in memory, and is stored as a whole when there is room again', {
  skip: tmpfsUnavailable(),
}, async () => {
  const disk = mountTmpfs(256 * 1024)
  try {
    const [path, ballast] = [join(disk.path, 'history'), join(disk.path, 'ballast')]
    const { messages, log } = recorded()
    const file = new HistoryFile(path, { log, nowMs })
    const values = Object.fromEntries(Array.from({ length: 50 }, (_, index) => [`series-number-${index}`, index]))
    let count = 0
    const add = () => file.add({ atMs: nowMs + count++ * 10_000, values })
    for (let index = 0; index < 20; index++) add()
    throws(() => writeFileSync(ballast, Buffer.alloc(1024 * 1024)), /ENOSPC/)
    for (let index = 0; index < 20; index++) add()
    deepEqual(
      messages.map(message => message.split(':')[0]),
      ['the history of the console is not stored'],
    )
    equal(existsSync(`${path}.new`), false, 'no part of a file keeps the disk full')
    rmSync(ballast)
    while (messages.length < 2) add()
    equal(messages[1], 'the history of the console is stored again')
    add()
    const laterMs = nowMs + count * 10_000
    equal(open(path, laterMs).history.facts(laterMs, 60).timesMs.length, count)
    equal(existsSync(`${path}.damaged`), false)
  } finally {
    await disk.unmount()
  }
})
