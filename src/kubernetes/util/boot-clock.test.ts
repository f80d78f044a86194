import { equal } from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { bootClockMs } from './boot-clock.ts'

function virtualClock(): { uptimeMs: number; monotonicMs: number; now: () => number } {
  const clock = { uptimeMs: 50_000, monotonicMs: 7_000, now: () => 0 }
  clock.now = bootClockMs(
    () => clock.uptimeMs,
    () => clock.monotonicMs,
    true,
  )
  return clock
}

test('the time of a suspend is included', () => {
  const clock = virtualClock()
  equal(clock.now(), 50_000)
  clock.uptimeMs += 60_000
  clock.monotonicMs += 1_000
  equal(clock.now(), 110_000)
})

test('it does not go back when /proc/uptime does, and continues with the monotonic clock', () => {
  const clock = virtualClock()
  clock.now()
  clock.uptimeMs -= 830
  clock.monotonicMs += 10
  equal(clock.now(), 50_010)
  // A virtual /proc/uptime that shows another machine for a while.
  clock.uptimeMs += 3_600_000
  const jumped = clock.now()
  clock.uptimeMs -= 3_600_000
  clock.monotonicMs += 5_000
  equal(clock.now(), jumped + 5_000)
})

test('elsewhere it is the monotonic clock', () => {
  const monotonicMs = () => 5
  equal(
    bootClockMs(() => 9, monotonicMs, false),
    monotonicMs,
  )
})

const withoutDescriptors = `
  import { openSync } from 'node:fs'
  import { bootClockMs } from ${JSON.stringify(join(import.meta.dirname, 'boot-clock.ts'))}
  const now = bootClockMs()
  let latest = now()
  let opened = 0
  try {
    for (; opened < 1000; opened++) openSync('/dev/null', 'r')
  } catch {}
  for (let count = 0; count < 50; count++) {
    const next = now()
    if (next < latest) throw new Error(next + ' < ' + latest)
    latest = next
  }
  console.log(opened < 1000 ? 'exhausted' : 'not exhausted')
`

test('it does not go back while the process has no free descriptor', { skip: process.platform !== 'linux' && 'needs /proc/uptime' }, () => {
  const command = 'ulimit -n 64 && exec "$0" --input-type=module -e "$1"'
  const { stdout, stderr } = spawnSync('sh', ['-c', command, process.execPath, withoutDescriptors], { encoding: 'utf8' })
  equal(stdout, 'exhausted\n', stderr)
})
