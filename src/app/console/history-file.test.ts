import { deepEqual, equal, ok } from 'node:assert/strict'
import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { silentLog } from '../../kubernetes/controller/index.ts'
import { HistoryFile } from './history-file.ts'

const directory = mkdtempSync(join(tmpdir(), 'oarlock-history-'))
after(() => rmSync(directory, { recursive: true, force: true }))
const nowMs = Date.parse('2026-06-02T10:00:00Z')
const log = silentLog
const open = (path: string, at = nowMs) => new HistoryFile(path, { log, nowMs: at })
const sample = (atMs: number, workers = 1) => ({ atMs, values: { workers } })

test('a history continues after a restart; damaged lines and what is older than a day are left out', () => {
  const path = join(directory, 'restart')
  const first = open(path)
  for (let index = 0; index < 10; index++) first.add(sample(nowMs + index * 10_000, index))
  const scaling = { pool: 'default', atMs: nowMs, from: 0, to: 1, min: 0, max: 2, queued: 1, busy: 0 }
  first.add({ atMs: nowMs, scaling })
  equal(statSync(path).mode & 0o777, 0o600)
  appendFileSync(path, `null\n{"atMs":"x"}\n{"atMs":1,"values":{"workers":5}}\n{"atMs":${nowMs},"values":{"workers":"5"}}\n{"atMs":17`)
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

test('a file that cannot be read or written leaves the history in memory', () => {
  const path = join(directory, 'unusable')
  mkdirSync(path)
  writeFileSync(join(path, 'x'), '')
  const file = open(path)
  file.add(sample(nowMs))
  deepEqual(file.history.facts(nowMs, 60).series.workers, [1])
})
