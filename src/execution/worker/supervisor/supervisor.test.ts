import assert from 'node:assert/strict'
import { type ChildProcess, fork, spawn } from 'node:child_process'
import { createHash, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, type TestContext, test } from 'node:test'
import { eventually } from '../../../../test/support/eventually.ts'
import { keptStatePath } from '../../../stores/state/index.ts'
import { findRunProcesses, groupExists, readStartTime } from '../../workspace/index.ts'
import type { LeaseTimings } from '../lease/lease-timings.ts'
import { bootMs } from './clock.ts'
import { currentSocketName, supervisorDirectory } from './connect-supervisor.ts'
import type { SupervisedSetup } from './supervised-worker.testing.ts'
import { SupervisedWorker } from './supervised-worker.ts'
import type { SupervisedRunSpec } from './supervisor-protocol.ts'

const base = mkdtempSync(join(tmpdir(), 'oarlock-supervisor-'))
const runsDir = join(base, 'runs')
const uploads: { url: string; epoch: string; token: string; body: string }[] = []
const server = createServer((request, response) => {
  let body = ''
  request.setEncoding('utf8')
  request.on('data', chunk => {
    body += chunk
  })
  request.on('end', () => {
    const { authorization = '', 'oarlock-epoch': epoch = '' } = request.headers
    uploads.push({ url: request.url ?? '', epoch: String(epoch), token: authorization, body })
    response.end('{"version":1}')
  })
})
before(async () => void (await once(server.listen(0, '127.0.0.1'), 'listening')))
after(() => {
  server.close()
  rmSync(base, { recursive: true, force: true })
})

/** Shorter than the defaults, so that the tests are faster. */
const timings: LeaseTimings = { durationMs: 2_000, renewMs: 200, interruptMs: 900, terminateMs: 1_200, killMs: 1_500 }
/** For a test in which no supervisor may act because a worker does not renew in time, as on a busy machine. */
const patientTimings: LeaseTimings = { durationMs: 40_000, renewMs: 200, interruptMs: 18_000, terminateMs: 24_000, killMs: 30_000 }

type Message = { kind: string; line?: string; group?: number; supervisorPid?: number; exitCode?: number | null }

