/** The whole worker, in this process, against the real embedded server with real state and log stores and real engines. */
import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, type TestContext, test } from 'node:test'
import { type Run, type RunSpec, runResource, type StackSpec, stackResource, systemNamespace, workerResource } from '../src/api/index.ts'
import { defaultLeaseTimings, type LeaseTimings, type RunWorkerOptions, runWorker } from '../src/execution/worker/index.ts'
import { findRunProcesses, mutatedStackVariable, probeIsolation } from '../src/execution/workspace/index.ts'
import { type Client, configMapResource, createClient, leaseResource, secretResource } from '../src/kubernetes/client/index.ts'
import type { ApiServer } from '../src/kubernetes/server/index.ts'
import type { LogStore } from '../src/stores/log/index.ts'
import type { StateStore } from '../src/stores/state/index.ts'
import { eventually } from './support/eventually.ts'
import { skipWithout } from './support/run-program.ts'
import { keptAs, startWorkerFixture, type WorkerFixture } from './support/worker-fixture.ts'

const base = mkdtempSync(join(tmpdir(), 'oarlock-worker-'))
const runsDir = join(base, 'runs')
/** As in use, since a busy machine may let a process wait for seconds; but a Lease that was taken away is noticed soon. */
const lease: LeaseTimings = { ...defaultLeaseTimings, renewMs: 1_000 }
/** For a Lease that is to run out. */
const shortLease: LeaseTimings = { durationMs: 5_000, renewMs: 500, interruptMs: 3_000, terminateMs: 3_700, killMs: 4_500 }
let rig: WorkerFixture
let server: ApiServer
let client: Client
let states: StateStore
let logs: LogStore
let proxy: Proxy

before(async () => {
  rig = await startWorkerFixture(base, { isHolderGone: false })
  ;({ server, client, states, logs } = rig)
  proxy = await startProxy(server.port)
})

after(async () => {
  proxy?.close()
  await rig?.close()
  rmSync(base, { recursive: true, force: true })
})

type Proxy = { port: number; cut(): void; mend(): void; close(): void }

/** A network that can be cut: open connections go silent, new ones are refused. */
async function startProxy(target: number): Promise<Proxy> {
  const sockets = new Set<Socket>()
  let isCut = false
  const listener: Server = createServer(socket => {
    if (isCut) return void socket.destroy()
    const upstream = connect(target, '127.0.0.1')
    for (const each of [socket, upstream]) {
      sockets.add(each)
      each.on('error', () => {})
      each.on('close', () => {
        sockets.delete(each)
        socket.destroy()
        upstream.destroy()
      })
    }
    socket.pipe(upstream).pipe(socket)
  })
  await new Promise<void>(resolve => listener.listen(0, '127.0.0.1', resolve))
  const cut = (): void => {
    isCut = true
    for (const socket of sockets) socket.destroy()
  }
  const mend = (): void => {
    isCut = false
  }
  const close = (): void => {
    cut()
    listener.close()
  }
  return { port: (listener.address() as AddressInfo).port, cut, mend, close }
}

type Given = Partial<Omit<RunSpec, 'stack'>> & { stack: Partial<StackSpec>; stackName?: string }

/** Outputs belong to the Stack: without one they are garbage, and collected. */
async function stackUidOf(name: string): Promise<string> {
  const stacks = client.resource(stackResource)
  const existing = await stacks.getOrUndefined(name, { namespace: 'apps' })
  const spec: StackSpec = { engine: 'command', source: { inline: { files: { a: '' } } } }
  return (existing ?? (await stacks.create({ metadata: { name, namespace: 'apps' }, spec }))).metadata.uid
}

let count = 0
async function giveRun(workerName: string, { stack, stackName = `s${++count}`, ...spec }: Given): Promise<Run> {
  const epoch = spec.epoch ?? 1
  const created = await client.resource(runResource).create({
    metadata: { name: `${stackName}-${epoch}`, namespace: 'apps' },
    spec: {
      type: 'Apply',
      stackRef: { name: stackName, uid: await stackUidOf(stackName), generation: 1 },
      epoch,
      stack: { engine: 'command', source: { inline: { files: { 'main.tf': '' } } }, ...stack } as StackSpec,
      revision: 'sha256:any',
      inputsDigest: 'any',
      reason: 'NewGeneration',
      pool: 'default',
      priority: 0,
      workerName,
      ...spec,
    },
  })
  return await client.resource(runResource).patchStatus(created.metadata.name, { status: { phase: 'Assigned' } }, { namespace: 'apps' })
}

