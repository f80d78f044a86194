/**
 * The supervisor: one small process per host, beside its workers, that keeps their deadlines (invariant 2) also while they are stopped or
 * dead. A connection that closes without goodbye means that the worker died: its engines are interrupted, then killed in time; what
 * they wrote last is saved with the Run's epoch; the Run's directory is removed. Ends by itself when nobody needs it. Loads nothing
 * but what that takes.
 */
import { readlinkSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { currentSocketName, removeStartLock } from './connect-supervisor.ts'
import { sweepRunDirectories } from './run-directories.ts'
import { SupervisedWorker } from './supervised-worker.ts'
import { onJsonLines, type SupervisorMessage, type SupervisorReply, type WorkerIdentity } from './supervisor-protocol.ts'

/** One-shot workers come one after the other: the next finds it ready. */
const idleMs = 10_000
const lookEveryMs = 1_000
/** What worker and supervisor left when both were killed is looked for with the first worker, and then not more often than this. */
const sweepEveryMs = 30_000

const directory = process.argv[2]!
const socketName = `supervisor-${process.pid}.sock`
const supervisedWorkers = new Map<string, SupervisedWorker>()
const connections = new Set<Socket>()
const sweptAtMs = new Map<string, number>()
let busy = 0
let usedAtMs = performance.now()

const keyOf = ({ id, pid }: WorkerIdentity): string => `${pid} ${id}`

function onConnection(socket: Socket): void {
  connections.add(socket)
  socket.setEncoding('utf8')
  let supervised: SupervisedWorker | undefined
  const answer = (message: SupervisorReply): void => void socket.write(`${JSON.stringify(message)}\n`)
  const handle = (message: Parameters<SupervisedWorker['handle']>[0]): void => {
    try {
      supervised?.handle(message)
    } catch {
      // Such as a full disk: what cannot be supervised does not run. The worker finds itself without a supervisor, and its Runs are ended.
      socket.destroy()
    }
  }
  onJsonLines<SupervisorMessage>(socket as unknown as Parameters<typeof onJsonLines>[0], message => {
    switch (message.kind) {
      case 'hello':
        supervised = new SupervisedWorker(message.worker, message.times, answer)
        supervisedWorkers.set(keyOf(message.worker), supervised)
        void sweep(message.runsDir)
        return
      case 'renewed':
        supervisedWorkers.get(keyOf(message.worker))?.renewed(message.atMs)
        if (supervised) answer({ kind: 'alive' })
        return
      case 'goodbye':
        if (supervised) {
          supervisedWorkers.delete(keyOf(supervised.worker))
          void track(supervised.release())
        }
        supervised = undefined
        return
      default:
        handle(message)
    }
  })
  // A worker that dies while it is written to is only one that died.
  socket.on('error', () => {})
  answer({ kind: 'ready', pid: process.pid })
  socket.on('close', () => {
    connections.delete(socket)
    usedAtMs = performance.now()
    if (supervised) void track(onWorkerExit(supervised))
  })
}

async function onWorkerExit(supervised: SupervisedWorker): Promise<void> {
  await supervised.onWorkerExit()
  supervisedWorkers.delete(keyOf(supervised.worker))
}

async function sweep(runsDir: string): Promise<void> {
  const lastMs = sweptAtMs.get(runsDir)
  if (lastMs !== undefined && performance.now() - lastMs < sweepEveryMs) return
  sweptAtMs.set(runsDir, performance.now())
  await track(sweepRunDirectories(runsDir, Date.now()).then(() => {}))
}

async function track(what: Promise<void>): Promise<void> {
  busy++
  // What cannot be cleaned up now is found by the next sweep.
  await what.catch(() => {})
  busy--
  usedAtMs = performance.now()
}

function isReplaced(): boolean {
  try {
    return readlinkSync(join(directory, currentSocketName)) !== socketName
  } catch {
    return true
  }
}

function exitIfUnused(): void {
  if (connections.size > 0 || supervisedWorkers.size > 0 || busy > 0) return
  const isReplacedNow = isReplaced()
  if (!isReplacedNow && performance.now() - usedAtMs < idleMs) return
  // A worker that connects in this moment finds nobody, and starts the next supervisor.
  if (!isReplacedNow) rmSync(join(directory, currentSocketName), { force: true })
  rmSync(join(directory, socketName), { force: true })
  process.exit(0)
}

// Only its workers, by word or by death, end it.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})
const server = createServer({ allowHalfOpen: false }, onConnection)
server.listen(join(directory, socketName), () => {
  // Two that were started at once serve those who found them; the link leads to the last.
  symlinkSync(socketName, join(directory, `${socketName}.link`))
  renameSync(join(directory, `${socketName}.link`), join(directory, currentSocketName))
  removeStartLock(directory)
  setInterval(exitIfUnused, lookEveryMs)
})
