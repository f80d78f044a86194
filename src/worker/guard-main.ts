/**
 * The guard: a small process beside the worker that keeps its deadline (invariant 2) also while the worker is stopped or dead.
 * A pipe that closes without goodbye means that the worker died: the engine is interrupted, then killed in time; what it wrote
 * last is saved with the Run's epoch; the Run's directory is removed. Loads nothing but what that takes.
 */
import { createHash } from 'node:crypto'
import { constants, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { cgroupOfRun, groupExists, killRunProcesses, readStartTime, signalGroup } from '../workspace/process/index.ts'
import { decideFence, type FenceStep, type FenceTimes } from './decide-fence.ts'
import {
  type GuardAnswer,
  type GuardedRun,
  type GuardMessage,
  keeperPrefix,
  monotonicMs,
  type SalvageTarget,
  unsavedMark,
} from './guard-protocol.ts'

/** The worker acts at its own times; the guard only when it did not: SIGINT twice would cost the engine its state. */
const slackMs = 100
/** The store may be restarting: tried this long, then the directory is left for a person. */
const salvageMs = 15 * 60_000

let workerPid = 0
let times: FenceTimes = { interruptMs: 6_000, terminateMs: 7_500, killMs: 9_000 }
let renewedAtMs = monotonicMs()
let run: GuardedRun | undefined
let savedDigest: string | undefined
let sent: FenceStep = 'none'
let timer: NodeJS.Timeout | undefined
const groups = new Set<number>()

function onMessage(message: GuardMessage): void {
  switch (message.kind) {
    case 'hello':
      workerPid = message.workerPid
      times = message.times
      break
    case 'renewed':
      renewedAtMs = Math.max(renewedAtMs, message.atMs)
      break
    case 'run':
      run = message.run
      sent = 'none'
      savedDigest = undefined
      keep(run.directory)
      break
    case 'started':
      groups.add(message.processGroupId)
      // A worker that was stopped past its time and goes on: nothing of it may start any more.
      if (sent === 'SIGKILL') signalGroup(message.processGroupId, 'SIGKILL')
      break
    case 'ended':
      groups.delete(message.processGroupId)
      return
    case 'interrupted':
      if (sent === 'none') sent = 'SIGINT'
      break
    case 'saved':
      savedDigest = message.digest
      return
    case 'done':
      run = undefined
      groups.clear()
      break
    case 'goodbye':
      process.exit(0)
  }
  keepDeadline()
}

/** As long as a keeper lives, no other worker sweeps the directory away. */
function keep(directory: string): void {
  for (const pid of [process.pid, workerPid]) writeFileSync(join(directory, keeperPrefix + pid), readStartTime(pid) ?? '', { mode: 0o600 })
}

function keepDeadline(): void {
  clearTimeout(timer)
  if (!run) return
  const { interruptMs, terminateMs, killMs } = times
  const later = { interruptMs: interruptMs + slackMs, terminateMs: terminateMs + slackMs, killMs }
  const { send, againInMs } = decideFence(monotonicMs() - renewedAtMs, sent, later)
  if (send !== 'none') {
    sent = send
    signalAll(send)
  }
  if (sent === 'SIGKILL') {
    timer = setTimeout(endStoppedWorker, killMs)
    return
  }
  if (againInMs !== Number.POSITIVE_INFINITY) timer = setTimeout(keepDeadline, againInMs)
}

/** A worker that lives has let go of its Run by now. One that has not is stopped, and must not wake up and go on. */
function endStoppedWorker(): void {
  if (run && process.ppid === workerPid && monotonicMs() - renewedAtMs > times.killMs) process.kill(workerPid, 'SIGKILL')
}

function signalAll(signal: NodeJS.Signals): void {
  for (const group of groups) signalGroup(group, signal)
  // Strays, and what a worker was stopped over before it could say that it had started it.
  if (signal === 'SIGKILL' && run) void killRunProcesses(run.uid)
}

async function onWorkerDeath(): Promise<void> {
  clearTimeout(timer)
  if (!run) process.exit(0)
  if (sent === 'none') {
    sent = 'SIGINT'
    signalAll('SIGINT')
  }
  keepDeadline()
  while ([...groups].some(group => groupExists(group))) await new Promise(resolve => setTimeout(resolve, 20))
  clearTimeout(timer)
  await killRunProcesses(run.uid)
  await cgroupOfRun(run.uid)?.remove()
  const isSaved = run.salvage === undefined || (await salvage(run.salvage))
  if (isSaved) rmSync(run.directory, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 })
  else keepForPerson(run.directory)
  process.exit(0)
}

/** A new name for a file that is there: also a full disk, which may be why nothing could be saved, takes it. */
function keepForPerson(directory: string): void {
  renameSync(join(directory, keeperPrefix + process.pid), join(directory, unsavedMark))
}

/** As in salvage.ts. */
const plainFile = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK

/** True when there is nothing left to save: no state, the store has it, or keeps it aside (invariant 3). */
async function salvage({ path, ...target }: SalvageTarget): Promise<boolean> {
  try {
    if (
      createHash('sha256')
        .update(readFileSync(path, { flag: plainFile }))
        .digest('hex') === savedDigest
    )
      return true
    const { salvageState } = await import('../state/salvage.ts')
    await salvageState({ path, ...target, deadlineMs: salvageMs })
    return true
  } catch (error) {
    // No file: the engine wrote no state. Anything else leaves it where it is, for a person.
    return (error as NodeJS.ErrnoException).code === 'ENOENT'
  }
}

let text = ''
process.stdin.setEncoding('utf8')
process.stdin.on('data', (chunk: string) => {
  text += chunk
  const lines = text.split('\n')
  text = lines.pop() ?? ''
  for (const line of lines) onMessage(JSON.parse(line))
})
process.stdin.on('end', onWorkerDeath)
process.stdin.on('error', onWorkerDeath)
// The worker may be gone before it read the answer.
process.stdout.on('error', () => {})
// Only the worker, by word or by death, ends its guard.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})
const ready: GuardAnswer = { kind: 'ready' }
process.stdout.write(`${JSON.stringify(ready)}\n`)