function startWorker(t: TestContext, options: Partial<RunWorkerOptions> & { viaProxy?: boolean } = {}) {
  const name = options.name ?? `w-${randomUUID().slice(0, 8)}`
  const drain = new AbortController()
  const interrupt = new AbortController()
  const said: string[] = []
  const note = (fields: object, message: string): void => void said.push(`${message} ${JSON.stringify(fields)}`)
  const token = server.issueToken({ name: `system:oarlock:worker:${name}`, groups: ['system:masters'], ttlMs: 600_000 })
  const done = (async () => {
    const address = options.viaProxy ? `https://127.0.0.1:${proxy.port}` : server.url
    const own = await createClient({ cluster: { server: address, caCertificate: server.caCertificate, token } })
    const { exitCode } = await runWorker({
      name,
      pool: 'default',
      once: true,
      client: own,
      storeUrl: server.url,
      caCertificate: server.caCertificate,
      token,
      runsDir,
      cacheDir: join(base, 'cache'),
      allowPaths: [],
      log: { info: note, warn: note },
      signal: drain.signal,
      interruptSignal: interrupt.signal,
      lease,
      idleTimeoutMs: 15_000,
      ...options,
    })
    await own.close()
    return exitCode
  })()
  done.catch(() => {})
  t.after(() => interrupt.abort())
  t.after(() => drain.abort())
  return { name, drain, interrupt, said, done }
}

const get = (run: Run) => client.resource(runResource).get(run.metadata.name, { namespace: 'apps' })
const logOf = async (run: Run) => (await logs.read({ namespace: 'apps', run: run.metadata.name }, {})).bytes.toString('utf8')
const marker = () => join(base, `marker-${randomUUID()}`)
const sh = (script: string) => ['sh', '-c', script]

async function doRun(t: TestContext, given: Given, options: Parameters<typeof startWorker>[1] = {}) {
  const worker = startWorker(t, options)
  const run = await giveRun(worker.name, given)
  equal(await worker.done, 0, worker.said.join('\n'))
  return { run: await get(run), worker }
}

test('an Apply: inputs, outputs, log, state; afterwards nothing is left but what was asked for', async t => {
  const secret = (name: string, stringData: Record<string, string>) =>
    client.resource(secretResource).create({ metadata: { name, namespace: 'apps' }, stringData })
  await secret('db', { password: 'hunter22', user: 'admin1' })
  await client.resource(configMapResource).create({ metadata: { name: 'region', namespace: 'apps' }, data: { region: 'eu', size: '1' } })
  const apply = `echo password is $OARLOCK_VAR_password and $TOKEN; echo region $OARLOCK_VAR_region size $OARLOCK_VAR_size; echo '{"url":"http://x","dsn":"db://'$OARLOCK_VAR_password'@b","key":{"value":"hidden-key","sensitive":true}}' > $OARLOCK_OUTPUTS; echo '{"made":1}' > $OARLOCK_STATE`
  const { run, worker } = await doRun(t, {
    stackName: 'first',
    stack: {
      command: { apply: sh(apply) },
      variables: { size: 3 },
      variablesFrom: [{ secretRef: { name: 'db' } }, { configMapRef: { name: 'region' } }],
      env: [{ name: 'TOKEN', secretKeyRef: { name: 'db', key: 'user' } }],
    },
  })
  const { status } = run
  equal(status?.phase, 'Succeeded', JSON.stringify(status))
  deepEqual(status?.outputs, { url: 'http://x' })
  match(status?.outputsDigest ?? '', /^sha256:[0-9a-f]{64}$/)
  equal(status?.changed, true)
  ok(status?.startedAt && status.finishedAt)
  ok((status?.log?.lines ?? 0) > 0)
  const outputs = await client.resource(secretResource).get('first-outputs', { namespace: 'apps' })
  equal(outputs.type, 'oarlock.dev/outputs')
  deepEqual(Object.fromEntries(Object.entries(outputs.data ?? {}).map(([key, value]) => [key, Buffer.from(value, 'base64').toString()])), {
    url: '"http://x"',
    dsn: '"db://hunter22@b"',
    key: '"hidden-key"',
  })
  deepEqual(
    outputs.metadata.ownerReferences?.map(({ kind, name }) => `${kind}/${name}`),
    ['Stack/first'],
  )
  const log = await logOf(run)
  match(log, /password is \*\*\* and \*\*\*/)
  match(log, /region eu size 3/)
  match(log, /outputs that contain the value of a Secret are stored as sensitive: dsn/)
  // Invariant 9: no secret value in status, log, or what the worker says.
  for (const text of [log, JSON.stringify(run.status), worker.said.join('\n')]) ok(!/hunter22|admin1|hidden-key/.test(text), text)
  const kept = await states.readVersion({ stackUid: 'apps-first' })
  equal(kept?.bytes.toString().trim(), '{"made":1}')
  equal(status?.stateVersion, kept?.version)
  equal(await states.currentLock('apps-first'), undefined)
  deepEqual(existsSync(runsDir) ? readdirSync(runsDir).filter(name => name === run.metadata.uid) : [], [])
  equal(await client.resource(workerResource).getOrUndefined(worker.name), undefined)
  equal(await client.resource(leaseResource).getOrUndefined(worker.name, { namespace: systemNamespace }), undefined)

  const taken = await doRun(t, {
    stack: {
      command: { apply: sh('echo url $OARLOCK_VAR_address key $OARLOCK_VAR_key') },
      variablesFrom: [{ stackRef: { name: 'first', outputs: { url: 'address', key: 'key' } } }],
    },
  })
  equal(taken.run.status?.phase, 'Succeeded')
  // Only outputs that are secret are masked.
  match(await logOf(taken.run), /url http:\/\/x key \*\*\*/)
})

