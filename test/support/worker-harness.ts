/** Starts workers in the process of the test, against the real embedded server with real stores and real engines, and assigns Runs. */
import { equal } from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, type TestContext } from 'node:test'
import { type Run, type RunSpec, runResource, type StackSpec, stackResource, type Worker, workerResource } from '../../src/api/index.ts'
import { defaultLeaseTimings, type LeaseTimings, type RunWorkerOptions, runWorker } from '../../src/execution/worker/index.ts'
import { type Client, createClient } from '../../src/kubernetes/client/index.ts'
import { eventually } from './eventually.ts'
import { type NetworkProxy, startProxy } from './proxy.ts'
import { startWorkerFixture, type WorkerFixture } from './worker-fixture.ts'

/** The default timings, since a busy machine may suspend a process for seconds; renewed more often, so that a deleted Lease is noticed. */
const lease: LeaseTimings = { ...defaultLeaseTimings, renewMs: 1_000 }

export type AssignedRun = Partial<Omit<RunSpec, 'stack'>> & { stack: Partial<StackSpec>; stackName?: string }
export type WorkerOptions = Partial<RunWorkerOptions> & { viaProxy?: boolean }
export type StartedWorker = {
  name: string
  drain: AbortController
  interrupt: AbortController
  /** Lines of the worker's log, as `message {fields}`. */
  logLines: string[]
  /** Resolves with the exit code. */
  done: Promise<number>
}

export type WorkerHarness = {
  fixture: WorkerFixture
  directory: string
  runsDir: string
  client: Client
  proxy: NetworkProxy
  startWorker(t: TestContext, options?: WorkerOptions): StartedWorker
  /** The UID of the Stack of this name, which is created if it does not exist: without an owner, outputs are garbage-collected. */
  createStack(name: string): Promise<string>
  assignRun(workerName: string, run: AssignedRun): Promise<Run>
  /** Starts a one-shot worker, assigns it a Run, and returns the Run after the worker has exited with 0. */
  execute(t: TestContext, run: AssignedRun, options?: WorkerOptions): Promise<{ run: Run; worker: StartedWorker }>
  getRun(run: Run): Promise<Run>
  getWorker(name: string): Promise<Worker | undefined>
  untilReady(name: string): Promise<unknown>
  readLog(run: Run): Promise<string>
  /** The newest state of the Run's Stack, as text. */
  readState(run: Run): Promise<string>
  /** A path in the test's directory at which no file exists. */
  newPath(): string
}

/** The command of an engine that runs a shell script. */
export const shell = (script: string): string[] => ['sh', '-c', script]

/** A script that creates the file `started`, then runs until the file `stop` exists. */
export const untilFile = (started: string, stop: string): string => `touch ${started}; while [ ! -e ${stop} ]; do sleep 0.02; done`

/** A script that creates the file `started`, saves a state when it is interrupted, and exits with 1 then. */
export const savesOnInterrupt = (started: string): string =>
  `trap 'echo "{\\"saved\\":1}" > $OARLOCK_STATE; exit 1' INT; touch ${started}; while :; do sleep 0.02; done`

/** Registers `before` and `after` hooks that start and close the fixture; its fields are available in tests. */
export function createWorkerHarness(): WorkerHarness {
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-worker-'))
  const runsDir = join(directory, 'runs')
  let fixture: WorkerFixture
  let proxy: NetworkProxy
  let stackCount = 0
  before(async () => {
    fixture = await startWorkerFixture(directory, { isLockAbandoned: false })
    proxy = await startProxy(fixture.server.port)
  })
  after(async () => {
    proxy?.close()
    await fixture?.close()
    rmSync(directory, { recursive: true, force: true })
  })

  const harness: WorkerHarness = {
    directory,
    runsDir,
    get fixture() {
      return fixture
    },
    get client() {
      return fixture.client
    },
    get proxy() {
      return proxy
    },
    startWorker(t, { viaProxy = false, ...options } = {}) {
      const name = options.name ?? `w-${randomUUID().slice(0, 8)}`
      const drain = new AbortController()
      const interrupt = new AbortController()
      const logLines: string[] = []
      const log = (fields: object, message: string): void => void logLines.push(`${message} ${JSON.stringify(fields)}`)
      const { server } = fixture
      const token = fixture.issueWorkerToken(name)
      const run = async () => {
        const address = viaProxy ? `https://127.0.0.1:${proxy.port}` : server.url
        const client = await createClient({ cluster: { server: address, caCertificate: server.caCertificate, token } })
        const { exitCode } = await runWorker({
          ...{ name, client, token, runsDir, lease },
          pool: 'default',
          once: true,
          storeUrl: server.url,
          caCertificate: server.caCertificate,
          storeCaCertificate: server.caCertificate,
          cacheDir: join(directory, 'cache'),
          allowPaths: [],
          log: { info: log, warn: log },
          signal: drain.signal,
          interruptSignal: interrupt.signal,
          idleTimeoutMs: 15_000,
          ...options,
        })
        await client.close()
        return exitCode
      }
      const done = run()
      done.catch(() => {})
      t.after(() => interrupt.abort())
      t.after(() => drain.abort())
      return { name, drain, interrupt, logLines, done }
    },
    async createStack(name) {
      const stacks = fixture.client.resource(stackResource)
      const existing = await stacks.getOrUndefined(name, { namespace: 'apps' })
      const spec: StackSpec = { engine: 'command', source: { inline: { files: { a: '' } } } }
      return (existing ?? (await stacks.create({ metadata: { name, namespace: 'apps' }, spec }))).metadata.uid
    },
    async assignRun(workerName, { stack, stackName = `s${++stackCount}`, ...spec }) {
      const epoch = spec.epoch ?? 1
      const runs = fixture.client.resource(runResource)
      return await runs.create({
        metadata: { name: `${stackName}-${epoch}`, namespace: 'apps' },
        spec: {
          type: 'Apply',
          stackRef: { name: stackName, uid: await harness.createStack(stackName), generation: 1 },
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
    },
    async execute(t, assigned, options = {}) {
      const worker = harness.startWorker(t, options)
      const run = await harness.assignRun(worker.name, assigned)
      equal(await worker.done, 0, worker.logLines.join('\n'))
      return { run: await harness.getRun(run), worker }
    },
    getRun: run => fixture.client.resource(runResource).get(run.metadata.name, { namespace: 'apps' }),
    getWorker: name => fixture.client.resource(workerResource).getOrUndefined(name),
    untilReady: name => eventually(async () => (await harness.getWorker(name))?.status?.phase === 'Ready', 'the worker to be Ready'),
    readLog: async run => (await fixture.logs.read({ namespace: 'apps', run: run.metadata.name }, {})).bytes.toString('utf8'),
    readState: async run => (await fixture.states.readVersion({ stackUid: run.spec.stackRef.uid }))?.bytes.toString().trim() ?? '',
    newPath: () => join(directory, `path-${randomUUID()}`),
  }
  return harness
}
