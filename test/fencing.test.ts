/**
 * Invariants 2 and 3 under faults: a blocked event loop, a process tree that is paused and resumed, a network that drops packets, a
 * frozen disk. Workers are real processes; server and stores run in the process of the test.
 */
import { equal, match, ok } from 'node:assert/strict'
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Run, runResource, type StackSpec, systemNamespace } from '../src/api/index.ts'
import { findRunProcesses, readStartTime } from '../src/execution/workspace/process/index.ts'
import { type Client, leaseResource } from '../src/kubernetes/client/index.ts'
import { rfc3339 } from '../src/kubernetes/object/index.ts'
import type { ApiServer } from '../src/kubernetes/server/index.ts'
import type { StateStore } from '../src/stores/state/index.ts'
import { eventually } from './support/eventually.ts'
import { processesOfRun } from './support/processes.ts'
import type { WorkerChildSettings } from './support/worker-child.ts'
import { stackUidOf, startWorkerFixture, type WorkerFixture } from './support/worker-fixture.ts'

const base = mkdtempSync(join(tmpdir(), 'oarlock-fencing-'))
const lease = { durationMs: 5_000, renewMs: 500, interruptMs: 3_900, terminateMs: 4_250, killMs: 4_600 }
let fixture: WorkerFixture
let server: ApiServer
let client: Client
let states: StateStore

before(async () => {
  await startServer('127.0.0.1')
})
// Separate, so that one that fails or times out does not prevent the others.
after(() => fixture?.close())
after(() => disk.remove())
after(() => rmSync(base, { recursive: true, force: true }))

/** Bounded: it blocks the event loop, so no limit of the test runner applies. */
const runProgram = (command: string, ...args: string[]) =>
  execFileSync(command, args, { stdio: 'pipe', timeout: 30_000, killSignal: 'SIGKILL' })

async function startServer(host: string): Promise<void> {
  await fixture?.close()
  fixture = await startWorkerFixture(join(base, `server-${host}`), { host, isLockAbandoned: true })
  ;({ server, client, states } = fixture)
}

type Network =
  | { skipReason: undefined; host: string; namespace: string; cut(): void; restore(): void; remove(): void }
  | { skipReason: string; remove(): void }

/** A network namespace that is connected only to this one, over a link that can be cut so that packets are dropped. */
function createNetwork(): Network {
  const ip = (...args: string[]) => runProgram('ip', ...args)
  const id = process.pid % 50_000
  const [namespace, here, there] = [`oarlock-${id}`, `oa${id}`, `ob${id}`]
  const subnet = `10.${200 + (id % 50)}.${Math.floor(id / 50) % 250}`
  const remove = (): void => {
    for (const args of [
      ['link', 'del', here],
      ['netns', 'del', namespace],
    ]) {
      try {
        ip(...args)
      } catch {
        // It was not created.
      }
    }
  }
  try {
    ip('netns', 'add', namespace)
    ip('link', 'add', here, 'type', 'veth', 'peer', 'name', there)
    ip('link', 'set', there, 'netns', namespace)
    ip('addr', 'add', `${subnet}.1/24`, 'dev', here)
    ip('link', 'set', here, 'up')
    for (const args of [
      ['addr', 'add', `${subnet}.2/24`, 'dev', there],
      ['link', 'set', there, 'up'],
      ['link', 'set', 'lo', 'up'],
    ])
      ip('-n', namespace, ...args)
    // Down at this end: packets from the other end are dropped without an error.
    const set = (state: string) => () => void ip('link', 'set', here, state)
    return { skipReason: undefined, host: `${subnet}.1`, namespace, cut: set('down'), restore: set('up'), remove }
  } catch (error) {
    remove()
    return { skipReason: `cannot create a network namespace: ${(error as Error).message.split('\n')[0]}`, remove }
  }
}

type Started = { worker: ChildProcess; run: Run; supervisorPids(): number[]; name: string; runsDir: string }