for (const [name, stack, reason, says] of [
  [
    'a Secret that is not there',
    { variablesFrom: [{ secretRef: { name: 'nope' } }] },
    'SecretNotFound',
    /^spec\.variablesFrom\[0\]\.secretRef: Secret apps\/nope does not exist; create it/,
  ],
  [
    'a ConfigMap that is not there',
    { variablesFrom: [{ configMapRef: { name: 'nope' } }] },
    'ConfigMapNotFound',
    /^spec\.variablesFrom\[0\]\.configMapRef: ConfigMap apps\/nope does not exist/,
  ],
  [
    'a Stack without outputs',
    { variablesFrom: [{ stackRef: { name: 'nope' } }] },
    'OutputsNotFound',
    /^spec\.variablesFrom\[0\]\.stackRef: Stack apps\/nope has no outputs yet/,
  ],
  [
    'two kinds of variables in one',
    { variablesFrom: [{ secretRef: { name: 'a' }, configMapRef: { name: 'b' } }] },
    'InvalidSpec',
    /exactly one of stackRef, secretRef, configMapRef must be set, got secretRef and configMapRef/,
  ],
  [
    'a missing key',
    { env: [{ name: 'A', secretKeyRef: { name: 'keys', key: 'b' } }] },
    'KeyNotFound',
    /^spec\.env\[0\]\.secretKeyRef\.key: Secret apps\/keys has no key "b"; it has: a$/,
  ],
  [
    'a file name that leads out',
    { source: { inline: { files: { '../x': '' } } } },
    'InvalidSource',
    /^spec\.source\.inline\.files\[\.\.\/x\]: Invalid value: "\.\.\/x": may not contain "\.\."/,
  ],
  ['a path that is not allowed', { source: { path: { path: '/etc' } } }, 'SourceNotAllowed', /"\/etc" is not below an allowed directory/],
  ['a git URL that runs a program', { source: { git: { url: 'ext::sh -c id' } } }, 'InvalidSource', /may not name a remote helper/],
] as [string, Partial<StackSpec>, string, RegExp][]) {
  test(`${name} fails the Run with an error that says what to do`, async t => {
    if (reason === 'KeyNotFound')
      await client.resource(secretResource).create({ metadata: { name: 'keys', namespace: 'apps' }, stringData: { a: '1' } })
    const { run } = await doRun(t, { stack: { command: { apply: ['true'] }, ...stack } })
    equal(run.status?.phase, 'Failed')
    equal(run.status?.reason, reason)
    match(run.status?.message ?? '', says)
    equal(run.status?.retryable, reason.endsWith('NotFound'))
    equal(await states.currentLock(keptAs(run)), undefined)
  })
}

test('an engine that fails: reason, message, its state is saved all the same', async t => {
  const { run } = await doRun(t, { stack: { command: { apply: sh('echo \'{"half":1}\' > $OARLOCK_STATE; echo it broke >&2; exit 3') } } })
  equal(run.status?.phase, 'Failed')
  equal(run.status?.reason, 'ApplyFailed')
  match(run.status?.message ?? '', /exit|3|broke/)
  match((await states.readVersion({ stackUid: keptAs(run) }))?.bytes.toString() ?? '', /half/)
})

test('cancel: SIGINT to the engine, then Canceled; state saved, lock free, nothing runs', async t => {
  const started = marker()
  const worker = startWorker(t)
  const given = await giveRun(worker.name, {
    stack: {
      command: {
        apply: sh(`trap 'echo "{\\"saved\\":1}" > $OARLOCK_STATE; echo int; exit 1' INT; touch ${started}; while :; do sleep 0.02; done`),
      },
    },
  })
  await eventually(() => existsSync(started), 'the engine to start')
  equal((await states.currentLock(keptAs(given)))?.holder.kind, 'Run')
  await client.resource(runResource).patch(given.metadata.name, { spec: { cancel: true } }, { type: 'merge', namespace: 'apps' })
  equal(await worker.done, 0)
  const run = await get(given)
  equal(run.status?.phase, 'Canceled', JSON.stringify(run.status))
  equal(run.status?.retryable, false)
  match((await states.readVersion({ stackUid: keptAs(given) }))?.bytes.toString() ?? '', /saved/)
  equal(await states.currentLock(keptAs(given)), undefined)
  deepEqual(findRunProcesses(run.metadata.uid), [])
})

