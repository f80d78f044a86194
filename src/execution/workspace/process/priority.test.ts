import { equal } from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { getPriority } from 'node:os'
import { test } from 'node:test'
import { lowerPriority } from './priority.ts'

test('a priority is lowered, and never raised', async () => {
  const child = spawn('sleep', ['60'], { detached: true })
  const { pid } = child
  try {
    if (pid === undefined) throw new Error('sleep did not start')
    lowerPriority(pid, 10)
    equal(getPriority(pid), 10)
    lowerPriority(pid, 5)
    equal(getPriority(pid), 10)
    lowerPriority(pid, 100)
    equal(getPriority(pid), 19)
  } finally {
    child.kill('SIGKILL')
    await once(child, 'close')
  }
})

test('a process that has ended is ignored', () => {
  lowerPriority(2 ** 22, 10)
})
