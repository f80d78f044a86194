import { readFile } from 'node:fs/promises'
import { workerPoolResource } from '../../api/index.ts'
import { type HollowFleet, type HollowProfile, type HollowStackLoad, hollowWorkers, type Latencies } from '../../execution/worker/index.ts'
import { type Client, createClient } from '../../kubernetes/client/index.ts'
import { formatDuration, isReason, parseDuration } from '../../kubernetes/object/index.ts'
import { type AccessOptions, findKubeconfig } from '../access.ts'
import { CliError, usageError } from '../cli-error.ts'
import { exitCodes } from '../exit-codes.ts'
import { LiveScreen } from '../output/live-screen.ts'
import { serialize } from '../output/print-objects.ts'
import { note, print } from '../terminal.ts'
import { packageVersion } from '../version.ts'

export type HollowOptions = AccessOptions & {
  workers: number
  runsPerSecond?: number
  stacks?: number
  profile?: string
  pool: string
  renew: string
  duration?: string
  connections: number
  server?: string
  tokenFile?: string
  keep?: boolean
  output?: string
}

/** The result, as `-o json` prints it. */
export type HollowReport = {
  workers: { requested: number; registered: number; lost: number }
  renewals: { succeeded: number; late: number; failed: number; p50Ms: number; p99Ms: number; maxMs: number }
  runs?: {
    changes: number
    skipped: number
    started: number
    succeeded: number
    failed: number
    canceled: number
    revoked: number
    changeToAssigned: { p50Ms: number; p99Ms: number; maxMs: number }
    changeToEnd: { p50Ms: number; p99Ms: number; maxMs: number }
  }
  /** Since the start of the registration. */
  seconds: number
  /** From the registration of the last worker to the end of the last Run. */
  loadSeconds: number
  /** When the last Run ended, in milliseconds since the epoch: the Stacks are deleted afterwards. */
  loadEndedAtMs: number
  rssMb: number
  errors: number
}

/** Timeout for the Runs in progress, and then for the deletion of the Stacks. */
const cleanUpTimeoutMs = 60_000
const progressEveryMs = 1_000

/**
 * `oarlock hollow --workers N`: registers N simulated workers, and with --runs-per-second creates and changes Stacks. Ends after
 * --duration or with the first signal, and deletes what it created; a second signal exits immediately. Returns the exit code.
 */
export async function hollow(options: HollowOptions): Promise<number> {
  const { HollowFleet, HollowStackLoad, emptyProfile } = await hollowWorkers()
  const profile = options.profile === undefined ? emptyProfile : await readProfile(options.profile)
  const [client, renewalClient] = await Promise.all([connect(options), connect(options)])
  const stop = createStop(options.duration)
  const prefix = `hollow-${Math.floor(Math.random() * 36 ** 5)
    .toString(36)
    .padStart(5, '0')}`
  const errors = new ErrorSummary()
  const onError = (error: unknown) => errors.add(error)
  const { workers, pool, runsPerSecond } = options
  const load =
    runsPerSecond === undefined
      ? undefined
      : new HollowStackLoad({
          ...{ client, prefix, pool, runsPerSecond, onError },
          namespace: options.namespace ?? client.defaultNamespace,
          stacks: options.stacks ?? Math.max(1, Math.ceil(runsPerSecond * 10)),
        })
  const fleet = new HollowFleet({
    ...{ client, renewalClient, prefix, workers, pool, profile, onError },
    renewMs: parseDuration(options.renew),
    version: packageVersion(),
    onRunStarted: run => load?.onRunAssigned(run),
    onRunEnded: (run, phase) => load?.onRunEnded(run, phase),
  })
  const startedMs = performance.now()
  let readyMs = Number.POSITIVE_INFINITY
  const report = () => {
    const nowMs = performance.now()
    const [seconds, loadSeconds] = [(nowMs - startedMs) / 1_000, Math.max(0, nowMs - readyMs) / 1_000]
    return reportOf(fleet, load, { requested: workers, seconds, loadSeconds, errors: errors.count })
  }
  const progress = showProgress(report, options.output === 'json')
  let isPoolCreated = false
  let remaining = 0
  let final: HollowReport
  try {
    isPoolCreated = await ensurePool(client, pool, workers)
    await Promise.race([fleet.start(), stop.stopped])
    fleet.resetLatencies()
    readyMs = performance.now()
    load?.start()
    stop.begin()
    await stop.stopped
  } finally {
    stop.ending()
    await load?.stop(cleanUpTimeoutMs)
    final = report()
    if (load && !options.keep) remaining = await load.remove(cleanUpTimeoutMs)
    await fleet.stop()
    if (isPoolCreated && !options.keep) await client.resource(workerPoolResource).delete(pool).catch(onError)
    await Promise.all([client.close(), renewalClient.close()])
    progress.end()
    stop.end()
  }
  if (options.output === 'json') print(await serialize(final, 'json'))
  else for (const line of formatReport(final)) print(line)
  errors.print()
  if (remaining > 0) note(`${remaining} Stacks or Runs still exist; list them with: oarlock get stacks,runs`)
  return final.workers.lost > 0 || final.errors > 0 || remaining > 0 ? exitCodes.failed : exitCodes.done
}

