import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { createHash, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, type TestContext, test } from 'node:test'
import { eventually } from '../../../../test/support/eventually.ts'
import { findRunProcesses, groupExists, readStartTime } from '../../workspace/index.ts'
import type { LeaseTimings } from '../lease/lease-timings.ts'
import { bootMs } from './clock.ts'
import type { SupervisedSetup } from './supervised-worker.testing.ts'
import { SupervisedWorker } from './supervised-worker.ts'

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

/** A tenth of the real ones, so that the tests take no ten seconds; the ratios are the same. */
const timings: LeaseTimings = { durationMs: 2_000, renewMs: 200, interruptMs: 900, terminateMs: 1_200, killMs: 1_500 }

type Message = { kind: string; line?: string; group?: number; supervisorPid?: number; exitCode?: number | null }

async function start(t: TestContext, script: string, more: Partial<SupervisedSetup> = {}) {
  const uid = randomUUID()
  const directory = join(runsDir, uid)
  mkdirSync(directory, { recursive: true })
  const path = join(directory, 'terraform.tfstate')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/state/apps/network/run/${uid}/state`
  const endsByMs = more.endsInMs === undefined ? undefined : bootMs() + more.endsInMs
  const run = { uid, directory, endsByMs, salvage: { url, token: 'worker-token', epoch: 7, path } }
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

const gone = (uid: string) => eventually(() => !findRunProcesses(uid).some(isRunning), 'the processes of the Run to be gone')
const cleaned = (directory: string) => eventually(() => !existsSync(directory), `${directory} to go`)

const polite = 'trap "echo int >> signals; exit 1" INT; trap "echo term >> signals" TERM; echo ready; while :; do sleep 0.02; done'

test('the worker is killed: the engine is interrupted at once and once, its state saved with its epoch, everything removed', async t => {
  const script = `trap 'echo "{\\"serial\\":2}" > terraform.tfstate; exit 1' INT; setsid sleep 100 & echo ready; while :; do sleep 0.02; done`
  const { worker, uid, group, directory, upload } = await start(t, script)
  worker.kill('SIGKILL')
  const killedAt = performance.now()
  await cleaned(directory)
  assert.ok(performance.now() - killedAt < timings.killMs, 'a dead worker is not waited for')
  assert.equal(groupExists(group), false)
  assert.deepEqual(findRunProcesses(uid), [])
  assert.equal(existsSync(directory), false)
  assert.deepEqual(upload(), [
    { url: `/state/apps/network/run/${uid}/state`, epoch: '7', token: 'Bearer worker-token', body: '{"serial":2}\n' },
  ])
})

test('worker and engine are both killed: strays are gone, the last state is saved, the directory removed', async t => {
  const { worker, uid, group, directory, path, upload } = await start(t, 'setsid sleep 100 & sleep 100 & echo ready; wait')
  writeFileSync(path, '{"serial":5}')
  process.kill(-group, 'SIGKILL')
  worker.kill('SIGKILL')
  await cleaned(directory)
  assert.deepEqual(findRunProcesses(uid), [])
  assert.equal(existsSync(directory), false)
  assert.deepEqual(
    upload().map(({ body }) => body),
    ['{"serial":5}'],
  )
})

test('a credential that was renewed while the Run goes on is the one that its state is saved with, also by the next supervisor', async t => {
  const recorded = (directory: string) => JSON.parse(readFileSync(join(directory, 'supervised-run.json'), 'utf8')).salvage.token as string
  for (const isReplaced of [false, true]) {
    const { worker, directory, path, upload, message } = await start(t, polite)
    writeFileSync(path, '{"serial":5}')
    worker.send('credential')
    await eventually(() => recorded(directory) === 'renewed-token', 'the record to have it, for when worker and supervisor die at once')
    if (isReplaced) {
      worker.send('kill-supervisor')
      await message('new-supervisor')
    }
    worker.kill('SIGKILL')
    await cleaned(directory)
    assert.deepEqual(
      upload().map(({ token, body }) => [token, body]),
      [['Bearer renewed-token', '{"serial":5}']],
    )
  }
})

test('a record that cannot be renewed, as on a full disk or of a Run that has just ended, ends nothing', () => {
  const uid = randomUUID()
  const directory = join(runsDir, uid)
  mkdirSync(directory, { recursive: true })
  const supervised = new SupervisedWorker({ id: uid, pid: process.pid, startTime: readStartTime(process.pid)! }, timings, () => {})
  const salvage = { url: 'http://127.0.0.1:1/', token: 'worker-token', epoch: 7, path: join(directory, 'terraform.tfstate') }
  supervised.handle({ kind: 'run', run: { uid, directory, salvage } })
  mkdirSync(join(directory, 'supervised-run.json.new'))
  supervised.handle({ kind: 'credential', token: 'renewed-token' })
  supervised.handle({ kind: 'done', uid })
  assert.equal(salvage.token, 'renewed-token')
})

test('invariant 2: an engine that heeds no signal is killed before anyone may call the Lease expired', async t => {
  const { worker, group, directory } = await start(t, 'trap "" INT TERM; echo ready; while :; do sleep 0.02; done')
  const killedAt = performance.now()
  worker.kill('SIGKILL')
  await cleaned(directory)
  assert.equal(groupExists(group), false)
  const tookMs = performance.now() - killedAt
  assert.ok(tookMs < timings.durationMs, `took ${tookMs} ms`)
  assert.ok(tookMs > timings.killMs - 2 * timings.renewMs - 200, `${tookMs} ms: it had time until its deadline`)
})

test('invariant 2: the worker is stopped: the engine is stopped in time, and the worker does not wake up again', async t => {
  const { worker, group, directory } = await start(t, polite)
  const stoppedAt = performance.now()
  worker.kill('SIGSTOP')
  while (groupExists(group)) await new Promise(resolve => setTimeout(resolve, 10))
  const tookMs = performance.now() - stoppedAt
  assert.ok(tookMs > timings.interruptMs - 2 * timings.renewMs && tookMs < timings.killMs, `interrupted after ${tookMs} ms`)
  await once(worker, 'exit')
  assert.equal(worker.signalCode, 'SIGKILL')
  await cleaned(directory)
  assert.equal(existsSync(directory), false)
})

test('invariant 2: the worker is stopped: what left the group and what was never told to the supervisor is gone in time, too', async t => {
  const script = 'trap "" INT TERM; setsid sh -c "trap : INT TERM; echo ready; sleep 100" & wait; sleep 100'
  const { worker, uid, group } = await start(t, script)
  assert.ok(findRunProcesses(uid).length >= 2)
  const stoppedAt = performance.now()
  worker.kill('SIGSTOP')
  while (findRunProcesses(uid).some(pid => readStartTime(pid) !== undefined)) await new Promise(resolve => setTimeout(resolve, 10))
  assert.equal(groupExists(group), false)
  const tookMs = performance.now() - stoppedAt
  assert.ok(tookMs < timings.durationMs, `took ${tookMs} ms`)
})

test('no renewal comes through: the supervisor acts by itself, SIGINT then SIGTERM then SIGKILL, and ends the worker', async t => {
  const script =
    'trap "echo int; echo int >> ../steps" INT; trap "echo term; echo term >> ../steps" TERM; echo ready; while :; do sleep 0.02; done'
  const { worker, message, group, directory } = await start(t, script, { renews: false })
  await message('line', 'int')
  await message('line', 'term')
  await once(worker, 'exit')
  assert.equal(worker.signalCode, 'SIGKILL')
  await cleaned(directory)
  assert.equal(groupExists(group), false)
  assert.equal(readFileSync(join(runsDir, 'steps'), 'utf8'), 'int\nterm\n')
})

test('an engine that the worker interrupted already is not interrupted a second time', async t => {
  const script = 'trap "echo int >> ../signals-of-one; echo int" INT; echo ready; while [ ! -e stop ]; do sleep 0.02; done'
  const { worker, message, directory } = await start(t, script)
  worker.send('interrupt')
  await message('line', 'int')
  worker.kill('SIGKILL')
  writeFileSync(join(directory, 'stop'), '')
  await cleaned(directory)
  assert.equal(readFileSync(join(runsDir, 'signals-of-one'), 'utf8'), 'int\n')
})

test('what the store has already is not sent again', async t => {
  const savedDigest = createHash('sha256').update('{"serial":9}').digest('hex')
  const { worker, message, path, upload, directory } = await start(t, 'echo ready', { savedDigest })
  await message('ended')
  writeFileSync(path, '{"serial":9}')
  worker.kill('SIGKILL')
  await cleaned(directory)
  assert.deepEqual(upload(), [])
  assert.equal(existsSync(directory), false)
})

test('a killed supervisor is replaced, and the new one knows everything', async t => {
  const { worker, message, group, supervisorPid, directory } = await start(t, polite)
  worker.send('kill-supervisor')
  const { supervisorPid: newSupervisor } = await message('new-supervisor')
  assert.notEqual(newSupervisor, supervisorPid)
  worker.kill('SIGKILL')
  await cleaned(directory)
  assert.equal(groupExists(group), false)
  assert.equal(existsSync(directory), false)
})

test('goodbye: the supervisor touches nothing', async t => {
  const { worker, message, directory, upload } = await start(t, 'echo ready')
  await message('ended')
  worker.send('goodbye')
  await once(worker, 'exit')
  assert.equal(existsSync(directory), true)
  assert.deepEqual(upload(), [])
})

test('signals to the worker’s own group, as Ctrl-C sends them, do not reach the supervisor', async t => {
  const { worker, supervisorPid, directory } = await start(t, polite)
  process.kill(supervisorPid, 'SIGINT')
  process.kill(supervisorPid, 'SIGTERM')
  worker.kill('SIGKILL')
  await cleaned(directory)
  assert.equal(existsSync(directory), false, 'it was still there to clean up')
})

test('the supervisor is small', async t => {
  const { worker, supervisorPid, message } = await start(t, 'echo ready')
  await message('ended')
  const rssKiB = Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${supervisorPid}/status`, 'utf8'))?.[1])
  // 53 MB with a warm compile cache; the bound leaves room for a first start without it.
  assert.ok(rssKiB < 100 * 1024, `${rssKiB} KiB`)
  worker.send('goodbye')
  await once(worker, 'exit')
})

