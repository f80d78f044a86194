import { join, relative } from 'node:path'
import { type AllInOne, DataInUseError, parseAddress, startAllInOne } from '../../app/index.ts'
import { objectKey, parseDuration } from '../../kubernetes/object/index.ts'
import { dataDirectory, findKubeconfig } from '../access.ts'
import { applyManifest } from '../apply-manifests.ts'
import { formatError } from '../cli-error.ts'
import { type ConsoleFlags, consoleSettings } from '../console-options.ts'
import { exitCodes } from '../exit-codes.ts'
import { type FleetRow, formatSeconds, summaryText } from '../fleet/fleet-view.ts'
import { FleetWatch } from '../fleet/watch-fleet.ts'
import { endLeanStart } from '../lean-start.ts'
import { type OpenedLog, openLog } from '../open-log.ts'
import { type AuditFlags, auditOptions } from '../options.ts'
import type { Paint } from '../output/style.ts'
import { packageRoot } from '../package-root.ts'
import { applyGroups, type Manifest, readManifests } from '../read-manifests.ts'
import { makeSampleRepository, sampleDirectory } from '../sample-repository.ts'
import { onShutdownSignal } from '../shutdown-signals.ts'
import { startError } from '../start-error.ts'
import { errPaint, note, outPaint, print } from '../terminal.ts'
import { packageVersion } from '../version.ts'
import { workerLauncher } from '../worker-launcher.ts'
import { definesKinds } from './apply.ts'

export type UpOptions = ConsoleFlags & {
  data?: string
  listen: string
  healthAddress: string
  tlsSan: string[]
  allowPath: string[]
  maxWorkers?: number
  maxRunning?: number
  approvalTimeout: string
  workerLeaseDuration: string
  replaceStores?: boolean
  sample?: boolean
  apply: string[]
  exitWhenReady?: boolean
  timeout: string
  grace: string
  log?: string
  logLevel: string
} & AuditFlags

/** After --exit-when-ready only drift checks and Runs that missed --timeout can still be active. */
const readyGraceMs = 5_000

/** The start of the process: the user waits for the modules to load, too. */
const startedMs = performance.timeOrigin

/** `oarlock up`: runs everything in this process, until a signal or, with --exit-when-ready, the fleet ends it. Returns the exit code. */
export async function up(options: UpOptions): Promise<number> {
  const stopRequested = Promise.withResolvers<'signal'>()
  let app: AllInOne | undefined
  let isStopping = false
  let isInterrupted = false
  const removeSignalHandlers = onShutdownSignal(count => {
    if (isInterrupted || count > 2) process.exit(exitCodes.interrupted)
    // The first signal during a shutdown that has another cause is the one that its message asks for.
    if (isStopping || count === 2) {
      note('interrupting Runs so that they save their state (press Ctrl-C again to force)')
      isInterrupted = true
      app?.interrupt()
    } else stopRequested.resolve('signal')
  })
  const dataDir = dataDirectory(options.data)
  const sampleRepositories = join(dataDir, 'sample')
  const log = openLog(options, dataDir, { held: true })
  let repository: Promise<void> | undefined
  const onLocked = () => {
    log.begin()
    repository = options.sample ? makeSampleRepository(sampleRepositories) : undefined
    repository?.catch(() => {})
  }
  app = await start(options, dataDir, { ownPaths: options.sample ? [sampleRepositories] : [], log, onLocked })
  endLeanStart()
  try {
    const paint = outPaint()
    for (const line of banner(app, dataDir, paint)) print(line)
    if (app.copiedFrom) note(copyWarning(app.copiedFrom))
    await repository
    const applied = await applyAll(app, options, sampleRepositories)
    if (applied.size === 0 && (options.sample || options.apply.length > 0)) {
      await app.stop({ graceMs: 0 })
      return exitCodes.rejected
    }
    const watch = new FleetWatch({
      stacks: app.stacks,
      runs: app.runs,
      keys: applied.size > 0 ? applied : undefined,
      stream: process.stdout,
      paint,
      startedMs,
    })
    const showsFleet = options.exitWhenReady === true || applied.size > 0
    if (showsFleet) watch.start()
    let exitCode: number = exitCodes.done
    if (options.exitWhenReady) exitCode = await waitUntilReady(watch, parseDuration(options.timeout), stopRequested.promise)
    else {
      if (showsFleet) {
        const settled = await Promise.race([watch.whenSettled, stopRequested.promise])
        watch.freeze()
        if (settled !== 'signal')
          for (const line of [...settledLines(watch, settled, paint), ...nextSteps(settled, dataDir, paint)]) print(line)
      }
      await stopRequested.promise
    }
    watch.stop()
    isStopping = true
    await app.stop({
      graceMs: options.exitWhenReady ? readyGraceMs : parseDuration(options.grace),
      onProgress: running =>
        note(`waiting for ${running === 1 ? '1 worker' : `${running} workers`} to finish (press Ctrl-C again to interrupt)`),
    })
    if (!options.exitWhenReady) print('stopped; the next start resumes from the stored state')
    return isInterrupted ? exitCodes.interrupted : exitCode
  } catch (error) {
    await app.stop({ graceMs: 0 })
    throw error
  } finally {
    removeSignalHandlers()
    log.close()
  }
}

