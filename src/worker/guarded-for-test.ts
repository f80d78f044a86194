/** A worker as far as its guard is concerned, for guard.test.ts: starts a guard and an engine, and does as it is told by messages. */
import { createProcessRunner } from '../workspace/process/index.ts'
import { Guard } from './guard.ts'
import { type GuardedRun, monotonicMs } from './guard-protocol.ts'
import type { LeaseTimings } from './lease-timings.ts'

export type GuardedSetup = {
  timings: LeaseTimings
  cacheDir: string
  run: GuardedRun
  script: string
  savedDigest?: string
  renews: boolean
}

const setup = JSON.parse(process.argv[2]!) as GuardedSetup
const { timings, run } = setup
const tell = (message: object): void => void process.send?.(message)
const guard = new Guard({
  times: timings,
  renewedAtMs: monotonicMs(),
  cacheDir: setup.cacheDir,
  onLost: () => tell({ kind: 'guard-lost' }),
})
await guard.ready
guard.renewed(monotonicMs())
if (setup.renews) setInterval(() => guard.renewed(monotonicMs()), timings.renewMs)
guard.watch(run)
const abort = new AbortController()
const runner = createProcessRunner({
  runUid: run.uid,
  onStart: group => {
    guard.started(group)
    tell({ kind: 'started', group, guardPid: guard.pid })
  },
  onEnd: group => guard.ended(group),
})
process.on('message', async (message: string) => {
  if (message === 'goodbye') {
    guard.done()
    guard.goodbye()
    process.exit(0)
  }
  if (message === 'interrupt') {
    guard.interrupted()
    abort.abort()
  }
  if (message === 'kill-guard') {
    const before = guard.pid!
    process.kill(before, 'SIGKILL')
    while (guard.pid === before || guard.pid === undefined) await new Promise(resolve => setTimeout(resolve, 5))
    await guard.ready
    tell({ kind: 'new-guard', guardPid: guard.pid })
  }
})
const onStdoutLine = (line: string): void => tell({ kind: 'line', line })
const result = await runner({ command: 'sh', args: ['-c', setup.script], cwd: run.directory, env: {}, signal: abort.signal, onStdoutLine })
if (setup.savedDigest) guard.saved(setup.savedDigest)
tell({ kind: 'ended', ...result })
