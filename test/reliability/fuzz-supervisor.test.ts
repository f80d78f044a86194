/**
 * Malformed and valid messages to a real supervisor process over its socket. It must serve its workers afterwards, and must not have signalled a
 * process or written a directory that is not of a Run it was given.
 */
import { deepEqual, equal, ok } from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import fc from 'fast-check'
import { bootMs } from '../../src/execution/worker/supervisor/clock.ts'
import { connectToSupervisor } from '../../src/execution/worker/supervisor/connect-supervisor.ts'
import { readStartTime } from '../../src/execution/workspace/index.ts'
import { readStat } from '../../src/execution/workspace/process/index.ts'
import { eventually } from '../support/eventually.ts'
import { type SupervisedHost, type SupervisorConnection, supervisorConnections } from './supervisor-messages.ts'

/** The full run has 100,000: OARLOCK_FUZZ_REQUESTS=100000 node --test test/reliability/fuzz-supervisor.test.ts */
const messages = Number(process.env.OARLOCK_FUZZ_REQUESTS ?? 1_000)
const seed = Number(process.env.OARLOCK_TEST_SEED ?? 20_261)
const isFullRun = messages >= 10_000
const connections = 4

const uids = Array.from({ length: 6 }, (_, index) => `0f8fad5b-d9cb-469f-a165-70867728950${index}`)
const guardedUid = '7c9e6679-7425-40de-944b-e07fc1f90ae7'

test(`${messages} messages: the supervisor continues, and touches no foreign process and no foreign directory`, {
  timeout: 3_600_000,
}, async t => {
  const base = mkdtempSync(join(tmpdir(), 'oarlock-fuzz-supervisor-'))
  t.after(() => rmSync(base, { recursive: true, force: true }))
  const runsDir = join(base, 'runs')
  const otherDir = join(base, 'other')
  // Old and without an owner: the supervisor removes such directories of Runs.
  for (const name of ['documents', '.ssh']) makeOldDirectory(join(otherDir, name))
  makeOldDirectory(join(base, 'documents'))
  const otherContent = () =>
    [otherDir, join(otherDir, 'documents'), join(otherDir, '.ssh'), join(base, 'documents')].map(path => readdirSync(path))
  const before = otherContent()

  const { socket, path } = await connectToSupervisor(join(base, 'cache'))
  const guard = new Guard(socket)
  const supervisorPid = (await guard.reply('ready')).pid!
  t.after(() => void (readStartTime(supervisorPid) !== undefined && process.kill(supervisorPid, 'SIGKILL')))
  const foreign = sleeping(t, 'a-run-that-is-not-here')
  const guarded = sleeping(t, guardedUid)
  const worker = sleeping(t)
  // A worker with a Run, which stays supervised by its own deadline of an hour.
  mkdirSync(join(runsDir, guardedUid), { recursive: true })
  const self = { id: 'guard', pid: process.pid, startTime: readStartTime(process.pid)! }
  const times = { interruptMs: 3_600_000, terminateMs: 3_700_000, killMs: 3_800_000 }
  guard.send({ kind: 'hello', worker: self, times, runsDir, renewedAtMs: bootMs() })
  guard.send({ kind: 'run', run: { uid: guardedUid, directory: join(runsDir, guardedUid) } })
  await guard.reply('armed')
  guard.send({ kind: 'started', uid: guardedUid, processGroupId: guarded.pid })

  const host: SupervisedHost = {
    ...{ runsDir, otherDir, uids, supervisorPid, foreignPid: foreign.pid!, enginePid: sleeping(t, uids[0]).pid! },
    worker: { pid: worker.pid!, startTime: readStartTime(worker.pid!)! },
    nowMs: Math.round(bootMs()),
  }
  const descriptors = () => readdirSync(`/proc/${supervisorPid}/fd`).length
  const descriptorsBefore = descriptors()
  const rss: number[] = []
  let sent = 0
  for (let part = 0; sent < messages; part++) {
    const batch = fc.sample(supervisorConnections(host), { seed: seed + part, numRuns: Math.min(1_000, Math.ceil((messages - sent) / 5)) })
    await Promise.all(
      Array.from({ length: connections }, async () => {
        for (let next = batch.pop(); next; next = batch.pop()) {
          for (const uid of uids) makeDirectory(join(runsDir, uid))
          await attack(path, next)
          sent += next.messages
          ok(readStartTime(supervisorPid) !== undefined, `seed ${seed}: the supervisor ended after ${JSON.stringify(next).slice(0, 4_000)}`)
        }
      }),
    )
    rss.push(rssOf(supervisorPid))
  }
  // A reaper for each Run is a child of the supervisor; that of the supervised Run remains.
  await eventually(() => childrenOf(supervisorPid).length <= 1, `${childrenOf(supervisorPid).length} reapers to end`, 60_000)
  await eventually(() => descriptors() <= descriptorsBefore, `${descriptors()} open files to become ${descriptorsBefore}`)
  for (const [name, child] of Object.entries({ foreign, guarded })) ok(isRunning(child), `seed ${seed}: the ${name} process was signalled`)
  deepEqual(otherContent(), before)
  guard.send({ kind: 'renewed', worker: self, atMs: bootMs() })
  await guard.reply('alive')
  equal(
    guard.replies.some(({ kind }) => kind === 'interrupted'),
    false,
  )
  guard.send({ kind: 'done', uid: guardedUid })
  guard.send({ kind: 'disconnect' })
  socket.end()
  if (isFullRun) {
    const half = Math.floor(rss.length / 2)
    console.log(`${sent} messages, seed ${seed}; RSS of the supervisor in MB ${rss.join(' ')}`)
    ok(Math.max(...rss.slice(half)) < Math.max(...rss.slice(0, half)) * 1.25, `memory grows: ${rss}`)
  }
})

