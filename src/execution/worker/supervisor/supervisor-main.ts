/**
 * The supervisor: one small process per host that enforces the deadlines of its workers (invariant 2), even while they are paused or
 * after they exited. A connection that closes without a disconnect means that the worker was killed: its engines are interrupted, then killed
 * in time; their last state is saved with the Run's epoch; the Run's directory is removed. Exits when it is unused. Imports only what
 * this needs, because its memory counts on every host.
 */
import { readlinkSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { currentSocketName, removeStartLock } from './connect-supervisor.ts'
import { parseMessage } from './parse-message.ts'
import { sweepRunDirectories } from './run-directories.ts'
import { SupervisedWorker } from './supervised-worker.ts'
import { SupervisedWorkers } from './supervised-workers.ts'
import { onJsonLines, type SupervisorReply } from './supervisor-protocol.ts'

/** One-shot workers start one after another: the next one should find it running. */
const idleMs = 10_000
const checkIntervalMs = 1_000
/** Directories of Runs whose worker and supervisor were both killed are swept with the first worker, then at most this often. */
const sweepEveryMs = 30_000
const maxSweptDirectories = 1_000
const maxUnreadBytes = 1 << 20

const directory = process.argv[2]!
const socketName = `supervisor-${process.pid}.sock`
const connections = new Set<Socket>()
const sweptAtMs = new Map<string, number>()
let busy = 0
let usedAtMs = performance.now()

const workers = new SupervisedWorkers({
  supervise: options => new SupervisedWorker(options),
  onWorker: runsDir => void sweep(runsDir),
  track: work => void track(work),
})

function onConnection(socket: Socket): void {
  connections.add(socket)
  socket.setEncoding('utf8')
  const close = (): void => void socket.destroy()
  const answer = (message: SupervisorReply): void => {
    socket.write(`${JSON.stringify(message)}\n`)
    // A worker reads its replies: they are short and few.
    if (socket.writableLength > maxUnreadBytes) close()
  }
  const { onMessage, onClose } = workers.connect(answer, close)
  const onLine = (line: object): void => {
    const message = parseMessage(line)
    if (message === undefined) close()
    else if (message !== 'unknown' && !socket.destroyed) onMessage(message)
  }
  onJsonLines<object>(socket as unknown as Parameters<typeof onJsonLines>[0], onLine, close)
  // A worker that is killed during a write is handled by `close`.
  socket.on('error', () => {})
  answer({ kind: 'ready', pid: process.pid })
  socket.on('close', () => {
    connections.delete(socket)
    usedAtMs = performance.now()
    onClose()
  })
}

async function sweep(runsDir: string): Promise<void> {
  const lastMs = sweptAtMs.get(runsDir)
  if (lastMs !== undefined && performance.now() - lastMs < sweepEveryMs) return
  if (sweptAtMs.size >= maxSweptDirectories) sweptAtMs.clear()
  sweptAtMs.set(runsDir, performance.now())
  await track(sweepRunDirectories(runsDir, Date.now()).then(() => {}))
}

async function track(what: Promise<void>): Promise<void> {
  busy++
  // A later sweep retries what failed.
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
  if (connections.size > 0 || workers.size > 0 || busy > 0) return
  const isReplacedNow = isReplaced()
  if (!isReplacedNow && performance.now() - usedAtMs < idleMs) return
  // A worker that connects at this moment finds none, and starts the next supervisor.
  if (!isReplacedNow) rmSync(join(directory, currentSocketName), { force: true })
  rmSync(join(directory, socketName), { force: true })
  process.exit(0)
}

// It exits when its workers have disconnected, not by a signal to their process group.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})
const server = createServer({ allowHalfOpen: false }, onConnection)
server.listen(join(directory, socketName), () => {
  // Such as too many open files: without a listener it would end the process.
  server.on('error', () => {})
  // Two that start at the same time both serve the workers that found them; the symlink names the last.
  symlinkSync(socketName, join(directory, `${socketName}.link`))
  renameSync(join(directory, `${socketName}.link`), join(directory, currentSocketName))
  removeStartLock(directory)
  setInterval(exitIfUnused, checkIntervalMs)
})