test('invariant 1: what an earlier Run of the Stack left behind, with its supervisor dead or stopped, is killed before the engine starts', async t => {
  const left = async (stackUid: string) => {
    const child = spawn('sleep', ['100'], { env: { PATH: process.env.PATH, OARLOCK_RUN_UID: 'earlier', [mutatedStackVariable]: stackUid } })
    t.after(() => child.kill('SIGKILL'))
    await once(child, 'spawn')
    return { pid: child.pid!, isAlive: () => child.exitCode === null && child.signalCode === null }
  }
  const mine = await left(await stackUidOf('left-behind'))
  const anothers = await left(randomUUID())
  const plan = await doRun(t, { stackName: 'left-behind', type: 'Plan', stack: { command: { apply: ['true'] } } })
  equal(plan.run.status?.phase, 'Succeeded')
  ok(mine.isAlive(), 'a Plan writes nothing and needs nobody gone')
  const alive = `if kill -0 ${mine.pid} 2>/dev/null; then echo alive; else echo gone; fi`
  const { run } = await doRun(t, { stackName: 'left-behind', epoch: 2, stack: { command: { apply: sh(alive) } } })
  equal(run.status?.phase, 'Succeeded')
  match(await logOf(run), /killed 1 process of an earlier Run of the Stack[\s\S]*gone/)
  ok(anothers.isAlive())
})

test('canceled before it began: nothing is started', async t => {
  const started = marker()
  const { run } = await doRun(t, { cancel: true, stack: { command: { apply: ['touch', started] } } })
  equal(run.status?.phase, 'Canceled')
  equal(existsSync(started), false)
})

test('a Run that takes longer than spec.timeout is interrupted and Failed', async t => {
  const { run } = await doRun(t, { stack: { timeout: '300ms', command: { apply: ['sleep', '100'] } } })
  equal(run.status?.phase, 'Failed')
  equal(run.status?.reason, 'Timeout')
  match(run.status?.message ?? '', /did not finish within 300ms \(spec\.timeout\)/)
  equal(run.status?.retryable, true)
})

test('invariant 4: a lock that somebody holds is not broken; the message names them', async t => {
  const stackUid = 'apps-held'
  const holder = { kind: 'User', id: 'lock-1', who: 'ada@laptop', info: { ID: 'lock-1' } } as const
  equal((await states.lock({ stackUid, holder }, async () => false)).kind, 'granted')
  const { run } = await doRun(t, { stackName: 'held', stack: { command: { apply: ['true'] } } })
  equal(run.status?.reason, 'StateLocked')
  match(run.status?.message ?? '', /ada@laptop/)
  equal(run.status?.retryable, true)
  equal((await states.currentLock(stackUid))?.holder.kind, 'Person')
})

test('an engine that is not installed: EngineNotFound, with what was looked for and how to get it', async t => {
  const path = process.env.PATH
  t.after(() => {
    process.env.PATH = path
  })
  const worker = startWorker(t)
  process.env.PATH = '/nowhere'
  const given = await giveRun(worker.name, { stack: { engine: 'opentofu' } })
  equal(await worker.done, 0)
  process.env.PATH = path
  const { status } = await get(given)
  equal(status?.reason, 'EngineNotFound')
  equal(status?.retryable, false)
  match(status?.message ?? '', /tofu/)
})

test('an engine whose version changed since the worker said it is not run in another one than the Stack requires', async t => {
  // As tfenv and its like: the program stays the same and starts another version.
  const [program, version] = [marker(), marker()]
  const answer = `{"terraform_version":"'$(cat ${version})'","platform":"linux_amd64"}`
  writeFileSync(program, `#!/bin/sh\n[ "$1" = version ] && echo '${answer}' && exit 0\necho "$*" >> ${version}.asked\nexit 1\n`, {
    mode: 0o755,
  })
  writeFileSync(version, '1.9.2')
  process.env.OARLOCK_TOFU = program
  t.after(() => {
    delete process.env.OARLOCK_TOFU
  })
  const capabilities = { labels: {}, engines: { opentofu: '1.9.2' }, capacity: undefined, isolation: undefined }
  const worker = startWorker(t, { once: false, capabilities })
  const end = async (engineVersion?: string) => {
    const run = await giveRun(worker.name, { stack: { engine: 'opentofu', ...(engineVersion && { placement: { engineVersion } }) } })
    return await eventually(async () => {
      const { status } = await get(run)
      return status?.finishedAt !== undefined && status
    }, 'the Run to end')
  }
  equal((await end('~> 1.9')).reason, 'InitFailed', 'it was started')
  rmSync(`${version}.asked`)
  writeFileSync(version, '1.8.0')
  const { reason, message, retryable } = await end('~> 1.9')
  equal(reason, 'EngineVersionMismatch')
  match(message ?? '', /^\S+ on worker \S+ is opentofu 1\.8\.0, spec\.placement\.engineVersion requires ~> 1\.9$/)
  equal(retryable, true, 'another worker may have it')
  equal(existsSync(`${version}.asked`), false, 'it was not started')
  const engines = async () => (await client.resource(workerResource).get(worker.name)).status?.engines
  await eventually(async () => (await engines())?.opentofu === '1.8.0', 'the worker to say so, and get no more such Runs')
  equal((await end()).reason, 'InitFailed', 'any version will do')
  worker.drain.abort()
  equal(await worker.done, 0)
})

