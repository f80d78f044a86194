/** Ctrl-C repeated during a shutdown of `oarlock up`. */
import { equal, match } from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { exitCodes } from '../src/cli/exit-codes.ts'
import { eventually } from './support/eventually.ts'
import { makeDataDir, removeDirectory, startOarlock } from './support/oarlock-process.ts'
import { StackFixture } from './support/stacks.ts'

test('a second Ctrl-C interrupts Runs, exits with 130, and the Run names it as the reason', async t => {
  const dataDir = makeDataDir()
  t.after(() => removeDirectory(dataDir))
  const begun = join(dataDir, 'begun')
  const untilInterrupted = `trap 'exit 1' INT TERM; touch ${begun}; while :; do sleep 0.05; done`
  const first = await startOarlock(dataDir)
  t.after(() => first.kill())
  const source = { inline: { files: { a: '' } } }
  await new StackFixture(first.client).create('slow', { engine: 'command', source, command: { apply: ['sh', '-c', untilInterrupted] } })
  await eventually(() => existsSync(begun), 'the engine to run')
  const exited = once(first.child, 'exit')
  first.child.kill('SIGINT')
  await eventually(() => /waiting for 1 worker to finish \(press Ctrl-C again to interrupt\)/.test(first.output()), 'the drain')
  first.child.kill('SIGINT')
  equal((await exited)[0], exitCodes.interrupted, first.output())
  match(first.output(), /interrupting Runs so that they save their state[\s\S]*stopped; the next start resumes/)

  const next = await startOarlock(dataDir)
  t.after(() => next.kill())
  const [run] = await new StackFixture(next.client).runsOf('slow')
  equal(run?.status?.reason, 'WorkerDrained')
  match(run?.status?.message ?? '', /^interrupted because the worker got a second signal to stop/)
})