const copyWarning = ({ host, path }: { host: string; path: string }) =>
  `warning: this data directory was copied from ${path} on ${host}: do not start "oarlock up" there again, because both would apply the same Stacks`

async function start(
  options: UpOptions,
  dataDir: string,
  { ownPaths, log, onLocked }: { ownPaths: string[]; log: OpenedLog; onLocked(): void },
): Promise<AllInOne> {
  try {
    return await startAllInOne({
      dataDir,
      listen: parseAddress(options.listen),
      healthAddress: parseAddress(options.healthAddress),
      names: options.tlsSan,
      allowPaths: [...options.allowPath, ...ownPaths],
      pool: { max: options.maxWorkers },
      maxRunning: options.maxRunning,
      approvalTimeoutMs: parseDuration(options.approvalTimeout),
      workerLeaseMs: parseDuration(options.workerLeaseDuration),
      replaceStores: options.replaceStores === true,
      console: consoleSettings(options, 'up'),
      audit: auditOptions(options, dataDir),
      launcher: workerLauncher,
      version: packageVersion(),
      log: log.logger,
      onLocked,
    })
  } catch (error) {
    if (!(error instanceof DataInUseError)) log.begin()
    throw startError(error, 'up')
  }
}

function banner(app: AllInOne, dataDir: string, paint: Paint): string[] {
  const row = (name: string, value: string) => `  ${paint('dim', name.padEnd(11))} ${value}`
  return [
    `${paint('bold', `oarlock ${packageVersion()}`)} is up ${paint('dim', `after ${formatSeconds(Date.now() - startedMs)}`)}`,
    row('API', app.apiUrl),
    // The link has a token, which is not for logs.
    row('console', process.stdout.isTTY ? app.consoleLink() : `${app.httpUrl}/console/`),
    row('health', app.httpUrl),
    row('kubeconfig', app.kubeconfigPath),
    row('data', dataDir),
    '',
  ]
}

/** Applies the sample and the files of --apply; returns the keys of their Stacks. */
async function applyAll(app: AllInOne, options: UpOptions, sampleRepositories: string): Promise<Set<string>> {
  const paths = [...(options.sample ? [sampleDirectory] : []), ...options.apply]
  if (paths.length === 0) return new Set()
  const manifests = await readManifests(paths, options.sample ? { SAMPLE_DIRECTORY: sampleRepositories } : {})
  const keys = new Set<string>()
  const settings = {
    namespace: 'default',
    // Applying a sample again resets manual changes to it.
    force: true,
    fieldManager: 'oarlock-cli',
    mayBeNew: definesKinds(manifests),
  }
  const applyOne = async (manifest: Manifest) => {
    try {
      const { object } = await applyManifest(app.client, manifest, settings)
      if (object.kind === 'Stack') keys.add(objectKey(object))
    } catch (error) {
      const { message, details } = formatError(error)
      note(`${errPaint()('red', 'oarlock:')} ${manifest.from}: ${message}`)
      for (const detail of details) note(`  ${detail}`)
    }
  }
  // Groups are applied in order; the objects of one group in parallel, so that the first Stack does not wait for the last.
  for (const group of applyGroups(manifests)) await Promise.all(group.map(applyOne))
  return keys
}