test('one supervisor serves all workers of a host, and the death of one is not that of another', async t => {
  const [one, other] = await Promise.all([start(t, polite), start(t, polite)])
  assert.equal(one.supervisorPid, other.supervisorPid)
  one.worker.kill('SIGKILL')
  await cleaned(one.directory)
  assert.equal(groupExists(other.group), true)
  other.worker.kill('SIGKILL')
  await cleaned(other.directory)
})

test('worker and supervisor are killed at once: the engine and what left its group die with them; the next supervisor saves the state and cleans up', async t => {
  const own = { cacheDir: join(base, 'cache-of-its-own') }
  const { worker, supervisorPid, uid, directory, path, upload } = await start(
    t,
    'trap "" INT TERM; setsid sleep 100 & sleep 100 & echo ready; wait',
    own,
  )
  writeFileSync(path, '{"serial":11}')
  process.kill(supervisorPid, 'SIGKILL')
  worker.kill('SIGKILL')
  await gone(uid)
  assert.equal(existsSync(directory), true, 'nobody is there to save the state yet')
  const next = await start(t, 'echo ready', own)
  await cleaned(directory)
  assert.deepEqual(
    upload().map(({ body, epoch }) => [body, epoch]),
    [['{"serial":11}', '7']],
  )
  next.worker.kill('SIGKILL')
  await cleaned(next.directory)
})

