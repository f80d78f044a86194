import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, readlinkSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { modulePath } from '../../../kubernetes/util/worker-thread.ts'
import { readStartTime } from '../../workspace/process/index.ts'

/** The link in a supervisor's directory that names the socket of the present supervisor. */
export const currentSocketName = 'supervisor.sock'
const startLockName = 'starting'

/** A supervisor that does not answer for so long after its start has failed. */
const startTimeoutMs = 15_000
/**
 * Measured from a checkout: 81 MB RSS (38 of them its own) without the compile cache, since stripping types loads a WebAssembly
 * module; 53 MB (19) with it, the same as plain JavaScript. The cache also takes the start from 240 to 100 ms on two busy cores.
 */
const supervisorFlags = ['--max-semi-space-size=1']
/** A supervisor greets at once; on a machine that is very busy, soon. */
const replyTimeoutMs = 3_000
/** The longest path a Unix socket may have (sockaddr_un), less a socket's name. */
const maxDirectoryLength = 80

/** Where the supervisor of all workers with this cache directory listens. Nobody else may enter it. */
export function supervisorDirectory(cacheDir: string): string {
  const near = join(cacheDir, 'supervisor')
  const short = join(tmpdir(), `oarlock-supervisor-${userInfo().uid}-${createHash('sha256').update(near).digest('hex').slice(0, 12)}`)
  const directory = near.length <= maxDirectoryLength ? near : short
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  // The short one lies where everybody may write: one that is not ours is not used.
  if (statSync(directory).uid !== userInfo().uid) throw new Error(`${directory} belongs to somebody else; remove it`)
  return directory
}

/**
 * A connection to the host's supervisor, which is started when there is none.
 * @throws {Error} when none can be had.
 */
export async function connectToSupervisor(cacheDir: string): Promise<{ socket: Socket; path: string }> {
  const directory = supervisorDirectory(cacheDir)
  const deadline = performance.now() + startTimeoutMs
  for (let waitMs = 2; performance.now() < deadline; waitMs = Math.min(waitMs * 1.5, 50)) {
    const found = await tryConnect(directory)
    if (found) return found
    if (acquireStartLock(directory)) startSupervisor(directory, cacheDir)
    await delay(waitMs)
  }
  throw new Error(`no supervisor process could be started for ${directory}`)
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
    // One that is stopped takes the connection and says nothing.
    const silent = setTimeout(() => socket.destroy(new Error('the supervisor says nothing')), replyTimeoutMs)
    socket.once('error', () => {
      clearTimeout(silent)
      resolve(undefined)
    })
    socket.once('readable', () => {
      clearTimeout(silent)
      socket.removeAllListeners('error')
      resolve({ socket, path })
    })
  })
}

/** One of the workers that find no supervisor starts it; the mark of one that died, or whose supervisor did not come, does not count. */
function acquireStartLock(directory: string): boolean {
  const mark = join(directory, startLockName)
  const me = `${process.pid} ${readStartTime(process.pid) ?? ''}`
  try {
    writeFileSync(mark, me, { flag: 'wx', mode: 0o600 })
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  try {
    const [pid = '', startTime] = readFileSync(mark, 'utf8').split(' ')
    const isOld = Date.now() - statSync(mark).mtimeMs > startTimeoutMs / 3
    if (isOld || readStartTime(Number(pid)) !== startTime) rmSync(mark, { force: true })
  } catch {
    // Removed by the supervisor that has come.
  }
  return false
}

function startSupervisor(directory: string, cacheDir: string): void {
  // `detached`: in a session of its own, so that whatever ends the worker's group or terminal leaves the supervisor.
  const child = spawn(process.execPath, [...supervisorFlags, modulePath('execution/worker/supervisor/supervisor-main'), directory], {
    detached: true,
    stdio: 'ignore',
    cwd: '/',
    env: { NODE_COMPILE_CACHE: join(cacheDir, 'compile'), PATH: process.env.PATH, OARLOCK_CGROUP: process.env.OARLOCK_CGROUP },
  })
  child.on('error', () => {})
  child.unref()
}

/** Called by a supervisor that listens. */
export function removeStartLock(directory: string): void {
  rmSync(join(directory, startLockName), { force: true })
}