async function waitUntilReady(watch: FleetWatch, timeoutMs: number, stop: Promise<'signal'>): Promise<number> {
  const timedOut = Promise.withResolvers<'timeout'>()
  const timer = setTimeout(() => timedOut.resolve('timeout'), timeoutMs)
  const outcome = await Promise.race([watch.whenSettled, stop, timedOut.promise])
  clearTimeout(timer)
  watch.freeze()
  const paint = outPaint()
  if (outcome === 'signal') return exitCodes.interrupted
  if (outcome !== 'timeout') {
    for (const line of settledLines(watch, outcome, paint)) print(line)
    return exitCodes.done
  }
  const pending = watch.rows.filter(({ outcome }) => outcome.kind === 'pending')
  const lines = [
    ...pending.map(({ key, outcome: { expected, state, reason } }) => `  ${key}: expected ${expected}, got ${state} (${reason})`),
    ...watch.missing.map(key => `  ${key}: applied, not reconciled yet`),
  ]
  const total = watch.rows.length + watch.missing.length
  note(`${errPaint()('red', 'oarlock:')} ${lines.length} of ${total} Stacks are not as expected after ${formatSeconds(timeoutMs)}:`)
  for (const line of lines) note(line)
  return exitCodes.failed
}

function settledLines(watch: FleetWatch, rows: readonly FleetRow[], paint: Paint): string[] {
  const skipped = rows.filter(({ outcome }) => outcome.kind === 'skipped')
  const first = watch.firstReadyMs === undefined ? '' : `; first Stack Ready after ${formatSeconds(watch.firstReadyMs)}`
  return [
    ...(skipped.length > 0 ? ['', 'Skipped on this machine:'] : []),
    ...skipped.map(({ key, outcome }) => `  ${key}: ${outcome.reason}`),
    '',
    `${paint('green', summaryText(rows))} after ${formatSeconds(Date.now() - startedMs)}${first}`,
  ]
}

/** The path of the launcher, in a form that works in the directory where the user started this process. */
function launcherPath(): string {
  const path = join(packageRoot, 'bin', 'oarlock')
  const fromHere = relative(process.cwd(), path)
  return fromHere.startsWith('..') ? path : `./${fromHere}`
}

function nextSteps(rows: readonly FleetRow[], dataDir: string, paint: Paint): string[] {
  const oarlock = launcherPath()
  const kubeconfig = join(dataDir, 'kubeconfig')
  const keys = new Set(rows.map(({ key }) => key))
  const steps: [command: string, purpose: string, requires?: string][] = [
    // Without it, another command would find another server, or none.
    ...(findKubeconfig(undefined) === kubeconfig ? [] : [[`export KUBECONFIG=${kubeconfig}`, 'use this server'] as [string, string]]),
    [`${oarlock} console${dataDirectory(undefined) === dataDir ? '' : ` --data ${dataDir}`}`, 'open the console in a browser'],
    [`${oarlock} get stacks -A`, 'list the Stacks'],
    [`${oarlock} logs stack/network -n shop`, 'show the output of terraform', 'shop/network'],
    [`${oarlock} approve stack/database -n shop`, 'approve a plan', 'shop/database'],
    [`${oarlock} describe stack/misspelled -n lab`, 'look at a failure', 'lab/misspelled'],
  ]
  const shown = steps.filter(([, , requires]) => requires === undefined || keys.has(requires))
  const width = Math.max(...shown.map(([command]) => command.length))
  return [
    '',
    'Next steps, in another terminal:',
    ...shown.map(([command, purpose]) => `  ${command.padEnd(width)}  ${paint('dim', purpose)}`),
    '',
    paint('dim', 'Press Ctrl-C to stop.'),
  ]
}