test('drain: an idle worker goes; a busy one finishes its Run first', async t => {
  const idle = startWorker(t)
  await eventually(
    async () => (await client.resource(workerResource).getOrUndefined(idle.name))?.status?.phase === 'Ready',
    'the worker to be Ready',
  )
  idle.drain.abort()
  equal(await idle.done, 0)
  equal(await client.resource(workerResource).getOrUndefined(idle.name), undefined)

  const [started, stop] = [marker(), marker()]
  const busy = startWorker(t)
  const given = await giveRun(busy.name, {
    stack: { command: { apply: sh(`touch ${started}; while [ ! -e ${stop} ]; do sleep 0.02; done`) } },
  })
  await eventually(() => existsSync(started), 'the engine to start')
  busy.drain.abort()
  await eventually(async () => (await client.resource(workerResource).get(busy.name)).status?.phase === 'Draining', 'the worker to say so')
  equal((await get(given)).status?.phase, 'Applying')
  writeFileSync(stop, '')
  equal(await busy.done, 0)
  equal((await get(given)).status?.phase, 'Succeeded')
})

test('a drain that is taken back while a Run goes on: the worker stays, and takes the next Run', async t => {
  const [started, stop] = [marker(), marker()]
  const worker = startWorker(t, { once: false })
  const given = await giveRun(worker.name, {
    stack: { command: { apply: sh(`touch ${started}; while [ ! -e ${stop} ]; do sleep 0.02; done`) } },
  })
  await eventually(() => existsSync(started), 'the engine to start')
  const drain = async (isDraining: boolean) => {
    await client.resource(workerResource).patch(worker.name, { spec: { drain: isDraining } }, { type: 'merge' })
    await eventually(
      async () => ((await client.resource(workerResource).get(worker.name)).status?.phase === 'Draining') === isDraining,
      `the worker to say that it drains: ${isDraining}`,
    )
  }
  await drain(true)
  await drain(false)
  equal((await client.resource(workerResource).get(worker.name)).status?.reason, undefined)
  writeFileSync(stop, '')
  const next = await giveRun(worker.name, { stack: { command: { apply: ['true'] } } })
  for (const run of [given, next]) await eventually(async () => (await get(run)).status?.phase === 'Succeeded', 'its Runs to succeed')
  await client.resource(workerResource).patch(worker.name, { spec: { drain: true } }, { type: 'merge' })
  equal(await worker.done, 0)
})

test('invariant 8: the second signal, or the end of the grace time, interrupts the engine, which saves its state', async t => {
  const script = (started: string) =>
    sh(`trap 'echo "{\\"saved\\":1}" > $OARLOCK_STATE; exit 1' INT; touch ${started}; while :; do sleep 0.02; done`)
  const end = async (how: 'signal' | 'grace') => {
    const started = marker()
    const worker = startWorker(t, { drainGraceMs: how === 'grace' ? 200 : 60_000 })
    const given = await giveRun(worker.name, { stack: { command: { apply: script(started) } } })
    await eventually(() => existsSync(started), 'the engine to start')
    worker.drain.abort()
    if (how === 'signal') worker.interrupt.abort()
    equal(await worker.done, 0)
    const { status } = await get(given)
    equal(status?.reason, 'WorkerDrained')
    equal(status?.retryable, true)
    match((await states.readVersion({ stackUid: keptAs(given) }))?.bytes.toString() ?? '', /saved/)
  }
  await end('signal')
  await end('grace')
})

test('a one-shot worker that is given nothing ends; a taken name is refused', async t => {
  const first = startWorker(t, { idleTimeoutMs: 700 })
  await eventually(
    async () => (await client.resource(workerResource).getOrUndefined(first.name))?.status?.phase === 'Ready',
    'the worker to be Ready',
  )
  const second = startWorker(t, { name: first.name })
  equal(await second.done, 4)
  match(second.said.join('\n'), /is taken; choose another with --name/)
  ok(await client.resource(leaseResource).getOrUndefined(first.name, { namespace: systemNamespace }), 'the refused one touched nothing')
  equal(await first.done, 0)
})

