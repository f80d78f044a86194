import { join } from 'node:path'
import type { pino } from 'pino'
import { type AllInOne, AppStartError, parseAddress, startAllInOne } from '../../app/index.ts'
import { objectKey, parseDuration } from '../../kubernetes/object/index.ts'
import { dataDirectory } from '../access.ts'
import { applyManifest } from '../apply-manifests.ts'
import { CliError, formatError, usageError } from '../cli-error.ts'
import { errPaint, note, outPaint, print } from '../console.ts'
import { exitCodes } from '../exit-codes.ts'
import { type FleetRow, formatSeconds, summaryText } from '../fleet/fleet-view.ts'
import { FleetWatch } from '../fleet/watch-fleet.ts'
import { endLeanStart } from '../lean-start.ts'
import { openLog } from '../open-log.ts'
import type { Paint } from '../output/style.ts'
import { packageRoot } from '../package-root.ts'
import { applyGroups, type Manifest, readManifests } from '../read-manifests.ts'
import { makeSampleRepository, sampleDirectory } from '../sample-repository.ts'
import { packageVersion } from '../version.ts'
import { definesKinds } from './apply.ts'

export type UpOptions = {
  data?: string
  listen: string
  http: string
  tlsSan: string[]
  allowPath: string[]
  maxWorkers?: number
  maxRunning?: number
  sample?: boolean
  apply: string[]
  exitWhenReady?: boolean
  timeout: string
  grace: string
  log?: string
  logLevel: string
}

/** After --exit-when-ready only a drift check can still be under way, or what is late. */
const readyGraceMs = 5_000

const sameSignalMs = 500
/**
 * A young generation that does not begin with 1 MB: what a worker makes until its engine starts is not collected several times, which
 * took 10 ms of its 150. Measured: its memory is the same then.
 */
const workerFlags = ['--min-semi-space-size=8']

/** Since the process began, not since this line: loading the program is part of what the user waits for. */
const startedMs = performance.timeOrigin

/** `oarlock up`: everything in this process, until a signal ends it or the fleet is as expected. Returns the exit code. */
export async function up(options: UpOptions): Promise<number> {
  const stopRequested = Promise.withResolvers<'signal'>()
  const signals = listenForSignals(() => stopRequested.resolve('signal'))
  const dataDir = dataDirectory(options.data)
  const sampleRepositories = join(dataDir, 'sample')
  const log = openLog(options, dataDir)
  const repository = options.sample ? makeSampleRepository(sampleRepositories) : undefined
  repository?.catch(() => {})
  const hub = await start(options, dataDir, options.sample ? [sampleRepositories] : [], log.logger)
  signals.hub = hub
  endLeanStart()
  try {
    const paint = outPaint()
    for (const line of banner(hub, dataDir, paint)) print(line)
    await repository
    const applied = await applyAll(hub, options, sampleRepositories)
    if (applied.size === 0 && (options.sample || options.apply.length > 0)) return exitCodes.refused
    const watch = new FleetWatch({
      stacks: hub.stacks,
      runs: hub.runs,
      keys: applied.size > 0 ? applied : undefined,
      stream: process.stdout,
      paint,
      startedMs,
    })
    const waits = options.exitWhenReady === true || applied.size > 0
    if (waits) watch.start()
    let exitCode: number = exitCodes.done
    if (options.exitWhenReady) exitCode = await waitUntilReady(watch, parseDuration(options.timeout), stopRequested.promise)
    else {
      if (waits) {
        const settled = await Promise.race([watch.whenSettled, stopRequested.promise])
        watch.freeze()
        if (settled !== 'signal') for (const line of [...settledLines(watch, settled, paint), ...nextSteps(settled, paint)]) print(line)
      }
      await stopRequested.promise
    }
    watch.stop()
    await hub.stop({
      graceMs: options.exitWhenReady ? readyGraceMs : parseDuration(options.grace),
      onProgress: running => note(`waiting for ${running === 1 ? '1 worker' : `${running} workers`} to finish (Ctrl-C again interrupts)`),
    })
    if (!options.exitWhenReady) print('stopped; the next start continues where this one ended')
    return exitCode
  } catch (error) {
    await hub.stop({ graceMs: 0 })
    throw error
  } finally {
    signals.end()
    log.close()
  }
}

async function start(options: UpOptions, dataDir: string, ownPaths: string[], log: pino.Logger): Promise<AllInOne> {
  try {
    return await startAllInOne({
      dataDir,
      listen: parseAddress(options.listen),
      http: parseAddress(options.http),
      names: options.tlsSan,
      allowPaths: [...options.allowPath, ...ownPaths],
      pool: { max: options.maxWorkers },
      maxRunning: options.maxRunning,
      launcher: [process.execPath, ...workerFlags, join(packageRoot, 'bin', 'oarlock.js')],
      version: packageVersion(),
      log,
    })
  } catch (error) {
    if (error instanceof RangeError && error.message.startsWith('address ')) throw usageError(error.message, 'oarlock up --help')
    if (!(error instanceof AppStartError)) throw error
    const exitCode = error.kind === 'Listen' ? exitCodes.listen : exitCodes.dataDirectory
    throw new CliError(error.message, { exitCode, hint: error.hint, cause: error })
  }
}

