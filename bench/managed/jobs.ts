/**
 * Long dispatched jobs beside many short observes, in the same replicas of a provider. Every role is a process: API server, stores, join service, controllers, a pool of
 * workers, and the replicas. In the middle of the jobs all controllers are killed together: `oarlock controller` and every replica.
 */
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { workerPoolResource, workerResource } from '../../src/api/index.ts'
import { bucketResource } from '../../src/controllers/managed/fake-cloud.testing.ts'
import { type Client, installKinds } from '../../src/kubernetes/client/index.ts'
import { findCondition } from '../../src/kubernetes/object/index.ts'
import { eventually } from '../../test/support/eventually.ts'
import { ManagedFleet } from '../../test/support/managed/fleet.ts'
import { jobResource } from '../../test/support/managed/job.ts'
import { controllerArgs, type RoleProcess, RoleProcesses, startApiRole } from '../../test/support/role-process.ts'
import type { Bench } from '../run.ts'

export type JobsOptions = {
  readonly resources: number
  readonly replicas: number
  readonly pollS: number
  readonly latencyMs: number
  readonly leaseMs: number
  readonly jobs: number
  readonly minutes: number
  /** A job of `minutes` takes this many times less. */
  readonly compress: number
  /** How often both runs are repeated, in turns. */
  readonly times: number
}

const slots = 10

/** How much later than every run without jobs the run with them may be: clocks and rounding. */
const tolerance = 1.05

export async function jobs(options: JobsOptions): Promise<Bench> {
  const { resources, replicas, pollS, latencyMs, leaseMs, minutes, compress, times } = options
  const durationS = (minutes * 60) / compress
  // Before the restart every resource must be due at least once.
  if (durationS / 2 < pollS)
    throw new RangeError(`half of a job (${durationS / 2} s) must be at least --poll ${pollS} s: lower --compress or --poll`)
  const base = mkdtempSync(join(tmpdir(), 'oarlock-bench-jobs-'))
  const roles = new RoleProcesses(base)
  const installation = await Installation.start(roles, Math.ceil(options.jobs / slots))
  const { client } = installation
  try {
    await installKinds(client, [bucketResource, jobResource])
    const settings = { lock: 'shard', leaseMs, slots: replicas, isDeterministic: true, latencyMs, pollIntervalMs: pollS * 1_000 } as const
    const fleet = await ManagedFleet.start(client, installation.kubeconfig, { ...settings, maxConcurrent: 40, hasJobs: true })
    const rows: Record<string, string | number>[] = []
    try {
      for (let index = 0; index < replicas; index++) await fleet.add()
      await fleet.createAll(resources)
      // One interval, so that every resource has been polled since.
      await sleep(pollS * 1_000)
      for (let time = 0; time < times; time++) {
        for (const hasJobs of [false, true]) {
          const ledger = new Ledger(join(base, `ledger-${time}`))
          fleet.cloud.forgetIntervals()
          const startedMs = performance.now()
          if (hasJobs) await createJobs(client, options.jobs, `t${time}`, ledger.path, durationS)
          await sleep((durationS * 1_000) / 2)
          const before = percentiles(fleet.cloud.intervalsMs(resources))
          fleet.cloud.forgetIntervals()
          const { started, ended } = ledger.read()
          await Promise.all([fleet.restartAll(), installation.restartController()])
          // At least two intervals after the restart, and to the end of the jobs.
          await sleep(Math.max(pollS * 2_000, (durationS * 1_000) / 2 + leaseMs))
          if (hasJobs) await untilReady(client, options.jobs, `t${time}`)
          const after = percentiles(fleet.cloud.intervalsMs(resources))
          const { lost, repeated } = ledger.judge(hasJobs ? options.jobs : 0)
          rows.push({
            ...{ run: hasJobs ? `with ${options.jobs} jobs of ${durationS} s` : 'without', resources, replicas },
            ...{ 'interval p50, s': before.p50, 'p99, s': before.p99, 'max, s': before.max },
            ...{ 'with restart p99, s': after.p99, 'max with restart, s': after.max },
            ...{ 'window, s': Math.round((performance.now() - startedMs) / 1_000) },
            ...{
              'active at the restart': started.length - ended.length,
              'finished before': ended.length,
              lost,
              repeated,
              duplicates: fleet.cloud.duplicates.length,
            },
          })
          process.stderr.write(`${JSON.stringify(rows.at(-1))}\n`)
          if (hasJobs) await deleteJobs(client)
        }
      }
    } finally {
      await fleet.close()
    }
    const p99 = (hasJobs: boolean) => rows.filter(({ run }) => (run === 'without') !== hasJobs).map(row => Number(row['p99, s']))
    const [without, withJobs] = [Math.max(...p99(false)), Math.max(...p99(true))]
    // A restart of controllers that have nothing to lose proves nothing.
    const wereNotAllActive = ({ run, 'active at the restart': active, 'finished before': finished }: (typeof rows)[number]) =>
      active !== (run === 'without' ? 0 : options.jobs) || finished !== 0
    const isLate = !(withJobs <= without * tolerance)
    return {
      title: 'Long dispatched jobs beside short observes',
      about:
        `A job of ${minutes} min is compressed ${compress} times. The interval is the longest between two observations of a resource: first until all controllers are restarted (SIGKILL) in the middle of the jobs, then with that restart, which happens without jobs too. ` +
        'Bars: the p99 before the restart is not above the highest without jobs by more than 5 %; every job is active at the restart; the ledger that the jobs write shows none lost and none repeated. The intervals with the restart have no bar: they are mostly the start of processes.',
      rows,
      failed: isLate || rows.some(row => wereNotAllActive(row) || Number(row.lost) + Number(row.repeated) + Number(row.duplicates) > 0),
    }
  } finally {
    await installation.stop()
    rmSync(base, { recursive: true, force: true })
  }
}

