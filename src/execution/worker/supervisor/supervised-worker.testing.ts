/** A worker process for supervisor.test.ts: connects to a supervisor, starts an engine, and acts on messages from the test. */
import { Worker as Thread } from 'node:worker_threads'
import { createProcessRunner, markShell, runMark } from '../../workspace/process/index.ts'
import type { LeaseTimings } from '../lease/lease-timings.ts'
import { bootMs } from './clock.ts'
import { SupervisorClient } from './supervisor-client.ts'
import type { SupervisedRunSpec } from './supervisor-protocol.ts'

export type SupervisedSetup = {
  timings: LeaseTimings
  cacheDir: string
  runsDir: string
  run: SupervisedRunSpec
  script: string
  savedDigest?: string
  renews: boolean
  endsInMs?: number
  /** Renewals continue while this thread is blocked, as with a heartbeat's thread. */
  renewsElsewhere?: boolean
}

const setup = JSON.parse(process.argv[2]!) as SupervisedSetup
const { timings, run } = setup
const report = (message: object): void => void process.send?.(message)
let socketPath = ''
const supervisor = new SupervisorClient({
  times: timings,
  renewedAtMs: bootMs(),
  cacheDir: setup.cacheDir,
  runsDir: setup.runsDir,
  onSocket: path => {
    socketPath = path
  },
  onLost: () => report({ kind: 'supervisor-lost' }),
})
await supervisor.ready
supervisor.renewed(bootMs())
if (setup.renews) setInterval(() => supervisor.renewed(bootMs()), timings.renewMs)
if (setup.renewsElsewhere) {
  const message = JSON.stringify({ kind: 'renewed', worker: supervisor.worker, atMs: 0 })
  const code = `const { connect } = require('node:net'); const { uptime } = require('node:os')
    const message = ${message}; const socket = connect(${JSON.stringify(socketPath)})
    setInterval(() => socket.write(JSON.stringify({ ...message, atMs: uptime() * 1000 }) + '\\n'), 50)`
  new Thread(code, { eval: true, execArgv: [] })
}
const supervised = supervisor.supervise(run)
// A pending promise does not keep a process alive; the heartbeat of a real worker does.
const alive = setInterval(() => {}, 1_000)
await supervised.armed
clearInterval(alive)
const abort = new AbortController()
const mark = markShell(runMark(run.uid)) ?? 'true'
const runner = createProcessRunner({
  runUid: run.uid,
  wrapCommand: ({ command, args, env }) => ({
    ...{ command: '/bin/sh', args: ['-c', `${mark} && exec "$@"`, 'mark', command, ...args], env: { ...env } },
    ...{ descriptors: [], release: () => {} },
  }),
  onStart: group => {
    supervised.started(group)
    report({ kind: 'started', group, supervisorPid: supervisor.pid })
  },
  onEnd: group => supervised.ended(group),
})
process.on('message', async (message: string) => {
  if (message === 'disconnect') {
    supervised.done()
    supervisor.close()
    process.exit(0)
  }
  // Blocks the event loop.
  if (message === 'block') for (const endMs = performance.now() + 60_000; performance.now() < endMs; ) {}
  if (message === 'credential') supervisor.renewCredential('renewed-token')
  if (message === 'save') supervised.saved('of what the engine wrote')
  if (message === 'interrupt') {
    supervised.interrupted()
    abort.abort()
  }
  if (message === 'kill-supervisor') {
    const before = supervisor.pid!
    process.kill(before, 'SIGKILL')
    while (supervisor.pid === before || supervisor.pid === undefined) await new Promise(resolve => setTimeout(resolve, 5))
    await supervisor.ready
    while (supervisor.pid === undefined) await new Promise(resolve => setTimeout(resolve, 5))
    report({ kind: 'new-supervisor', supervisorPid: supervisor.pid })
  }
})
const onStdoutLine = (line: string): void => report({ kind: 'line', line })
const result = await runner({ command: 'sh', args: ['-c', setup.script], cwd: run.directory, env: {}, signal: abort.signal, onStdoutLine })
if (setup.savedDigest) supervised.saved(setup.savedDigest)
report({ kind: 'ended', ...result })