async function start(
  t: TestContext,
  script: string,
  { interrupt, ...more }: Partial<SupervisedSetup> & Pick<SupervisedRunSpec, 'interrupt'> = {},
) {
  const uid = randomUUID()
  const directory = join(runsDir, uid)
  mkdirSync(directory, { recursive: true })
  const path = join(directory, 'terraform.tfstate')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/state/apps/network/run/${uid}/state`
  const endsByMs = more.endsInMs === undefined ? undefined : bootMs() + more.endsInMs
  const run = { uid, directory, endsByMs, interrupt, salvage: { url, token: 'worker-token', epoch: 7, path } }
  const setup: SupervisedSetup = { timings, cacheDir: join(base, 'cache'), runsDir, run, script, renews: true, ...more }
  const worker: ChildProcess = fork(join(import.meta.dirname, 'supervised-worker.testing.ts'), [JSON.stringify(setup)], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const messages: Message[] = []
  worker.on('message', message => messages.push(message as Message))
  const message = async (kind: string, line?: string): Promise<Message> => {
    for (;;) {
      const found = messages.find(each => each.kind === kind && (line === undefined || each.line === line))
      if (found) return found
      await once(worker, 'message')
    }
  }
  t.after(() => worker.kill('SIGKILL'))
  const { group, supervisorPid } = await message('started')
  await message('line', 'ready')
  return {
    uid,
    directory,
    path,
    worker,
    message,
    messages,
    group: group!,
    supervisorPid: supervisorPid!,
    upload: () => uploads.filter(each => each.url.includes(uid)),
  }
}

const isRunning = (pid: number): boolean => readStartTime(pid) !== undefined

const untilExited = (uid: string) => eventually(() => !findRunProcesses(uid).some(isRunning), 'the processes of the Run to exit')
const untilRemoved = (directory: string) => eventually(() => !existsSync(directory), `${directory} to be removed`)

const interruptible = 'trap "echo int >> signals; exit 1" INT; trap "echo term >> signals" TERM; echo ready; while :; do sleep 0.02; done'

test('a killed worker: its engine is interrupted immediately and once, its state saved with its epoch, its directory removed', async t => {
  const script = `trap 'echo "{\\"serial\\":2}" > terraform.tfstate; exit 1' INT; setsid sleep 100 & echo ready; while :; do sleep 0.02; done`
  const { worker, uid, group, directory, upload } = await start(t, script)
  worker.kill('SIGKILL')
  const killedAt = performance.now()
  await untilRemoved(directory)
  assert.ok(performance.now() - killedAt < timings.killMs, 'the supervisor waited for a worker that has exited')
  assert.equal(groupExists(group), false)
  assert.deepEqual(findRunProcesses(uid), [])
  assert.equal(existsSync(directory), false)
  assert.deepEqual(upload(), [
    { url: `/state/apps/network/run/${uid}/state`, epoch: '7', token: 'Bearer worker-token', body: '{"serial":2}\n' },
  ])
})

test('a killed worker: SIGINT goes to the program only, if its engine stops what it started', async t => {
  // A child in the foreground: a shell ignores SIGINT in the others, and handles its own signals when the child has ended.
  const child = `sh -c 'trap "echo child >> ../interrupted; exit" INT; trap exit TERM; echo ready; while :; do sleep 0.02; done'`
  const { worker, group, directory } = await start(t, `trap 'echo program >> ../interrupted; exit 1' INT; trap : TERM; ${child}; exit`, {
    interrupt: 'Program',
  })
  worker.kill('SIGKILL')
  await untilRemoved(directory)
  assert.equal(groupExists(group), false)
  assert.equal(readFileSync(join(runsDir, 'interrupted'), 'utf8'), 'program\n')
})

test('a killed worker and engine: other processes of the Run are killed, the last state is saved, the directory removed', async t => {
  const { worker, uid, group, directory, path, upload } = await start(t, 'setsid sleep 100 & sleep 100 & echo ready; wait')
  writeFileSync(path, '{"serial":5}')
  process.kill(-group, 'SIGKILL')
  worker.kill('SIGKILL')
  await untilRemoved(directory)
  assert.deepEqual(findRunProcesses(uid), [])
  assert.equal(existsSync(directory), false)
  assert.deepEqual(
    upload().map(({ body }) => body),
    ['{"serial":5}'],
  )
})

test('a worker killed while the store was unavailable: the version that it kept is saved if the engine left an empty file', async t => {
  const { worker, group, directory, path, upload } = await start(t, 'echo ready; sleep 100')
  writeFileSync(path, '')
  mkdirSync(join(directory, 'private'))
  writeFileSync(join(directory, keptStatePath), '{"serial":4}')
  process.kill(-group, 'SIGKILL')
  worker.kill('SIGKILL')
  await untilRemoved(directory)
  assert.deepEqual(
    upload().map(({ body }) => body),
    ['{"serial":4}'],
  )
})

test('saves the state with the credential that was renewed during the Run, even in a later supervisor', async t => {
  const recorded = (directory: string) => JSON.parse(readFileSync(join(directory, 'supervised-run.json'), 'utf8')).salvage.token as string
  for (const isReplaced of [false, true]) {
    const { worker, directory, path, upload, message } = await start(t, interruptible)
    writeFileSync(path, '{"serial":5}')
    worker.send('credential')
    await eventually(() => recorded(directory) === 'renewed-token', 'the record to contain it')
    if (isReplaced) {
      worker.send('kill-supervisor')
      await message('new-supervisor')
    }
    worker.kill('SIGKILL')
    await untilRemoved(directory)
    assert.deepEqual(
      upload().map(({ token, body }) => [token, body]),
      [['Bearer renewed-token', '{"serial":5}']],
    )
  }
})

test('a record that cannot be rewritten does not stop the Run', () => {
  const uid = randomUUID()
  const directory = join(runsDir, uid)
  mkdirSync(directory, { recursive: true })
  const worker = { id: uid, pid: process.pid, startTime: readStartTime(process.pid)! }
  const supervised = new SupervisedWorker({ worker, times: timings, runsDir, renewedAtMs: bootMs(), answer: () => {} })
  const salvage = { url: 'http://127.0.0.1:1/', token: 'worker-token', epoch: 7, path: join(directory, 'terraform.tfstate') }
  supervised.handle({ kind: 'message', message: { kind: 'run', run: { uid, directory, salvage } } })
  mkdirSync(join(directory, 'supervised-run.json.new'))
  supervised.handle({ kind: 'message', message: { kind: 'credential', token: 'renewed-token' } })
  supervised.handle({ kind: 'message', message: { kind: 'done', uid } })
  assert.equal(salvage.token, 'renewed-token')
})

test('a foreign group that a worker reports is not signalled', { skip: process.platform !== 'linux' && 'needs /proc' }, async t => {
  const processes = [randomUUID(), randomUUID()].map(uid => {
    const env = { PATH: process.env.PATH, OARLOCK_RUN_UID: uid }
    const child = spawn('sleep', ['3600'], { detached: true, stdio: 'ignore', env })
    t.after(() => child.kill('SIGKILL'))
    return { uid, child, exited: once(child, 'exit') }
  })
  const [own, foreign] = processes as [(typeof processes)[0], (typeof processes)[0]]
  const directory = join(runsDir, own.uid)
  mkdirSync(directory, { recursive: true })
  // Another process than this one, whose children both are.
  const worker = { id: own.uid, pid: process.ppid, startTime: 'of a process that has exited' }
  const supervised = new SupervisedWorker({ worker, times: timings, runsDir, renewedAtMs: bootMs(), answer: () => {} })
  supervised.handle({ kind: 'message', message: { kind: 'run', run: { uid: own.uid, directory, salvage: undefined } } })
  for (const { child } of [foreign, own])
    supervised.handle({ kind: 'message', message: { kind: 'started', uid: own.uid, processGroupId: child.pid! } })
  supervised.handle({ kind: 'workerExited' })
  await own.exited
  await untilRemoved(directory)
  await supervised.settled()
  assert.deepEqual([foreign.child.exitCode, foreign.child.signalCode], [null, null])
  assert.ok(isRunning(foreign.child.pid!))
})

test('invariant 2: an engine that ignores signals is killed before any observer may call the Lease expired', async t => {
  const { worker, group, directory } = await start(t, 'trap "" INT TERM; echo ready; while :; do sleep 0.02; done')
  const killedAt = performance.now()
  worker.kill('SIGKILL')
  await untilRemoved(directory)
  assert.equal(groupExists(group), false)
  const tookMs = performance.now() - killedAt
  assert.ok(tookMs < timings.durationMs, `took ${tookMs} ms`)
  assert.ok(tookMs > timings.killMs - 2 * timings.renewMs - 200, `${tookMs} ms: it was killed before its deadline`)
})

test('invariant 2: a paused worker: its engine is stopped in time, and the worker is killed before it can resume', async t => {
  const { worker, group, directory } = await start(t, interruptible)
  const stoppedAt = performance.now()
  worker.kill('SIGSTOP')
  // A short fixed interval, because the time is asserted.
  while (groupExists(group)) await new Promise(resolve => setTimeout(resolve, 10))
  const tookMs = performance.now() - stoppedAt
  assert.ok(tookMs > timings.interruptMs - 2 * timings.renewMs && tookMs < timings.killMs, `interrupted after ${tookMs} ms`)
  await once(worker, 'exit')
  assert.equal(worker.signalCode, 'SIGKILL')
  await untilRemoved(directory)
  assert.equal(existsSync(directory), false)
})

test('invariant 2: a paused worker: processes that left the group or were never reported are killed in time too', async t => {
  const script = 'trap "" INT TERM; setsid sh -c "trap : INT TERM; echo ready; sleep 100" & wait; sleep 100'
  const { worker, uid, group } = await start(t, script)
  assert.ok(findRunProcesses(uid).length >= 2)
  const stoppedAt = performance.now()
  worker.kill('SIGSTOP')
  // A process that exits is no process of the Run any more shortly before it has left its group.
  const remain = () => findRunProcesses(uid).some(isRunning) || groupExists(group)
  // A short fixed interval, because the time is asserted.
  while (remain()) await new Promise(resolve => setTimeout(resolve, 10))
  assert.equal(groupExists(group), false)
  const tookMs = performance.now() - stoppedAt
  assert.ok(tookMs < timings.durationMs, `took ${tookMs} ms`)
})

test('without renewals the supervisor sends SIGINT, SIGTERM and SIGKILL, and kills the worker', async t => {
  const script =
    'trap "echo int; echo int >> ../steps" INT; trap "echo term; echo term >> ../steps" TERM; echo ready; while :; do sleep 0.02; done'
  const { worker, message, group, directory } = await start(t, script, { renews: false })
  await message('line', 'int')
  await message('line', 'term')
  await once(worker, 'exit')
  assert.equal(worker.signalCode, 'SIGKILL')
  await untilRemoved(directory)
  assert.equal(groupExists(group), false)
  assert.equal(readFileSync(join(runsDir, 'steps'), 'utf8'), 'int\nterm\n')
})

test('does not interrupt an engine that its worker has interrupted', async t => {
  const script = 'trap "echo int >> ../signals-of-one; echo int" INT; echo ready; while [ ! -e stop ]; do sleep 0.02; done'
  const { worker, message, directory } = await start(t, script)
  worker.send('interrupt')
  await message('line', 'int')
  worker.kill('SIGKILL')
  writeFileSync(join(directory, 'stop'), '')
  await untilRemoved(directory)
  assert.equal(readFileSync(join(runsDir, 'signals-of-one'), 'utf8'), 'int\n')
})

test('does not upload a state that the store has', async t => {
  const savedDigest = createHash('sha256').update('{"serial":9}').digest('hex')
  const { worker, message, path, upload, directory } = await start(t, 'echo ready', { savedDigest })
  await message('ended')
  writeFileSync(path, '{"serial":9}')
  worker.kill('SIGKILL')
  await untilRemoved(directory)
  assert.deepEqual(upload(), [])
  assert.equal(existsSync(directory), false)
})

test('a killed supervisor is replaced, and the new one has the state of every Run', async t => {
  const { worker, message, group, supervisorPid, directory } = await start(t, interruptible)
  worker.send('kill-supervisor')
  const { supervisorPid: newSupervisor } = await message('new-supervisor')
  assert.notEqual(newSupervisor, supervisorPid)
  worker.kill('SIGKILL')
  await untilRemoved(directory)
  assert.equal(groupExists(group), false)
  assert.equal(existsSync(directory), false)
})

test('the supervisor keeps the directory of a worker that disconnects gracefully', async t => {
  const { worker, message, directory, upload } = await start(t, 'echo ready')
  await message('ended')
  worker.send('disconnect')
  await once(worker, 'exit')
  assert.equal(existsSync(directory), true)
  assert.deepEqual(upload(), [])
})

test('the supervisor survives SIGINT and SIGTERM, as Ctrl-C sends them to a process group', async t => {
  const { worker, supervisorPid, directory } = await start(t, interruptible)
  process.kill(supervisorPid, 'SIGINT')
  process.kill(supervisorPid, 'SIGTERM')
  worker.kill('SIGKILL')
  await untilRemoved(directory)
  assert.equal(existsSync(directory), false, 'the supervisor had exited')
})

test('the supervisor uses less than 100 MiB', async t => {
  const { worker, supervisorPid, message } = await start(t, 'echo ready')
  await message('ended')
  const rssKiB = Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${supervisorPid}/status`, 'utf8'))?.[1])
  // 53 MB with a warm compile cache; the bound leaves room for a first start without it.
  assert.ok(rssKiB < 100 * 1024, `${rssKiB} KiB`)
  worker.send('disconnect')
  await once(worker, 'exit')
})