async function attack(path: string, { pieces, end }: SupervisorConnection): Promise<void> {
  const socket = connect(path).on('error', () => {})
  socket.resume()
  const closed = new Promise(resolve => socket.once('close', resolve))
  for (const piece of pieces) {
    socket.write(Buffer.from(piece, 'latin1'))
    await new Promise(setImmediate)
  }
  if (end === 'end') socket.end()
  else socket.destroySoon()
  await closed
}

/** Not `recursive`: that fails if the supervisor removes an existing directory at this moment. */
function makeDirectory(path: string): void {
  try {
    mkdirSync(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}

/** A process in a group of its own, of the Run `uid`. */
function sleeping(t: TestContext, uid?: string): ChildProcess {
  const env = { PATH: process.env.PATH, ...(uid !== undefined && { OARLOCK_RUN_UID: uid }) }
  const child = spawn('sleep', ['3600'], { detached: true, stdio: 'ignore', env })
  t.after(() => child.kill('SIGKILL'))
  return child
}

const isRunning = ({ exitCode, signalCode }: ChildProcess): boolean => exitCode === null && signalCode === null

function makeOldDirectory(path: string): void {
  mkdirSync(path, { recursive: true })
  writeFileSync(join(path, 'file'), 'x')
  const at = new Date(Date.now() - 3_600_000)
  utimesSync(path, at, at)
}

const childrenOf = (pid: number): string[] =>
  readdirSync('/proc').filter(entry => /^\d+$/.test(entry) && Number(readStat(entry)?.[1]) === pid && readStat(entry)?.[0] !== 'Z')

const rssOf = (pid: number): number => Math.round(Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1_024)

type Reply = { kind: string; pid?: number }

/** A connection that is used as a worker uses it. */
class Guard {
  readonly replies: Reply[] = []
  readonly #socket: Socket
  #text = ''

  constructor(socket: Socket) {
    this.#socket = socket
    socket.setEncoding('utf8').on('data', (chunk: string) => {
      const lines = (this.#text + chunk).split('\n')
      this.#text = lines.pop()!
      this.replies.push(...lines.map(line => JSON.parse(line) as Reply))
    })
  }

  send(message: object): void {
    this.#socket.write(`${JSON.stringify(message)}\n`)
  }

  async reply(kind: string): Promise<Reply> {
    return await eventually(() => this.replies.find(each => each.kind === kind), `the reply ${kind}`)
  }
}