test('invariant 2: cut off from the API, the engine is stopped before the Lease can expire; the Run is not written, its state is saved', async t => {
  const started = marker()
  const worker = startWorker(t, { viaProxy: true, lease: shortLease })
  const apply = sh(`trap 'echo "{\\"saved\\":1}" > $OARLOCK_STATE; exit 1' INT; touch ${started}; while :; do sleep 0.02; done`)
  const given = await giveRun(worker.name, { stack: { command: { apply } } })
  await eventually(() => existsSync(started), 'the engine to start')
  await eventually(async () => (await get(given)).status?.phase === 'Applying', 'Applying')
  const renewedAt = async () => (await client.resource(leaseResource).get(worker.name, { namespace: systemNamespace })).spec?.renewTime
  const before = await renewedAt()
  await eventually(async () => (await renewedAt()) !== before, 'a renewal')
  proxy.cut()
  t.after(() => proxy.mend())
  const cutAt = performance.now()
  await eventually(() => findRunProcesses(given.metadata.uid).length === 0, 'the engine to be gone')
  const tookMs = performance.now() - cutAt
  ok(tookMs > shortLease.interruptMs - 2 * shortLease.renewMs && tookMs < shortLease.durationMs, `gone after ${tookMs} ms`)
  equal(await worker.done, 3, worker.said.join('\n'))
  proxy.mend()
  equal((await get(given)).status?.phase, 'Applying', 'a Run that may be Lost is not written')
  match((await states.readVersion({ stackUid: keptAs(given) }))?.bytes.toString() ?? '', /saved/)
  await eventually(() => !existsSync(join(runsDir, given.metadata.uid)), 'the directory to go')
})

test('an API that is away for less than the Lease harms nothing', async t => {
  const [started, stop] = [marker(), marker()]
  const worker = startWorker(t, { viaProxy: true })
  const given = await giveRun(worker.name, {
    stack: { command: { apply: sh(`touch ${started}; while [ ! -e ${stop} ]; do sleep 0.02; done`) } },
  })
  await eventually(() => existsSync(started), 'the engine to start')
  proxy.cut()
  writeFileSync(stop, '')
  await new Promise(resolve => setTimeout(resolve, 400))
  proxy.mend()
  equal(await worker.done, 0, worker.said.join('\n'))
  equal((await get(given)).status?.phase, 'Succeeded')
})

for (const [name, disturb] of [
  [
    'a newer epoch (invariant 3)',
    async (run: Run) => {
      const stackUid = keptAs(run)
      await states.unlock({ stackUid, holder: { kind: 'Run', runName: run.metadata.name, epoch: run.spec.epoch } })
      await states.lock({ stackUid, holder: { kind: 'Run', runName: 'newer', epoch: run.spec.epoch + 1 } }, async () => true)
    },
  ],
  [
    'a Run that was declared Lost',
    async (run: Run) => {
      await client.resource(runResource).patchStatus(run.metadata.name, { status: { phase: 'Lost' } }, { namespace: 'apps' })
    },
  ],
  [
    'a Run that was deleted',
    async (run: Run) => {
      await client.resource(runResource).delete(run.metadata.name, { namespace: 'apps' })
    },
  ],
  [
    'a Lease that was taken away',
    async (run: Run) => {
      await client.resource(leaseResource).delete(run.spec.workerName as string, { namespace: systemNamespace })
    },
  ],
] as [string, (run: Run) => Promise<void>][]) {
  test(`${name} stops the engine, and the Run is not written any more`, async t => {
    const started = marker()
    const worker = startWorker(t)
    const apply = sh(`touch ${started}; n=0; while :; do n=$((n+1)); echo "{\\"n\\":$n}" > $OARLOCK_STATE; sleep 0.05; done`)
    const given = await giveRun(worker.name, { stack: { command: { apply } } })
    await eventually(async () => existsSync(started) && (await get(given)).status?.phase === 'Applying', 'Applying')
    await disturb(given)
    equal(await worker.done, 3, worker.said.join('\n'))
    deepEqual(findRunProcesses(given.metadata.uid), [])
    const run = await client.resource(runResource).getOrUndefined(given.metadata.name, { namespace: 'apps' })
    ok(run === undefined || run.status?.phase === 'Applying' || run.status?.phase === 'Lost', JSON.stringify(run?.status))
    equal(existsSync(join(runsDir, given.metadata.uid)), false)
    if (name.startsWith('a newer')) ok((await states.orphans(keptAs(given))).length > 0, 'the refused version is kept aside')
  })
}