/** First signal: stop in good order. Second: interrupt the engines. Third: leave at once; leases and supervisors end what is left. */
function listenForSignals(onFirst: () => void): { hub: AllInOne | undefined; end(): void } {
  let count = 0
  let lastMs = Number.NEGATIVE_INFINITY
  const state: { hub: AllInOne | undefined; end(): void } = { hub: undefined, end: () => {} }
  const handler = () => {
    // One Ctrl-C comes twice when npm, which has it from the terminal as we do, passes it on.
    const nowMs = performance.now()
    if (nowMs - lastMs < sameSignalMs) return
    lastMs = nowMs
    count++
    if (count === 1) onFirst()
    else if (count === 2) {
      note('interrupting the Runs, so that they save their state (Ctrl-C again leaves at once)')
      state.hub?.interrupt()
    } else process.exit(exitCodes.interrupted)
  }
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, handler)
  // A terminal that goes away is no reason to leave Runs half done.
  process.on('SIGHUP', handler)
  state.end = () => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.off(signal, handler)
  }
  return state
}

function banner(hub: AllInOne, dataDir: string, paint: Paint): string[] {
  const row = (name: string, value: string) => `  ${paint('dim', name.padEnd(11))} ${value}`
  return [
    `${paint('bold', `oarlock ${packageVersion()}`)} is up ${paint('dim', `after ${formatSeconds(Date.now() - startedMs)}`)}`,
    row('API', hub.apiUrl),
    row('dashboard', hub.httpUrl),
    row('kubeconfig', hub.kubeconfigPath),
    row('data', dataDir),
    '',
  ]
}

/** Applies the sample and what --apply names; returns the keys of their Stacks. */
async function applyAll(hub: AllInOne, options: UpOptions, sampleRepositories: string): Promise<Set<string>> {
  const paths = [...(options.sample ? [sampleDirectory] : []), ...options.apply]
  if (paths.length === 0) return new Set()
  const manifests = await readManifests(paths, options.sample ? { SAMPLE_DIRECTORY: sampleRepositories } : {})
  const keys = new Set<string>()
  const settings = {
    namespace: 'default',
    // A sample that was changed by hand and is applied again goes back to what its file says.
    force: true,
    fieldManager: 'oarlock-cli',
    mayBeNew: definesKinds(manifests),
  }
  const applyOne = async (manifest: Manifest) => {
    try {
      const { object } = await applyManifest(hub.client, manifest, settings)
      if (object.kind === 'Stack') keys.add(objectKey(object))
    } catch (error) {
      const { message, details } = formatError(error)
      note(`${errPaint()('red', 'oarlock:')} ${manifest.from}: ${message}`)
      for (const detail of details) note(`  ${detail}`)
    }
  }
  // What others need comes first; the rest goes together, so that the first Stack does not wait for the last.
  for (const group of applyGroups(manifests)) await Promise.all(group.map(applyOne))
  return keys
}

async function waitUntilReady(watch: FleetWatch, timeoutMs: number, stop: Promise<'signal'>): Promise<number> {
  const late = Promise.withResolvers<'timeout'>()
  const timer = setTimeout(() => late.resolve('timeout'), timeoutMs)
  const outcome = await Promise.race([watch.whenSettled, stop, late.promise])
  clearTimeout(timer)
  watch.freeze()
  const paint = outPaint()
  if (outcome === 'signal') return exitCodes.interrupted
  if (outcome !== 'timeout') {
    for (const line of settledLines(watch, outcome, paint)) print(line)
    return exitCodes.done
  }
  const waiting = watch.rows.filter(({ verdict }) => verdict.kind === 'waiting')
  const lines = [
    ...waiting.map(({ key, verdict }) => `  ${key}: expected ${verdict.expected}, is ${verdict.state} (${verdict.why})`),
    ...watch.unseen.map(key => `  ${key}: applied, not looked at yet`),
  ]
  const total = watch.rows.length + watch.unseen.length
  note(`${errPaint()('red', 'oarlock:')} after ${formatSeconds(timeoutMs)}, ${lines.length} of ${total} Stacks are not as expected:`)
  for (const line of lines) note(line)
  return exitCodes.failed
}

function settledLines(watch: FleetWatch, rows: readonly FleetRow[], paint: Paint): string[] {
  const skipped = rows.filter(({ verdict }) => verdict.kind === 'skipped')
  const first = watch.firstReadyMs === undefined ? '' : `; the first was Ready after ${formatSeconds(watch.firstReadyMs)}`
  return [
    ...(skipped.length > 0 ? ['', 'Not possible on this machine:'] : []),
    ...skipped.map(({ key, verdict }) => `  ${key}: ${verdict.why}`),
    '',
    `${paint('green', summaryText(rows))} after ${formatSeconds(Date.now() - startedMs)}${first}`,
  ]
}

function nextSteps(rows: readonly FleetRow[], paint: Paint): string[] {
  const oarlock = './bin/oarlock'
  const byKey = new Set(rows.map(({ key }) => key))
  const steps: [command: string, what: string, needs?: string][] = [
    [`${oarlock} get stacks -A`, 'what there is'],
    [`${oarlock} logs stack/network -n shop`, 'what terraform said', 'shop/network'],
    [`${oarlock} approve stack/database -n shop`, 'say yes to a plan', 'shop/database'],
    [`${oarlock} describe stack/misspelled -n lab`, 'what a failure looks like', 'lab/misspelled'],
  ]
  const shown = steps.filter(([, , needs]) => needs === undefined || byKey.has(needs))
  const width = Math.max(...shown.map(([command]) => command.length))
  return [
    '',
    'Try, in another terminal:',
    ...shown.map(([command, what]) => `  ${command.padEnd(width)}  ${paint('dim', what)}`),
    '',
    paint('dim', 'Ctrl-C stops it.'),
  ]
}
