import { deepEqual, equal, ok, rejects } from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir, uptime } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { after, before, test } from 'node:test'
import {
  isEnded,
  oarlockResources,
  type Run,
  runResource,
  systemNamespace,
  type WorkerPool,
  workerPoolResource,
  workerResource,
} from '../src/api/index.ts'
import {
  type Client,
  configMapResource,
  createClient,
  installKinds,
  leaseResource,
  listWatch,
  namespaceResource,
  type RequestOptions,
  type Response,
  WrappedClient,
} from '../src/kubernetes/client/index.ts'
import { type Manager, NotLeaderError } from '../src/kubernetes/controller/index.ts'
import { isReason, objectKey } from '../src/kubernetes/object/index.ts'
import { type ApiServer, startServer } from '../src/kubernetes/server/index.ts'
import { eventually } from './support/eventually.ts'
import { ScriptedWorkers, succeeds } from './support/scripted-workers.ts'
import { isReady, StackFixture } from './support/stacks.ts'
import { election, startControllers } from './support/start-controllers.ts'

/** Requests of the controllers: all writes, and reads of Leases. */
const requests: { user: string; verb: string; resource: string; name: string | undefined }[] = []
const isRead = (verb: string) => ['get', 'list', 'watch'].includes(verb)
const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-leader-'))
let server: ApiServer
let client: Client
let fixture: StackFixture
let pool: WorkerPool
/** By key of a Run: every Worker that it was assigned to. */
const assignedWorkers = new Map<string, Set<string>>()
const watching = new AbortController()
let watched: Promise<void>

before(async () => {
  server = await startServer({
    dataDir,
    listen: { port: 0 },
    storage: { synchronous: 'OFF' },
    authorize: ({ user, verb, resource, name }) => {
      if (user.name.startsWith('controllers-') && (!isRead(verb) || resource === 'leases'))
        requests.push({ user: user.name, verb, resource, name })
      return undefined
    },
  })
  client = await createClient({ kubeconfig: server.kubeconfigPath })
  await installKinds(client, oarlockResources)
  await client.resource(namespaceResource).apply({ metadata: { name: systemNamespace } }, { force: true })
  pool = await client.resource(workerPoolResource).create({ metadata: { name: 'default' }, spec: { mode: 'External' } })
  fixture = new StackFixture(client)
  const observe = (run: Pick<Run, 'metadata' | 'spec'>) => {
    const { workerName } = run.spec
    if (!workerName) return
    const key = objectKey(run)
    assignedWorkers.set(key, (assignedWorkers.get(key) ?? new Set()).add(workerName))
  }
  watched = listWatch(client, runResource, {
    namespace: fixture.namespace,
    signal: watching.signal,
    onReplace: runs => runs.forEach(observe),
    onEvent: ({ type, object }) => {
      if (type !== 'BOOKMARK') observe(object)
    },
  })
})
after(async () => {
  watching.abort()
  await watched
  await client?.close()
  await server?.close({ graceMs: 500 })
  rmSync(dataDir, { recursive: true, force: true })
})

const connect = async (name: string) =>
  await createClient({
    cluster: {
      server: server.url,
      caCertificate: server.caCertificate,
      token: server.issueToken({ name, groups: ['system:masters'], ttlMs: 3_600_000 }),
    },
  })
const make = async (name: string) =>
  await fixture.create(name, { engine: 'command', command: { apply: ['true'] }, source: { inline: { files: { 'main.tf': '' } } } })

/** Delays writes until `release` is called, like a network that is interrupted and recovers. */
class InterruptedNetwork extends WrappedClient {
  isDelayed: (options: RequestOptions) => boolean = () => false
  readonly #released = Promise.withResolvers<void>()
  readonly delayed: { options: RequestOptions; response: Promise<Response> }[] = []

  override async request(options: RequestOptions): Promise<Response> {
    if (options.method === 'GET' || !this.isDelayed(options)) return await this.inner.request(options)
    // It has left the process: it may still arrive at the server when the client neither waits for it nor would send it any more.
    const { signal: _, beforeSend: __, ...late } = options
    const response = this.#released.promise.then(() => this.inner.request(late))
    response.catch(() => {})
    this.delayed.push({ options, response })
    return await Promise.race([
      response,
      new Promise<never>((_resolve, reject) => options.signal?.addEventListener('abort', () => reject(options.signal?.reason))),
    ])
  }

  release(): void {
    this.#released.resolve()
  }
}