test('one supervisor serves all workers of a host, and a killed worker does not affect another', async t => {
  const [one, other] = await Promise.all([start(t, interruptible), start(t, interruptible)])
  assert.equal(one.supervisorPid, other.supervisorPid)
  one.worker.kill('SIGKILL')
  await untilRemoved(one.directory)
  assert.equal(groupExists(other.group), true)
  other.worker.kill('SIGKILL')
  await untilRemoved(other.directory)
})

test('a connection that sends garbage is closed, and the supervisor serves the others', async t => {
  const { worker, supervisorPid, group, directory } = await start(t, interruptible)
  const socket = connect(join(supervisorDirectory(join(base, 'cache')), currentSocketName))
  socket.resume()
  socket.end('GET / HTTP/1.1\n')
  await once(socket, 'close')
  assert.equal(groupExists(group), true)
  worker.kill('SIGKILL')
  await untilRemoved(directory)
  assert.equal(isRunning(supervisorPid), true)
})

test('worker and supervisor killed together: the engine and processes that left its group are killed; the next supervisor saves the state', async t => {
  const own = { cacheDir: join(base, 'cache-of-its-own') }
  const { worker, supervisorPid, uid, directory, path, upload } = await start(
    t,
    'trap "" INT TERM; setsid sleep 100 & env -i setsid sleep 100 >/dev/null 2>&1 & sleep 100 & echo ready; wait',
    own,
  )
  writeFileSync(path, '{"serial":11}')
  process.kill(supervisorPid, 'SIGKILL')
  worker.kill('SIGKILL')
  await untilExited(uid)
  assert.equal(existsSync(directory), true, 'the directory was removed before its state was saved')
  const next = await start(t, 'echo ready', own)
  await untilRemoved(directory)
  assert.deepEqual(
    upload().map(({ body, epoch }) => [body, epoch]),
    [['{"serial":11}', '7']],
  )
  next.worker.kill('SIGKILL')
  await untilRemoved(next.directory)
})

