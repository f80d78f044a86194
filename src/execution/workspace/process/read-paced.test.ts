import { equal, ok } from 'node:assert/strict'
import { test } from 'node:test'
import { createProcessRunner } from './process-runner.ts'

function spin(ms: number): number {
  const startMs = performance.now()
  while (performance.now() - startMs < ms);
  return performance.now() - startMs
}

test('a program that floods its output leaves most of the time of the event loop to others', async () => {
  const stop = new AbortController()
  const run = createProcessRunner({ runUid: 'flood' })
  let lines = 0
  let spentMs = 0
  let firstMs = 0
  let share = 0
  const onStdoutLine = () => {
    firstMs ||= performance.now()
    if (++lines % 1_000 === 0) spentMs += spin(5)
    if (lines !== 100_000) return
    share = spentMs / (performance.now() - firstMs)
    stop.abort()
  }
  await run({ command: 'yes', args: [], cwd: '/', env: {}, signal: stop.signal, onStdoutLine })
  ok(share > 0 && share < 0.6, `${Math.round(share * 100)} % of the time`)
})

test('what a program printed before it exited is passed on completely', async () => {
  const run = createProcessRunner({ runUid: 'rest' })
  const { signal } = new AbortController()
  let lines = 0
  const onStdoutLine = () => {
    if (++lines % 10_000 === 0) spin(2)
  }
  await run({ command: 'sh', args: ['-c', 'yes | head -n 200000'], cwd: '/', env: {}, signal, onStdoutLine })
  equal(lines, 200_000)
})
