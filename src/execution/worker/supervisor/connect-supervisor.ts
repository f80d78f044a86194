import { spawn } from 'node:child_process'
import { readFileSync, readlinkSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { makeDirectories, sha256 } from '../../../kubernetes/util/index.ts'
import { modulePath } from '../../../kubernetes/util/worker-thread.ts'
import { readStartTime } from '../../workspace/process/index.ts'
import { protocolVersion } from './supervisor-protocol.ts'
import { SupervisorUnavailableError } from './supervisor-unavailable-error.ts'

/** A symlink in the supervisor's directory to the socket of the current supervisor for this version of the protocol. */
export const currentSocketName = `supervisor.v${protocolVersion}.sock`
const startLockName = `starting.v${protocolVersion}`

/** A supervisor without a reply for this long after its start has failed. */
const startTimeoutMs = 15_000
/**
 * Measured from a checkout: 81 MB RSS (38 of them its own) without the compile cache, since stripping types loads a WebAssembly
 * module; 53 MB (19) with it, the same as plain JavaScript. The cache also takes the start from 240 to 100 ms on two busy cores.
 */
const supervisorFlags = ['--max-semi-space-size=1']
/** A supervisor replies immediately, even on a busy machine within this time. */
const replyTimeoutMs = 3_000
/** The maximum length of a Unix socket's path (sockaddr_un), minus the name of a socket. */
const maxDirectoryLength = 80

/** The directory of the supervisor of all workers with this cache directory. Only its owner can access it. */
export function supervisorDirectory(cacheDir: string): string {
  const preferred = join(cacheDir, 'supervisor')
  const short = () => join(tmpdir(), `oarlock-supervisor-${process.getuid?.()}-${sha256(preferred).slice(0, 12)}`)
  const directory = preferred.length <= maxDirectoryLength ? preferred : short()
  makeDirectories(directory, 0o700)
  // The short path is in a directory that every user can write to.
  if (statSync(directory).uid !== process.getuid?.()) throw new Error(`${directory} belongs to another user; remove it`)
  return directory
}

/**
 * Connects to the host's supervisor; starts one if none is running.
 * @param timeoutMs how long a reply is awaited. Default: 15,000.
 * @throws {SupervisorUnavailableError} if none replies in this time.
 */
export async function connectToSupervisor(cacheDir: string, timeoutMs: number = startTimeoutMs): Promise<{ socket: Socket; path: string }> {
  const directory = supervisorDirectory(cacheDir)
  const startedMs = performance.now()
  const deadline = startedMs + timeoutMs
  let cause: Error | undefined
  for (let waitMs = 2; performance.now() < deadline; waitMs = Math.min(waitMs * 1.5, 50)) {
    const found = await tryConnect(directory)
    if (found) return found
    if (acquireStartLock(directory))
      startSupervisor(directory, cacheDir, error => {
        cause = error
      })
    await delay(waitMs)
  }
  const address = join(directory, currentSocketName)
  throw new SupervisorUnavailableError({ address, waitedMs: performance.now() - startedMs, cause })
}

async function tryConnect(directory: string): Promise<{ socket: Socket; path: string } | undefined> {
  let path: string
  try {
    path = join(directory, readlinkSync(join(directory, currentSocketName)))
  } catch {
    return undefined
  }
  return await new Promise(resolve => {
    const socket = connect(path)
    // The kernel accepts connections for a paused supervisor, which never replies.
    const timeout = setTimeout(() => socket.destroy(new Error('the supervisor does not reply')), replyTimeoutMs)
    socket.once('error', () => {
      clearTimeout(timeout)
      resolve(undefined)
    })
    socket.once('readable', () => {
      clearTimeout(timeout)
      socket.removeAllListeners('error')
      resolve({ socket, path })
    })
  })
}

/** Of the workers that find no supervisor, one starts it. The lock of a worker that exited, or whose supervisor did not start, is removed. */
function acquireStartLock(directory: string): boolean {
  const lock = join(directory, startLockName)
  const holder = `${process.pid} ${readStartTime(process.pid) ?? ''}`
  try {
    writeFileSync(lock, holder, { flag: 'wx', mode: 0o600 })
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  try {
    const [pid = '', startTime] = readFileSync(lock, 'utf8').split(' ')
    const isOld = Date.now() - statSync(lock).mtimeMs > startTimeoutMs / 3
    if (isOld || readStartTime(Number(pid)) !== startTime) rmSync(lock, { force: true })
  } catch {
    // The new supervisor has removed it.
  }
  return false
}

function startSupervisor(directory: string, cacheDir: string, onError: (error: Error) => void): void {
  // `detached`: in a session of its own, so that whatever ends the worker's group or terminal leaves the supervisor.
  const child = spawn(process.execPath, [...supervisorFlags, modulePath('execution/worker/supervisor/supervisor-main'), directory], {
    detached: true,
    stdio: 'ignore',
    cwd: '/',
    env: { NODE_COMPILE_CACHE: join(cacheDir, 'compile'), PATH: process.env.PATH, OARLOCK_CGROUP: process.env.OARLOCK_CGROUP },
  })
  child.on('error', onError)
  child.unref()
}

/** Called by a supervisor once it listens. */
export function removeStartLock(directory: string): void {
  rmSync(join(directory, startLockName), { force: true })
}
