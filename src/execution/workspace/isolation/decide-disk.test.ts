import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decideDisk, isMeasurementDue } from './decide-disk.ts'
import type { DiskUsage } from './disk-usage.ts'

const mebibyte = 2 ** 20
const limit = 100 * mebibyte
const interruption = { atMs: 0, bytes: 101 * mebibyte }
const problem = '"work/d" cannot be read (EACCES)'
const processProblem = 'the open files of a process cannot be read'

for (const { name, usage = {}, previous, interrupted, nowMs = 1_000, want } of [
  { name: 'usage at the limit continues', usage: { bytes: limit }, want: { kind: 'continue' } },
  { name: 'usage above the limit is interrupted', usage: { bytes: limit + 1 }, want: { kind: 'interrupt' } },
  { name: 'what cannot be read is interrupted, with the reason', usage: { problem }, want: { kind: 'interrupt', problem } },
  { name: 'a process that cannot be read once continues', usage: { processProblem }, previous: { bytes: 0 }, want: { kind: 'continue' } },
  {
    name: 'a process that cannot be read twice is interrupted',
    usage: { processProblem },
    previous: { bytes: 0, processProblem },
    want: { kind: 'interrupt', problem: processProblem },
  },
  { name: 'an interrupted Run may write its state', usage: { bytes: 164 * mebibyte }, interrupted: true, want: { kind: 'continue' } },
  { name: 'an interrupted Run that writes on is killed', usage: { bytes: 166 * mebibyte }, interrupted: true, want: { kind: 'kill' } },
  {
    name: 'an interrupted Run that hides something has 10 s',
    usage: { problem },
    interrupted: true,
    nowMs: 9_999,
    want: { kind: 'continue' },
  },
  { name: 'after 10 s it is killed', usage: { problem }, interrupted: true, nowMs: 10_000, want: { kind: 'kill', problem } },
] as {
  name: string
  usage?: Partial<DiskUsage>
  previous?: DiskUsage
  interrupted?: boolean
  nowMs?: number
  want: object
}[])
  test(name, () =>
    assert.deepEqual(decideDisk({ bytes: 0, ...usage }, previous, limit, interrupted ? interruption : undefined, nowMs), want),
  )

for (const { name, last = {}, grown = {}, nowMs, want } of [
  { name: 'a quick measurement is repeated after a second', nowMs: 990, want: true },
  { name: 'not earlier', nowMs: 989, want: false },
  { name: 'a long one is followed by a pause of 20 times its duration', last: { durationMs: 500 }, nowMs: 9_999, want: false },
  { name: 'and repeated then', last: { durationMs: 500 }, nowMs: 10_000, want: true },
  {
    name: 'it is repeated earlier if the file system has grown by what the Run may still write',
    last: { durationMs: 500 },
    grown: { bytes: 51 * mebibyte },
    nowMs: 1_500,
    want: true,
  },
  { name: 'or by as many inodes', last: { durationMs: 500 }, grown: { inodes: 13_000 }, nowMs: 1_500, want: true },
  { name: 'but not if it has grown less', last: { durationMs: 500 }, grown: { bytes: 49 * mebibyte }, nowMs: 9_999, want: false },
] as { name: string; last?: object; grown?: object; nowMs: number; want: boolean }[])
  test(`time of measurements: ${name}`, () => {
    const fileSystem = { bytes: 7 * mebibyte, inodes: 7 }
    const measured = { bytes: 50 * mebibyte, endedMs: 0, durationMs: 10, fileSystem, ...last }
    const now = { bytes: fileSystem.bytes, inodes: fileSystem.inodes }
    for (const [key, value] of Object.entries(grown)) now[key as keyof typeof now] += value as number
    assert.equal(isMeasurementDue(measured, now, limit, nowMs), want)
  })