test('invariant 7: a leader whose renewals are interrupted stops writing, and its delayed writes are rejected by their resourceVersion', async () => {
  const network = new InterruptedNetwork(await connect('controllers-cut'))
  const other = await connect('controllers-next')
  const workers = new ScriptedWorkers(client, 2_000)
  workers.script = () => succeeds()
  let cut: Manager | undefined
  let next: Manager | undefined
  try {
    cut = await startControllers(network, 'cut')
    await cut.whenLeader
    // The Stack is created before the worker, so that its Run is queued when the worker registers.
    await make('late')
    await fixture.untilRun('late', 'made', () => true)
    const isAssignment = ({ path, method, body }: RequestOptions) =>
      method === 'PATCH' && path.includes('/runs/') && JSON.stringify(body).includes('workerName')
    network.isDelayed = options => isAssignment(options) || options.path.includes(`/leases/${election.leaseName}`)
    await workers.start(pool, 'w-late')
    await eventually(() => network.delayed.some(({ options }) => isAssignment(options)), 'the assignment to be sent', 20_000)
    next = await startControllers(other, 'next')
    await next.whenLeader
    equal(cut.isLeader, false, 'it stopped leading before another process could lead')
    await rejects(cut.leaderClient.resource(configMapResource).create({ metadata: { name: 'late' } }), NotLeaderError)
    await fixture.until('late', 'Ready by the next leader', isReady)
    const before = await fixture.runsOf('late')

    const requestsBefore = requests.filter(({ user }) => user === 'controllers-cut').length
    network.release()
    const responses = await Promise.allSettled(network.delayed.map(({ response }) => response))
    for (const [index, response] of responses.entries()) {
      const { path } = network.delayed[index]!.options
      ok(
        response.status === 'rejected' && isReason(response.reason, 'Conflict', 'NotFound'),
        `${path} was not rejected: ${JSON.stringify(response)}`,
      )
    }
    const lateRequests = requests.filter(({ user }) => user === 'controllers-cut').slice(requestsBefore)
    deepEqual(
      [...new Set(lateRequests.filter(({ verb, resource }) => !isRead(verb) && resource !== 'leases').map(({ resource }) => resource))],
      ['runs'],
    )
    deepEqual(await fixture.runsOf('late'), before, 'no write of the previous leader was applied')
    equal(before.length, 1)
    deepEqual(workers.accepted.map(objectKey), before.map(objectKey))
    equal((await client.resource(leaseResource).get(election.leaseName, { namespace: systemNamespace })).spec?.holderIdentity, 'next')
  } finally {
    network.release()
    await cut?.stop({ graceMs: 2_000 })
    await next?.stop({ graceMs: 2_000 })
    await workers.close()
    await network.close()
    await other.close()
  }
})

test('invariant 7: a leader that is paused and resumes later writes nothing, and no Run is assigned twice', async () => {
  const workers = new ScriptedWorkers(client, 2_000)
  workers.script = () => succeeds()
  const token = server.issueToken({ name: 'controllers-stopped', groups: ['system:masters'], ttlMs: 3_600_000 })
  const settings = { server: server.url, caCertificate: server.caCertificate, token, identity: 'stopped' }
  const program = join(import.meta.dirname, 'support', 'controllers-child.ts')
  const child = spawn(process.execPath, [program, JSON.stringify(settings)], { stdio: ['ignore', 'pipe', 'inherit'] })
  const startedWrites: { atSeconds: number; what: string }[] = []
  createInterface({ input: child.stdout }).on('line', line => {
    const [atSeconds, ...what] = line.split(' ')
    startedWrites.push({ atSeconds: Number(atSeconds), what: what.join(' ') })
  })
  const exited = new Promise(resolve => child.once('exit', resolve))
  const other = await connect('controllers-other')
  let next: Manager | undefined
  const ofChild = () => requests.filter(({ user }) => user === 'controllers-stopped')
  const names = Array.from({ length: 24 }, (_, index) => `many-${index}`)
  try {
    const holder = async () =>
      (await client.resource(leaseResource).getOrUndefined(election.leaseName, { namespace: systemNamespace }))?.spec?.holderIdentity
    await eventually(async () => (await holder()) === 'stopped', 'the child to lead', 30_000)
    next = await startControllers(other, 'other')
    await Promise.all(names.map(name => workers.start(pool, `w-${name}`)))
    await eventually(async () => (await client.resource(workerResource).list()).items.length >= names.length, 'workers to register', 20_000)
    const making = Promise.all(names.slice(0, 16).map(make))
    // During its passes: it has decided more than it has written.
    await eventually(
      () => ofChild().filter(({ verb, resource }) => verb === 'create' && resource === 'runs').length >= 4,
      'the child to create Runs on workers',
      20_000,
    )
    child.kill('SIGSTOP')
    await making
    await next.whenLeader
    // When it resumes, its caches still show these Runs as queued and their workers as idle.
    await Promise.all(names.slice(16).map(make))
    await Promise.all(names.map(name => fixture.untilReady(name)))
    const before = (await client.resource(fixture.runs.resource).listAll({ namespace: fixture.namespace })).items
    const requestsBefore = ofChild().length
    const resumedAtSeconds = uptime()
    child.kill('SIGCONT')
    // It takes part in the election again when everything that needs leadership has ended.
    await eventually(
      () =>
        ofChild()
          .slice(requestsBefore)
          .filter(({ verb, resource }) => verb === 'get' && resource === 'leases').length >= 2,
      'the child to take part in the election',
      20_000,
    )
    const late = startedWrites.filter(({ atSeconds, what }) => atSeconds > resumedAtSeconds && !what.includes('/leases'))
    deepEqual(late, [], 'it begins no further write')
    // Requests that were already in its sockets are rejected by their resourceVersion or the name of the Run.
    deepEqual((await client.resource(fixture.runs.resource).listAll({ namespace: fixture.namespace })).items, before)
    ok(before.every(isEnded))
    const runs = before.filter(({ spec }) => spec.stackRef.name.startsWith('many-'))
    equal(runs.length, names.length, 'one Run for each Stack')
    deepEqual(workers.accepted.map(objectKey).sort(), runs.map(objectKey).sort(), 'each was accepted once')
    await eventually(() => runs.every(run => assignedWorkers.has(objectKey(run))), 'the watch to catch up')
    for (const run of runs) deepEqual([...assignedWorkers.get(objectKey(run))!], [run.spec.workerName])
  } finally {
    child.kill('SIGKILL')
    await exited
    await next?.stop({ graceMs: 2_000 })
    await workers.close()
    await other.close()
  }
})
