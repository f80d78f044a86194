import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { VirtualTimers } from '../kubernetes/testing/index.ts'
import { reportReadiness } from './report-readiness.ts'

test('a role that is ready prints what it does, and again when that changes', async () => {
  const timers = new VirtualTimers()
  const lines: string[] = []
  let reasons: string[] = ['the cache of stacks is not filled yet']
  let ready: string | undefined
  const stop = reportReadiness({ notReady: () => reasons, ready: () => ready }, line => lines.push(line), timers)
  await timers.advance(5_000)
  deepEqual(lines.splice(0), ['waiting: the cache of stacks is not filled yet'])
  reasons = []
  await timers.advance(2_000)
  deepEqual(lines.splice(0), [])
  ready = 'this process leads; waiting for a share of the Stacks'
  await timers.advance(5_000)
  deepEqual(lines.splice(0), ['ready: this process leads; waiting for a share of the Stacks'])
  ready = 'this process leads; slot 1 of the Stacks'
  await timers.advance(5_000)
  deepEqual(lines.splice(0), ['ready: this process leads; slot 1 of the Stacks'])
  reasons = ['leader election fails']
  await timers.advance(5_000)
  reasons = []
  await timers.advance(5_000)
  deepEqual(lines, [])
  stop()
  deepEqual(timers.pending, 0)
})

test('a reason of less than a second is not printed', async () => {
  const timers = new VirtualTimers()
  const lines: string[] = []
  let reasons = ['the manager is not started']
  const stop = reportReadiness({ notReady: () => reasons, ready: () => 'claiming requests' }, line => lines.push(line), timers)
  await timers.advance(900)
  reasons = []
  await timers.advance(2_000)
  stop()
  deepEqual(lines, ['ready: claiming requests'])
})