test('worker, supervisor and engine paused past the Lease: after they resume, the supervisor kills engine and worker', async t => {
  const own = { cacheDir: join(base, 'cache-of-the-stopped') }
  const signalsPath = join(base, 'signals-of-the-stopped')
  const script = `trap "echo int >> ${signalsPath}" INT; trap "echo term >> ${signalsPath}" TERM; echo ready; while :; do sleep 0.02; done`
  const signals = () => (existsSync(signalsPath) ? readFileSync(signalsPath, 'utf8') : '')
  const { worker, supervisorPid, group, uid, directory } = await start(t, script, own)
  const all = [supervisorPid, worker.pid!, -group]
  for (const pid of all) process.kill(pid, 'SIGSTOP')
  // The Lease must really expire while every process that could report it is stopped.
  await new Promise(resolve => setTimeout(resolve, timings.durationMs + 200))
  const signalsBefore = signals()
  // The worker stays paused: the supervisor must act alone.
  for (const pid of [-group, supervisorPid]) process.kill(pid, 'SIGCONT')
  await untilExited(uid)
  assert.equal(signals(), signalsBefore, 'the engine had more time: it was not killed immediately')
  await once(worker, 'exit')
  assert.equal(worker.signalCode, 'SIGKILL')
  await untilRemoved(directory)
})