test('a warm worker takes one Run after the other', async t => {
  const worker = startWorker(t, { once: false })
  for (let round = 0; round < 3; round++) {
    const given = await giveRun(worker.name, { stack: { command: { apply: ['true'] } } })
    await eventually(async () => (await get(given)).status?.phase === 'Succeeded', 'its end')
  }
  worker.drain.abort()
  equal(await worker.done, 0)
})

test('a worker with two slots does two Runs at once; after as many Runs as its pool says it makes place for another', async t => {
  const worker = startWorker(t, { once: false, slots: 2, recycle: { afterRuns: 3 } })
  const [left, right] = [marker(), marker()]
  // Each waits for the other.
  const meet = (own: string, other: string) => ({ command: { apply: sh(`touch ${own}; while [ ! -e ${other} ]; do sleep 0.02; done`) } })
  const both = [await giveRun(worker.name, { stack: meet(left, right) }), await giveRun(worker.name, { stack: meet(right, left) })]
  for (const run of both) await eventually(async () => (await get(run)).status?.phase === 'Succeeded', 'its end')
  const idle = await eventually(async () => {
    const found = await client.resource(workerResource).get(worker.name)
    return found.status?.phase === 'Ready' && found.status.idleSince ? found : undefined
  }, 'it to be idle')
  equal(idle.spec.slots, 2)
  const last = await giveRun(worker.name, { stack: { command: { apply: ['true'] } } })
  equal(await worker.done, 0)
  equal((await get(last)).status?.phase, 'Succeeded')
  ok(
    worker.said.some(line => line.startsWith('draining') && line.includes('RunLimitReached')),
    worker.said.join('\n'),
  )
})

test('a worker that holds more memory than its pool says ends after its Run; one whose object was deleted waits for nothing', async t => {
  const fat = startWorker(t, { once: false, recycle: { aboveMemoryBytes: 1 } })
  const given = await giveRun(fat.name, { stack: { command: { apply: ['true'] } } })
  equal(await fat.done, 0)
  equal((await get(given)).status?.phase, 'Succeeded')
  ok(
    fat.said.some(line => line.includes('MemoryLimitReached')),
    fat.said.join('\n'),
  )

  const forgotten = startWorker(t, { once: false })
  const registered = async () => (await client.resource(workerResource).getOrUndefined(forgotten.name))?.status?.phase === 'Ready'
  await eventually(registered, 'it to register')
  await client.resource(workerResource).delete(forgotten.name)
  equal(await forgotten.done, 0)
})

test('terraform: plan kept for approval, exactly it applied, outdated ones refused, refresh, destroy', {
  skip: skipWithout('terraform'),
}, async t => {
  const main = 'variable "size" {}\nresource "terraform_data" "a" { input = var.size }\noutput "size" { value = terraform_data.a.output }\n'
  const stackName = 'approved'
  const base = {
    stackName,
    stack: { engine: 'terraform', approval: 'Manual', source: { inline: { files: { 'main.tf': main } } }, variables: { size: 3 } },
  } as const
  const planned = (await doRun(t, { ...base, type: 'Plan', epoch: 1 })).run
  equal(planned.status?.phase, 'Succeeded', JSON.stringify(planned.status))
  equal(planned.status?.changed, true)
  const digest = planned.status?.plan?.digest ?? ''
  deepEqual(planned.status?.plan, { digest, add: 1, change: 0, destroy: 0 })

  const outdated = (await doRun(t, { ...base, epoch: 2, approvedPlan: { digest: 'sha256:other', runName: 'x' } })).run
  equal(outdated.status?.reason, 'PlanOutdated')

  const applied = (await doRun(t, { ...base, epoch: 3, approvedPlan: { digest, runName: planned.metadata.name } })).run
  equal(applied.status?.phase, 'Succeeded', JSON.stringify(applied.status))
  deepEqual(applied.status?.outputs, { size: 3 })
  equal(applied.status?.resources, 1)
  const state = JSON.parse((await states.readVersion({ stackUid: 'apps-approved' }))?.bytes.toString() ?? '{}')
  equal(state.resources.length, 1)

  const again = (await doRun(t, { ...base, epoch: 4, approvedPlan: { digest, runName: planned.metadata.name } })).run
  equal(again.status?.reason, 'PlanOutdated', JSON.stringify(again.status))

  const refreshed = (await doRun(t, { ...base, type: 'Refresh', epoch: 5 })).run
  equal(refreshed.status?.phase, 'Succeeded', JSON.stringify(refreshed.status))
  equal(refreshed.status?.resources, 1)

  const destroyed = (await doRun(t, { ...base, type: 'Destroy', epoch: 6 })).run
  equal(destroyed.status?.phase, 'Succeeded', JSON.stringify(destroyed.status))
  equal(destroyed.status?.resources, 0)
  equal(await client.resource(secretResource).getOrUndefined('approved-outputs', { namespace: 'apps' }), undefined)
})