test('worker, supervisor and engine are all stopped for longer than the Lease: when they go on, the engine is ended and so is the worker', async t => {
  const own = { cacheDir: join(base, 'cache-of-the-stopped') }
  const { worker, supervisorPid, group, uid, directory } = await start(t, 'trap "" INT TERM; echo ready; while :; do sleep 0.02; done', own)
  const all = [supervisorPid, worker.pid!, -group]
  for (const pid of all) process.kill(pid, 'SIGSTOP')
  await new Promise(resolve => setTimeout(resolve, timings.durationMs + 200))
  // The worker last: what is tested is that the supervisor does it.
  for (const pid of [-group, supervisorPid]) process.kill(pid, 'SIGCONT')
  const continuedAt = performance.now()
  await gone(uid)
  assert.ok(performance.now() - continuedAt < 1_000, `took ${performance.now() - continuedAt} ms`)
  await once(worker, 'exit')
  assert.equal(worker.signalCode, 'SIGKILL')
  await cleaned(directory)
})

test('a worker whose event loop stands still past the time of its Run: the engine is ended although the Lease is renewed', async t => {
  // Long enough for the engine to be ready on a busy machine.
  const { worker, uid, message } = await start(t, polite, { endsInMs: 4_000, renewsElsewhere: true })
  worker.send('block')
  await gone(uid)
  worker.kill('SIGKILL')
  await message('started')
})

test('a supervisor that is stopped keeps no deadline: a worker that starts gets another one, and one at work goes over to it', async t => {
  const own = { cacheDir: join(base, 'cache-of-two-supervisors') }
  const one = await start(t, polite, own)
  process.kill(one.supervisorPid, 'SIGSTOP')
  t.after(() => void (isRunning(one.supervisorPid) && process.kill(one.supervisorPid, 'SIGKILL')))
  // Lies before the renewals in what the supervisor reads when it goes on.
  one.worker.send('save')
  const other = await start(t, polite, own)
  assert.notEqual(other.supervisorPid, one.supervisorPid)
  const first = [one.supervisorPid, one.worker.pid].map(pid => `owner-${pid}`)
  const isKeptByAnother = (): boolean => readdirSync(one.directory).some(name => name.startsWith('owner-') && !first.includes(name))
  await eventually(isKeptByAnother, 'the worker at work to have another supervisor')
  process.kill(one.supervisorPid, 'SIGCONT')
  await eventually(() => !isRunning(one.supervisorPid), 'the supervisor that goes on, which nobody needs, to end')
  assert.equal(groupExists(one.group), true, 'the supervisor that goes on leaves a worker alone that has another one')
  one.worker.kill('SIGKILL')
  await cleaned(one.directory)
  other.worker.kill('SIGKILL')
  await cleaned(other.directory)
})