async function connect({ server, tokenFile, kubeconfig, context, connections, namespace }: HollowOptions): Promise<Client> {
  const common = { connections, userAgent: 'oarlock-hollow', fieldManager: 'oarlock-hollow' }
  if (server === undefined) return await createClient({ ...common, kubeconfig: findKubeconfig(kubeconfig), context })
  if (tokenFile === undefined) throw usageError('--server requires --token-file', 'or use a kubeconfig with --kubeconfig')
  const caCertificate = process.env.OARLOCK_CA_FILE || undefined
  return await createClient({ ...common, cluster: { server, tokenFile, caCertificate, namespace } })
}

async function readProfile(path: string): Promise<HollowProfile> {
  const { parseHollowProfile, ProfileError } = await hollowWorkers()
  try {
    return parseHollowProfile(JSON.parse(await readFile(path, 'utf8')))
  } catch (error) {
    const { message } = error as Error
    if (error instanceof ProfileError || error instanceof SyntaxError)
      throw usageError(`--profile ${path}: ${message}`, 'see docs/hollow.md')
    throw usageError(`--profile cannot be read: ${message}`)
  }
}

/** Returns true if it created the pool, which is then deleted at the end. */
async function ensurePool(client: Client, name: string, workers: number): Promise<boolean> {
  try {
    const spec = { mode: 'External', lifecycle: 'Warm', max: workers } as const
    await client.resource(workerPoolResource).create({ metadata: { name }, spec })
    return true
  } catch (error) {
    if (!isReason(error, 'AlreadyExists')) throw error
  }
  const { mode } = (await client.resource(workerPoolResource).get(name)).spec
  if (mode !== 'External') {
    throw new CliError(`pool "${name}" has mode ${mode}; hollow workers need a pool of mode External`, {
      exitCode: exitCodes.usage,
      hint: 'choose another with --pool; a pool that does not exist is created',
    })
  }
  return false
}

/** Resolves after `duration`, counted from `begin`, or with a signal; a second signal exits the process. */
function createStop(duration: string | undefined): { stopped: Promise<void>; begin(): void; ending(): void; end(): void } {
  const { promise, resolve } = Promise.withResolvers<void>()
  let timer: NodeJS.Timeout | undefined
  let isEnding = false
  const onSignal = () => {
    if (isEnding) process.exit(exitCodes.interrupted)
    isEnding = true
    note('deleting what this test created (press Ctrl-C again to exit immediately and leave it)')
    resolve()
  }
  process.on('SIGINT', onSignal).on('SIGTERM', onSignal)
  return {
    stopped: promise,
    begin: () => {
      if (duration !== undefined) timer = setTimeout(resolve, Math.min(parseDuration(duration), 2 ** 31 - 1))
    },
    ending: () => clearTimeout(timer),
    end: () => void process.off('SIGINT', onSignal).off('SIGTERM', onSignal),
  }
}

/** A fleet can fail thousands of times: each distinct message is printed once, with its count. */
class ErrorSummary {
  readonly #counts = new Map<string, number>()
  count = 0