test('limits: what is in force and what was used are in the status', async t => {
  const { run } = await doRun(t, {
    stack: {
      resources: { cpu: '500m', memory: '256Mi', pids: 50, disk: '64Mi' },
      command: { apply: sh('i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done') },
    },
  })
  const { status } = run
  equal(status?.phase, 'Succeeded', JSON.stringify(status))
  const { level, limits } = status?.isolation ?? {}
  equal(level, 'Process')
  deepEqual(Object.keys(limits ?? {}).sort(), ['cpu', 'disk', 'memory', 'pids'])
  equal(limits?.disk, 'Watched')
  ok((status?.usage?.cpuSeconds ?? 0) > 0, JSON.stringify(status?.usage))
})

test('a Run that needs more memory than it may have ends as OutOfMemory, with peak, limit and advice; its state is saved', async t => {
  const apply = sh(`echo '{"half":1}' > $OARLOCK_STATE; head -c 400000000 /dev/zero | tail; sleep 20`)
  const [fixed, raising] = await Promise.all([
    doRun(t, { stack: { resources: { memory: '48Mi' }, command: { apply } } }),
    doRun(t, { stack: { resources: { memory: '48Mi', autoRaise: { memory: '1Gi' } }, command: { apply } } }),
  ])
  equal(fixed.run.status?.reason, 'OutOfMemory', JSON.stringify(fixed.run.status))
  match(
    fixed.run.status?.message ?? '',
    /peak \d+Mi, limit 48Mi; raise spec\.resources\.memory to \d+Mi or more, or set spec\.resources\.autoRaise/,
  )
  equal(fixed.run.status?.retryable, false)
  match((await states.readVersion({ stackUid: keptAs(fixed.run) }))?.bytes.toString() ?? '', /half/)
  equal(raising.run.status?.retryable, true)
  match(raising.run.status?.message ?? '', /the next Run gets 96Mi/)
  deepEqual(findRunProcesses(fixed.run.metadata.uid), [])
})

const sandbox = await probeIsolation('Sandbox')
test('a Run in a sandbox: inputs, outputs and state as without one; the worker and other Runs are out of its sight', {
  skip: sandbox.available ? false : sandbox.reason,
}, async t => {
  const spy = `ls ${runsDir} ${base}; cat /proc/${process.pid}/environ; kill -9 ${process.pid}; ln -s ${join(base, 'server')} $TMPDIR/out; true`
  const apply = `echo '{"url":"http://x"}' > $OARLOCK_OUTPUTS; echo '{"made":1}' > $OARLOCK_STATE; ${spy}`
  const { run } = await doRun(t, { stack: { isolation: { level: 'Sandbox' }, command: { apply: sh(apply) } } })
  equal(run.status?.phase, 'Succeeded', JSON.stringify(run.status))
  deepEqual(run.status?.outputs, { url: 'http://x' })
  equal(run.status?.isolation?.level, 'Sandbox')
  equal((await states.readVersion({ stackUid: keptAs(run) }))?.bytes.toString().trim(), '{"made":1}')
  const log = await logOf(run)
  match(log, /No such file/)
  ok(!log.includes('server'), log)
})

test('a link that a sandboxed engine leaves where its state should be is not followed', {
  skip: sandbox.available ? false : sandbox.reason,
}, async t => {
  const secret = join(base, 'only-for-the-worker.json')
  writeFileSync(secret, '{"token":"of-the-worker"}')
  const { run } = await doRun(t, { stack: { isolation: { level: 'Sandbox' }, command: { apply: sh(`ln -sf ${secret} $OARLOCK_STATE`) } } })
  equal(run.status?.phase, 'Failed', JSON.stringify(run.status))
  const kept = await states.readVersion({ stackUid: keptAs(run) })
  ok(!kept?.bytes.includes('of-the-worker'))
})

test('a worker says which levels it can give, whether it stays or takes a single Run', async t => {
  for (const once of [true, false]) {
    const { name, drain, done } = startWorker(t, { once })
    const levels = await eventually(
      async () => (await client.resource(workerResource).getOrUndefined(name))?.status?.isolation,
      'it says which isolation it can give',
    )
    deepEqual(levels, sandbox.available ? ['Process', 'Sandbox'] : ['Process'])
    drain.abort()
    equal(await done, 0)
  }
})

test('a level that this worker cannot give is refused with the reason; nothing weaker is taken', async t => {
  const started = marker()
  const { run } = await doRun(t, { stack: { isolation: { level: 'Pod' }, command: { apply: ['touch', started] } } })
  equal(run.status?.reason, 'IsolationUnavailable')
  match(run.status?.message ?? '', /^spec\.isolation\.level: Pod cannot be had on this worker: this worker is not a Pod with one Run/)
  equal(run.status?.retryable, false)
  equal(existsSync(started), false)
})
