/** A Stack whose Runs end their workers: by a crash, after which it is stalled, and by SIGKILL, which may come from anyone. */
import { deepEqual, match } from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { isEnded, type StackSpec } from '../src/api/index.ts'
import { eventResource } from '../src/kubernetes/client/index.ts'
import { isConditionTrue } from '../src/kubernetes/object/index.ts'
import { eventually } from './support/eventually.ts'
import { makeDataDir, removeDirectory, startOarlock } from './support/oarlock-process.ts'
import { runOarlock } from './support/run-program.ts'
import { condition, isReady, StackFixture } from './support/stacks.ts'

/** A program of a Run that sends a signal to its worker, which is one of the processes above it, and waits to be ended. */
const signalWorker = (signal: string) => `
  pid=$PPID
  while [ "$pid" -gt 1 ]; do
    if tr '\\0' ' ' < /proc/$pid/cmdline | grep -q '[w]orker --name'; then kill -${signal} $pid; sleep 60; fi
    pid=$(sed 's/.*) . //' /proc/$pid/stat | cut -d ' ' -f 1)
  done
  exit 9`
const command = (script: string): StackSpec => ({
  engine: 'command',
  isolation: { level: 'Process' },
  source: { inline: { files: { a: '' } } },
  command: { apply: ['sh', '-c', script] },
})
const lossMs = 60_000

test('a Stack whose Runs crash their workers is stalled after three of them; one whose workers are killed by anyone recovers', {
  skip: process.platform !== 'linux' && 'needs /proc',
}, async () => {
  const dataDir = makeDataDir()
  const oarlock = await startOarlock(dataDir)
  try {
    const stacks = new StackFixture(oarlock.client)
    const reasonsOf = async (name: string) =>
      (await stacks.runsOf(name)).filter(isEnded).map(({ status }) => `${status?.phase} ${status?.reason ?? ''}`.trim())
    const count = join(dataDir, 'count')
    await stacks.create('crashes', command(signalWorker('SEGV')))
    await stacks.create('killed', command(`echo >> ${count}; [ $(wc -l < ${count}) -gt 4 ] || { ${signalWorker('KILL')}\n}`))

    const stalled = await stacks.until(
      'crashes',
      'to be stalled',
      stack => isConditionTrue(stack.status?.conditions, 'Stalled'),
      2 * lossMs,
    )
    const { reason, message = '' } = condition(stalled, 'Stalled') ?? {}
    deepEqual([reason, await reasonsOf('crashes')], ['WorkerCrashed', Array(3).fill('Lost WorkerCrashed')])
    match(message, /The last 3 Runs crashed their workers\. .*was ended by SIGSEGV.*request a Run: oarlock run crashes -n default$/)

    await stacks.until('killed', 'Ready', isReady, 4 * lossMs)
    deepEqual(await reasonsOf('killed'), [...Array(4).fill('Lost WorkerLost'), 'Succeeded'])

    // Runs that end their workers before these have reported them are no failed starts: those would delay the other Stacks of the pool.
    const { items: events } = await oarlock.client.resource(eventResource).listAll()
    deepEqual(
      events.filter(({ involvedObject }) => involvedObject?.kind === 'WorkerPool').map(({ message }) => message),
      [],
    )

    // A requested Run is attempted, and a change of the spec makes the Stack Ready.
    const run = await runOarlock(['run', 'crashes', '--kubeconfig', oarlock.kubeconfig, '-n', 'default'])
    deepEqual([run.code, run.stderr], [0, ''])
    await eventually(async () => (await reasonsOf('crashes')).length === 4, 'the requested Run to be lost', 2 * lossMs)
    await stacks.patch('crashes', { spec: { command: { apply: ['true'] } } })
    await stacks.until('crashes', 'to be Ready', isReady, 2 * lossMs)
  } finally {
    await oarlock.stop()
    removeDirectory(dataDir)
  }
})