  add(error: unknown): void {
    this.count++
    const text = String((error as Error)?.message ?? error).replaceAll(/hollow-\w+-\d+(-\w+)*/g, 'hollow-…')
    if (this.#counts.has(text) || this.#counts.size < 20) this.#counts.set(text, (this.#counts.get(text) ?? 0) + 1)
  }

  print(): void {
    for (const [text, count] of this.#counts) note(`${count} times: ${text}`)
  }
}

function reportOf(
  { counts, renewalLatencies }: HollowFleet,
  load: HollowStackLoad | undefined,
  { requested, seconds, loadSeconds, errors }: { requested: number; seconds: number; loadSeconds: number; errors: number },
): HollowReport {
  const { registered, lost, renewals, lateRenewals, failedRenewals, started, succeeded, failed, canceled, revoked } = counts
  return {
    workers: { requested, registered, lost },
    renewals: { succeeded: renewals, late: lateRenewals, failed: failedRenewals, ...percentilesOf(renewalLatencies) },
    ...(load && {
      runs: {
        ...{ changes: load.changes, skipped: load.skipped, started, succeeded, failed, canceled, revoked },
        changeToAssigned: percentilesOf(load.assignedLatencies),
        changeToEnd: percentilesOf(load.endedLatencies),
      },
    }),
    seconds: rounded(seconds),
    loadSeconds: rounded(loadSeconds),
    loadEndedAtMs: Date.now(),
    rssMb: rounded(process.memoryUsage.rss() / 1e6),
    errors,
  }
}

const rounded = (value: number) => Math.round(value * 10) / 10
const percentilesOf = (times: Latencies) => ({
  p50Ms: rounded(times.percentile(50)),
  p99Ms: rounded(times.percentile(99)),
  maxMs: rounded(times.maxMs),
})
const formatPercentiles = ({ p50Ms, p99Ms, maxMs }: { p50Ms: number; p99Ms: number; maxMs: number }) =>
  `p50 ${p50Ms} ms, p99 ${p99Ms} ms, max ${maxMs} ms`

function formatReport({ workers, renewals, runs, seconds, rssMb }: HollowReport): string[] {
  return [
    `workers   ${workers.registered} registered, ${workers.lost} lost; ${formatDuration(seconds * 1_000)}, ${rssMb} MB`,
    `renewals  ${renewals.succeeded} succeeded, ${renewals.late} late, ${renewals.failed} failed; ${formatPercentiles(renewals)}`,
    ...(runs
      ? [
          `changes   ${runs.changes} sent, ${runs.skipped} skipped`,
          `runs      ${runs.started} started, ${runs.succeeded} succeeded, ${runs.failed} failed, ${runs.canceled} canceled, ${runs.revoked} revoked`,
          `assigned  ${formatPercentiles(runs.changeToAssigned)} after the change`,
          `ended     ${formatPercentiles(runs.changeToEnd)} after the change`,
        ]
      : []),
  ]
}

/** One line a second on a terminal, otherwise one every ten seconds. */
function showProgress(report: () => HollowReport, isQuiet: boolean): { end(): void } {
  const isLive = process.stderr.isTTY === true
  const screen = isLive ? new LiveScreen(process.stderr) : undefined
  let previous = report()
  const timer = setInterval(
    () => {
      const now = report()
      const perSecond = (count: (report: HollowReport) => number) =>
        Math.round((count(now) - count(previous)) / (now.seconds - previous.seconds))
      const { workers, renewals, runs } = now
      const line = [
        `${workers.registered}/${workers.requested} workers${workers.lost > 0 ? `, ${workers.lost} lost` : ''}`,
        `${perSecond(({ renewals }) => renewals.succeeded)} renewals/s, p99 ${renewals.p99Ms} ms`,
        ...(runs ? [`${perSecond(({ runs }) => runs?.succeeded ?? 0)} runs/s, ${runs.succeeded} succeeded, ${runs.skipped} skipped`] : []),
        ...(now.errors > 0 ? [`${now.errors} errors`] : []),
      ].join(' · ')
      if (screen) screen.draw([line.slice(0, (process.stderr.columns ?? 80) - 1)])
      else if (!isQuiet) note(line)
      previous = now
    },
    isLive ? progressEveryMs : progressEveryMs * 10,
  )
  return {
    end: () => {
      clearInterval(timer)
      screen?.end()
    },
  }
}