test('a worker whose event loop is blocked past the time of its Run: the engine is stopped although the Lease is renewed', async t => {
  // Long enough for the engine to be ready on a busy machine.
  const { worker, uid, message } = await start(t, interruptible, { endsInMs: 4_000, renewsElsewhere: true })
  worker.send('block')
  await untilExited(uid)
  worker.kill('SIGKILL')
  await message('started')
})

test('a paused supervisor is replaced for new workers and for those with a Run', async t => {
  const own = { cacheDir: join(base, 'cache-of-two-supervisors'), timings: patientTimings }
  const one = await start(t, interruptible, own)
  process.kill(one.supervisorPid, 'SIGSTOP')
  t.after(() => void (isRunning(one.supervisorPid) && process.kill(one.supervisorPid, 'SIGKILL')))
  // The supervisor reads this before the renewals when it resumes.
  one.worker.send('save')
  const other = await start(t, interruptible, own)
  assert.notEqual(other.supervisorPid, one.supervisorPid)
  const first = [one.supervisorPid, one.worker.pid].map(pid => `owner-${pid}`)
  const isKeptByAnother = (): boolean => readdirSync(one.directory).some(name => name.startsWith('owner-') && !first.includes(name))
  await eventually(isKeptByAnother, 'the worker with a Run to have another supervisor')
  process.kill(one.supervisorPid, 'SIGCONT')
  await eventually(() => !isRunning(one.supervisorPid), 'the resumed supervisor, which is unused, to exit')
  assert.equal(groupExists(one.group), true, 'the resumed supervisor stopped the engine of a worker that has another supervisor')
  one.worker.kill('SIGKILL')
  await untilRemoved(one.directory)
  other.worker.kill('SIGKILL')
  await untilRemoved(other.directory)
})