function percentiles(intervalsMs: number[]): { p50: number; p99: number; max: number } {
  const sorted = intervalsMs.sort((a, b) => a - b)
  const at = (share: number) =>
    Math.round((sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN) / 10) / 100
  return { p50: at(0.5), p99: at(0.99), max: at(1) }
}

/** What the jobs append: `start JOB` and `end JOB`. */
class Ledger {
  readonly path: string

  /** The directory may be written by every user: workers have their own. */
  constructor(directory: string) {
    mkdirSync(directory, { recursive: true })
    chmodSync(directory, 0o777)
    this.path = join(directory, 'jobs')
  }

  read(): { started: string[]; ended: string[] } {
    let text = ''
    try {
      text = readFileSync(this.path, 'utf8')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    }
    const lines = text.split('\n')
    const of = (word: string) => lines.filter(line => line.startsWith(`${word} `)).map(line => line.slice(word.length + 1))
    return { started: of('start'), ended: of('end') }
  }

  judge(jobs: number): { lost: number; repeated: number } {
    const { started, ended } = this.read()
    return { lost: jobs - new Set(ended).size, repeated: started.length - new Set(started).size }
  }
}

async function createJobs(client: Client, count: number, prefix: string, ledger: string, seconds: number): Promise<void> {
  const script = `echo "start $OARLOCK_STACK" >> ${ledger}; sleep ${seconds}; echo "end $OARLOCK_STACK" >> ${ledger}`
  const handle = client.resource(jobResource)
  await Promise.all(
    Array.from({ length: count }, (_, index) =>
      handle.create({ metadata: { name: `${prefix}-${index}`, namespace: 'default' }, spec: { forProvider: { script, pool: 'jobs' } } }),
    ),
  )
}

async function untilReady(client: Client, count: number, prefix: string): Promise<void> {
  const check = async () => {
    const { items } = await client.resource(jobResource).listAll({ namespace: 'default' })
    const own = items.filter(({ metadata }) => metadata.name.startsWith(`${prefix}-`))
    const failed = own.find(({ status }) => status?.run?.phase === 'Failed')
    if (failed) throw new Error(`job ${failed.metadata.name} failed: ${findCondition(failed.status?.conditions, 'Synced')?.message}`)
    const isReady = (job: (typeof items)[number]) => findCondition(job.status?.conditions, 'Ready')?.status === 'True'
    return own.length === count && own.every(isReady)
  }
  await eventually(check, 'every job to be ready', 600_000)
}

async function deleteJobs(client: Client): Promise<void> {
  const handle = client.resource(jobResource)
  const { items } = await handle.listAll({ namespace: 'default' })
  await Promise.all(items.map(({ metadata }) => handle.delete(metadata.name, { namespace: 'default' })))
  await eventually(async () => (await handle.listAll({ namespace: 'default' })).items.length === 0, 'the deletion of the jobs', 600_000)
}

/** An installation with one process for each role. */
class Installation {
  readonly client: Client
  readonly kubeconfig: string
  readonly #roles: RoleProcesses
  readonly #admin: string
  #controller: RoleProcess | undefined
  #pool: RoleProcess | undefined

  private constructor(roles: RoleProcesses, client: Client, kubeconfig: string) {
    this.#roles = roles
    this.client = client
    this.kubeconfig = kubeconfig
    this.#admin = readFileSync(kubeconfig, 'utf8')
  }

  /** With a pool `jobs` of so many workers, which are started before. */
  static async start(roles: RoleProcesses, workers: number): Promise<Installation> {
    const { api, client } = await startApiRole(roles)
    const self = new Installation(roles, client, join(api.directory, 'kubeconfig'))
    await self.#start('stores', 'stores', '--listen', '127.0.0.1:0')
    await self.#start('join', 'join-service', '--listen', '127.0.0.1:0')
    self.#controller = await self.#start('controller', ...controllerArgs)
    await client.resource(workerPoolResource).create({
      metadata: { name: 'jobs' },
      spec: { mode: 'Process', lifecycle: 'Warm', slots, min: workers, max: workers },
    })
    const file = roles.file('pool', 'kubeconfig', self.#admin)
    const args = ['pool', '--kubeconfig', file, '--data', '.', '--pool', 'jobs', '--max-workers', String(workers), '--grace', '1s']
    self.#pool = await roles.start('pool', args, /jobs/)
    const areReady = async () =>
      (await client.resource(workerResource).listAll()).items.filter(({ status }) => status?.phase === 'Ready').length >= workers
    await eventually(areReady, `${workers} workers`, 120_000)
    return self
  }

  async restartController(): Promise<void> {
    await this.#controller?.stop('SIGKILL')
    this.#controller = await this.#start('controller', ...controllerArgs)
  }

  async stop(): Promise<void> {
    // With its workers.
    await this.#pool?.stop('SIGTERM')
    await this.client.close()
    await this.#roles.stopAll()
  }

  async #start(name: string, ...args: string[]): Promise<RoleProcess> {
    const file = this.#roles.file(name, 'kubeconfig', this.#admin)
    return await this.#roles.start(name, [...args, '--kubeconfig', file, '--data', '.'], /^ *API /m)
  }
}