/** Starts a worker process with a Run whose engine is running. */
async function start(t: TestContext, script: string, more: { namespace?: string; runsDir?: string } = {}): Promise<Started> {
  const id = randomUUID().slice(0, 8)
  const name = `w-${id}`
  const cacheDir = join(base, `cache-${id}`)
  const runsDir = more.runsDir ?? join(base, `runs-${id}`)
  const token = fixture.issueWorkerToken(name)
  const settings: WorkerChildSettings = { name, server: server.url, caCertificate: server.caCertificate, token, runsDir, cacheDir, lease }
  const args = [join(import.meta.dirname, 'support', 'worker-child.ts'), JSON.stringify(settings)]
  const command = more.namespace ? ['ip', 'netns', 'exec', more.namespace, process.execPath, ...args] : [process.execPath, ...args]
  const worker = spawn(command[0] as string, command.slice(1), { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  t.after(() => worker.kill('SIGKILL'))
  const stack: StackSpec = { engine: 'command', source: { inline: { files: { a: '' } } }, command: { apply: ['sh', '-c', script] } }
  const run = await client.resource(runResource).create({
    metadata: { name: `s-${id}-1`, namespace: 'apps' },
    spec: {
      ...{
        type: 'Apply',
        epoch: 1,
        stack,
        revision: 'sha256:any',
        inputsDigest: 'any',
        reason: 'NewGeneration',
        pool: 'default',
        priority: 0,
      },
      stackRef: { name: `s-${id}`, uid: randomUUID(), generation: 1 },
      workerName: name,
    },
  })
  await eventually(async () => (await get(run)).status?.phase === 'Applying', 'the engine to start', 30_000)
  return { worker, run, name, runsDir, supervisorPids: () => ownersOf(join(runsDir, run.metadata.uid)).filter(pid => pid !== worker.pid) }
}

/** Worker and supervisor record their process ids in the Run's directory. */
function ownersOf(directory: string): number[] {
  return execFileSync('ls', [directory], { encoding: 'utf8' })
    .split('\n')
    .filter(entry => entry.startsWith('owner-'))
    .map(entry => Number(entry.slice('owner-'.length)))
}

const get = (run: Run) => client.resource(runResource).get(run.metadata.name, { namespace: 'apps' })
const renewedAt = async (name: string) =>
  Date.parse((await client.resource(leaseResource).get(name, { namespace: systemNamespace })).spec?.renewTime ?? '')
/** A child of the engine may have exited since it was listed. */
function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
const exitOf = async (worker: ChildProcess) => worker.exitCode ?? ((await once(worker, 'exit')) as [number | null])[0]

test('a worker whose event loop is blocked for twice the Lease keeps its Lease and its Run: the heartbeat has a thread of its own', async t => {
  const done = join(base, `done-${randomUUID()}`)
  const { worker, run, name } = await start(t, `while [ ! -e ${done} ]; do sleep 0.02; done; echo '{"made":1}' > $OARLOCK_STATE`)
  await eventually(async () => (await renewedAt(name)) > Date.parse(run.metadata.creationTimestamp) + lease.renewMs, 'a renewal')
  worker.send({ blockMs: 2 * lease.durationMs })
  let longestMs = 0
  for (const endMs = performance.now() + 2 * lease.durationMs; performance.now() < endMs; await sleep(100))
    longestMs = Math.max(longestMs, Date.now() - (await renewedAt(name)))
  ok(longestMs < lease.durationMs, `the Lease was not renewed for ${longestMs} ms`)
  ok(processesOfRun(run.metadata.uid).length > 0, 'the engine was stopped')
  execFileSync('touch', [done])
  equal(await exitOf(worker), 0)
  equal((await get(run)).status?.phase, 'Succeeded')
  match((await states.readVersion({ stackUid: stackUidOf(run) }))?.bytes.toString() ?? '', /made/)
})

test('invariant 3: after worker, supervisor and engine were all paused past the Lease, none of their writes is accepted and none survives', async t => {
  const { worker, run, supervisorPids, runsDir } = await start(
    t,
    // Renamed into place: the kill may truncate a file that is written in place, and then there is no state to keep as an orphan.
    `trap '' INT TERM; i=0; while :; do i=$((i+1)); echo "{\\"old\\":$i}" > next; mv next $OARLOCK_STATE; sleep 0.02; done`,
  )
  const stackUid = stackUidOf(run)
  await eventually(async () => (await states.readVersion({ stackUid })) !== undefined, 'a state')
  const engine = findRunProcesses(run.metadata.uid)
  const tree = [...supervisorPids(), worker.pid!, ...engine]
  for (const pid of tree) signal(pid, 'SIGSTOP')
  await sleep(lease.durationMs + 300)
  // As the controllers do: the Run is Lost, its lock is broken, the next epoch starts and writes.
  const status = { phase: 'Lost', reason: 'WorkerLost', finishedAt: rfc3339(Date.now()) } as const
  await client.resource(runResource).patchStatus(run.metadata.name, { status }, { namespace: 'apps' })
  const next = { kind: 'Run', runName: 'the-next', epoch: 2 } as const
  equal((await states.lock({ stackUid, holder: next }, async () => true)).kind, 'granted')
  const written = await states.writeVersion({
    stackUid,
    runName: next.runName,
    epoch: 2,
    sequence: 1,
    bytes: Buffer.from('{"new":1}'),
    kind: 'terraform',
  })
  equal(written.kind, 'accepted')
  // State that the engine wrote before the pause and that was not uploaded.
  writeFileSync(join(runsDir, run.metadata.uid, 'scratch', 'terraform.tfstate'), '{"late":1}')
  for (const pid of tree.toReversed()) signal(pid, 'SIGCONT')
  await eventually(() => findRunProcesses(run.metadata.uid).every(pid => readStartTime(pid) === undefined), 'the engine to exit')
  await exitOf(worker)
  await eventually(() => !existsSync(join(runsDir, run.metadata.uid)), 'the directory to be removed')
  equal((await states.readVersion({ stackUid }))?.bytes.toString(), '{"new":1}', 'a write of the old worker was accepted')
  equal((await get(run)).status?.phase, 'Lost', 'its status was overwritten')
  // What the engine created is not lost: it is kept as an orphan, for "oarlock state recover".
  const orphans = await states.orphans(stackUid)
  ok(
    orphans.every(({ epoch, reason }) => epoch === 1 && reason === 'StaleEpoch'),
    JSON.stringify(orphans),
  )
  ok(orphans.length > 0, 'the last state of the old Run was not kept as an orphan')
})

const disk = createDisk()

type FrozenDisk =
  | { skipReason: undefined; path: string; freeze(): void; thaw(): void; remove(): void }
  | { skipReason: string; remove(): void }

/** A file system that can be frozen: writes to it block in the kernel, where no signal reaches them. */
function createDisk(): FrozenDisk {
  const image = join(base, 'disk.img')
  const path = join(base, 'disk')
  const remove = (): void => {
    for (const [command, ...args] of [
      ['fsfreeze', '-u', path],
      ['umount', '-l', path],
    ] as [string, ...string[]][]) {
      try {
        runProgram(command, ...args)
      } catch {
        // It was not frozen or not mounted.
      }
    }
  }
  try {
    mkdirSync(path)
    runProgram('truncate', '-s', '32M', image)
    runProgram('mkfs.ext4', '-q', image)
    runProgram('mount', '-o', 'loop', image, path)
    return {
      skipReason: undefined,
      path,
      freeze: () => void runProgram('fsfreeze', '-f', path),
      thaw: () => void runProgram('fsfreeze', '-u', path),
      remove,
    }
  } catch (error) {
    remove()
    return { skipReason: `cannot create a file system that can be frozen: ${(error as Error).message.split('\n')[0]}`, remove }
  }
}

test('a worker whose disk is frozen for twice the Lease keeps its Lease, and its Run continues when the disk does', {
  skip: disk.skipReason ?? false,
}, async t => {
  if (disk.skipReason !== undefined) return t.skip(disk.skipReason)
  const runsDir = join(disk.path, 'runs')
  const done = join(base, `done-${randomUUID()}`)
  const script = `i=0; while [ ! -e ${done} ]; do i=$((i+1)); echo "{\\"at\\":$i}" > $OARLOCK_STATE; sleep 0.05; done; echo '{"at":"end"}' > $OARLOCK_STATE`
  const { worker, run, name } = await start(t, script, { runsDir })
  disk.freeze()
  try {
    let longestMs = 0
    for (const endMs = performance.now() + 2 * lease.durationMs; performance.now() < endMs; await sleep(100))
      longestMs = Math.max(longestMs, Date.now() - (await renewedAt(name)))
    ok(longestMs < lease.durationMs, `the Lease was not renewed for ${longestMs} ms`)
  } finally {
    disk.thaw()
  }
  execFileSync('touch', [done])
  equal(await exitOf(worker), 0)
  equal((await get(run)).status?.phase, 'Succeeded')
  equal((await states.readVersion({ stackUid: stackUidOf(run) }))?.bytes.toString().trim(), '{"at":"end"}')
  ok(!existsSync(join(runsDir, run.metadata.uid)))
})

test('only its owner can read the supervisor’s record of a Run, which contains a credential', async t => {
  const { run, runsDir } = await start(t, 'sleep 20')
  const directory = join(runsDir, run.metadata.uid)
  const mode = execFileSync('stat', ['-c', '%a', directory, join(directory, 'supervised-run.json')], { encoding: 'utf8' })
  equal(mode, '700\n600\n')
  ok(readFileSync(join(directory, 'supervised-run.json'), 'utf8').includes(run.metadata.uid))
})

// Last, because it replaces the server. On some machines the address of the link disappears after a while, so nothing else depends on it.
test('invariant 2: a worker whose packets are dropped stops its engine before the Lease can expire', async t => {
  const network = createNetwork()
  if (network.skipReason !== undefined) return t.skip(network.skipReason)
  t.after(network.remove)
  await startServer(network.host)
  const { worker, run, name } = await start(t, `trap 'exit 1' INT; while :; do sleep 0.02; done`, { namespace: network.namespace })
  await eventually(async () => (await renewedAt(name)) > Date.parse(run.metadata.creationTimestamp) + lease.renewMs, 'a renewal')
  network.cut()
  const cutAt = performance.now()
  await eventually(() => findRunProcesses(run.metadata.uid).length === 0, 'the engine to exit')
  const tookMs = performance.now() - cutAt
  ok(tookMs < lease.durationMs, `exited after ${tookMs} ms`)
  await sleep(Math.max(0, lease.durationMs - tookMs))
  network.restore()
  equal(await exitOf(worker), 3)
  equal((await get(run)).status?.phase, 'Applying', 'a Run that may be Lost was written')
})
