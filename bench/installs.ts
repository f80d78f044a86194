/**
 * 40 Stacks of one npm project in one `oarlock up`: how often its packages are installed after a change in git, how long that takes and how much
 * disk and memory, what a Run that exceeds its memory limit does to the others, and what is left afterwards. With `PULUMI_BIN` also with engine
 * pulumi and the real CLI.
 */
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { parseArgs, promisify } from 'node:util'
import type { Run, Stack, StackSpec } from '../src/api/index.ts'
import { probeIsolation } from '../src/execution/workspace/index.ts'
import { Fleet, megabytesOf } from './installs/fleet.ts'
import { MemorySampler, type MemoryUse } from './installs/memory.ts'
import { components, Project, resourcesUnderMocks } from './installs/project.ts'
import { up } from './oarlock-up.ts'
import type { Bench } from './run.ts'

type Engine = 'command' | 'pulumi'
type Options = { stacks: number; pool: number; installs: number; level: 'Sandbox' | 'Process'; network: 'Private' | 'Host' }
type Row = { what: string; engine: string; value: number; bar: string; 'is met': string }

/** The Stack whose program allocates more than its first limit, and less than the second. */
const victim = 'app-1'
const memoryLimit = '1Gi'
const raisedLimit = '2Gi'
const ballastMb = 1_400
/** Besides what changes from one second to the next, such as the objects of the Runs themselves. */
const flatMb = 48

/** `--stacks N --pool N --installs N --level Sandbox|Process --network Private|Host --engine command|pulumi|both`. */
export async function bench(args: string[]): Promise<Bench> {
  const text = (value: string) => ({ type: 'string', default: value }) as const
  const { PULUMI_BIN: pulumi } = process.env
  const { values } = parseArgs({
    ...{ args, strict: false, allowPositionals: true },
    options: {
      ...{ stacks: text('40'), pool: text('4'), installs: text('4'), level: text('Sandbox'), network: text('Private') },
      engine: text(pulumi === undefined ? 'command' : 'both'),
    },
  })
  const [stacks, pool, installs] = [values.stacks, values.pool, values.installs].map(Number) as [number, number, number]
  const options = { stacks, pool, installs, level: values.level, network: values.network } as Options
  if (options.level === 'Sandbox') {
    const probe = await probeIsolation('Sandbox')
    if (!probe.available) throw new Error(`this machine has no level Sandbox: ${probe.reason}; use --level Process --network Host`)
  }
  const rows: Row[] = []
  if (values.engine !== 'pulumi') rows.push(...(await measure('command', options)))
  if (values.engine !== 'command') {
    if (pulumi === undefined) throw new Error('engine pulumi needs PULUMI_BIN')
    rows.push(...(await measure('pulumi', options)))
  }
  return {
    title: `${stacks} Stacks of one npm project after a change in git, pool of ${pool}`,
    about: `One oarlock up; level ${options.level}, network ${options.network}. Packages: @pulumi/pulumi, @pulumi/aws, @pulumi/kubernetes and a local one. Each install has an empty npm cache, as every Run has. A workspace is ready when its program starts. Memory in MB of 10^6 bytes.`,
    rows,
    failed: rows.some(row => row['is met'] === 'no'),
  }
}

async function measure(engine: Engine, options: Options): Promise<Row[]> {
  const { stacks: stackCount, pool, level, network } = options
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-bench-'))
  const dataDir = join(directory, 'data')
  const shared = join(directory, 'shared')
  const gate = join(shared, 'gate')
  mkdirSync(shared)
  const project = new Project(join(directory, 'project'), engine)
  // Node and npm of the system: those of this checkout are not visible in a sandbox.
  const path = [...(engine === 'pulumi' ? [dirname(process.env.PULUMI_BIN ?? '')] : []), '/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin']
  const oarlock = await up(dataDir, ['--allow-path', directory], {
    ...process.env,
    ...{ PATH: path.join(':'), OARLOCK_SANDBOX_BINDS: shared },
  })
  const fleet = new Fleet(oarlock, dataDir)
  const rows: Row[] = []
  const add = (what: string, value: number, bar = '', isMet = true) => {
    const row = { what, engine, value: Math.round(value * 100) / 100, bar, 'is met': bar === '' ? '' : isMet ? 'yes' : 'no' }
    console.error(`\n${what}: ${row.value}`)
    rows.push(row)
  }
  try {
    await fleet.setPool({
      max: pool,
      allowedNetworks: ['Private', 'None', 'Host'],
      ...(level === 'Sandbox' && { minimumIsolation: level }),
    })
    const specOf = (name: string): StackSpec => ({
      engine,
      source: { git: { url: project.url, branch: 'main' }, interval: '2s' },
      variables: { ...(name === victim && { ballastMb: String(ballastMb) }), ...(engine === 'command' && { gate }) },
      ...(engine === 'command'
        ? { command: { installDependencies: true, apply: ['sh', 'apply.sh'] } }
        : { env: [{ name: 'PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION', value: 'true' }] }),
      isolation: { level, ...(level === 'Sandbox' && { network }) },
      resources: { memory: memoryLimit, autoRaise: { memory: raisedLimit } },
      retry: { initial: '1s' },
      historyLimit: 20,
    })
    const names = Array.from({ length: stackCount }, (_, index) => `app-${index}`)

    /** A commit that changes the packages of all Stacks, until the last workspace is ready: its program starts, and loads nothing. */
    const measureChange = async (lifecycle: 'OneShot' | 'Warm') => {
      const change = project.commit('start', { isShared: true })
      const stacks = await fleet.untilApplied('default', change.commit, stackCount)
      const readySeconds = (Math.max(...stacks.map(startedMs)) - change.atMs) / 1_000
      const runs = await fleet.runsOf('default', change.commit)
      addInstalls(add, lifecycle, runs, stackCount)
      add(`${lifecycle}: from the push until the workspaces of all ${stackCount} Stacks are ready, s`, readySeconds)
      return { commit: change.commit, readySeconds }
    }

    // The store has the packages of the commit before the change.
    const before = project.commit('start')
    await fleet.create('default', names, specOf)
    await fleet.untilApplied('default', before.commit, stackCount)
    await fleet.untilIdle()
    const stored = megabytesOf(join(dataDir, 'cache/dependencies'))

    if (engine === 'command') {
      const sampler = new MemorySampler(oarlock.pid, dataDir)
      const oneShot = await measureChange('OneShot')
      const use = sampler.stop()
      // With lifecycle Warm four workers execute the whole batch, and end 10 s after it.
      await fleet.untilIdle()
      await fleet.setPool({ lifecycle: 'Warm', idleTimeout: '10s' })
      const warm = await measureChange('Warm')
      await fleet.untilIdle()
      await fleet.setPool({ lifecycle: 'OneShot' })

      // A namespace is a trust domain: one install each.
      const alone = Array.from({ length: options.installs }, (_, index) => `alone-${index}`)
      const createdMs = Date.now()
      await Promise.all(alone.map(namespace => fleet.create(namespace, ['app'], specOf)))
      const started: number[] = []
      for (const namespace of alone) {
        const [stack] = await fleet.untilApplied(namespace, warm.commit, 1)
        started.push(startedMs(stack!))
      }
      const aloneSeconds = (Math.max(...started) - createdMs) / 1_000
      const oneAfterAnother = await plainInstalls(project, join(directory, 'plain'), { count: options.installs, concurrent: 1, path })
      const concurrent = await plainInstalls(project, join(directory, 'plain'), { count: pool, concurrent: pool, path })
      const times = (seconds: number, count: number) => (seconds * stackCount) / count
      const baselines = [
        [`${stackCount} installs by npm, ${pool} at a time`, concurrent, pool, 20],
        [`${stackCount} installs by npm, one after another`, oneAfterAnother, options.installs, undefined],
        [`${stackCount} Stacks that share nothing, in the same pool`, aloneSeconds, options.installs, undefined],
      ] as const
      for (const [what, seconds, count] of baselines)
        add(`${what}, s (${count} measured in ${seconds.toFixed(1)} s)`, times(seconds, count))
      for (const [lifecycle, { readySeconds }] of Object.entries({ OneShot: oneShot, Warm: warm })) {
        for (const [what, seconds, count, bar] of baselines) {
          const ratio = times(seconds, count) / readySeconds
          add(`${lifecycle}: ratio to ${what}`, ratio, bar === undefined ? '' : `at least ${bar}`, ratio >= (bar ?? 0))
        }
      }
      addMemory(add, 'one install', use)

      await fleet.untilIdle()
      for (const namespace of alone) await fleet.suspend(namespace, 'app')
      await fleet.setPool({ max: stackCount })
      const hold = project.commit('hold')
      await fleet.untilApplying(hold.commit, stackCount)
      const all = megabytesOf(join(dataDir, 'cache/dependencies')) + megabytesOf(join(dataDir, 'runs')) - stored
      writeFileSync(gate, '')
      await fleet.untilApplied('default', hold.commit, stackCount)
      const one = Math.max(...(await fleet.runsOf('default', hold.commit)).map(({ status }) => status?.dependencies?.bytes ?? 0)) / 1e6
      // Each of the other namespaces has a tree too, and the first of the two changes.
      const disk = all - one * (options.installs + 1)
      add(`disk of ${stackCount} workspaces that exist at the same time, MB`, disk)
      add('disk of one tree, MB', one)
      add('ratio of the disk', disk / one, 'at most 1.2', disk / one <= 1.2)
      await fleet.setPool({ max: pool })
    }

    await fleet.untilIdle()
    const sampler = new MemorySampler(oarlock.pid, dataDir)
    const load = project.commit('load', { isShared: engine === 'pulumi' })
    const stacks = await fleet.untilApplied('default', load.commit, stackCount)
    const convergedSeconds = (Date.now() - load.atMs) / 1_000
    const use = sampler.stop()
    const runs = await fleet.runsOf('default', load.commit)
    if (engine === 'pulumi') addInstalls(add, 'OneShot', runs, stackCount)
    add(`from the push until all ${stackCount} Stacks are Ready, each with its program loaded, s`, convergedSeconds)
    const outputs = stacks.map(({ status }) => (status?.outputs ?? {}) as Record<string, number>)
    if (engine === 'command') {
      const seconds = outputs.map(({ loadSeconds }) => loadSeconds!)
      add(`load of the program (${resourcesUnderMocks} resources under mocks), s: median`, quantile(seconds, 0.5))
    }
    const unloaded = outputs.filter(({ resources }) => resources !== resourcesUnderMocks).length
    add(`Stacks whose program did not report ${resourcesUnderMocks} resources`, unloaded, '0', unloaded === 0)
    if (engine === 'pulumi') {
      const different = stacks.filter(({ status }) => status?.resources !== components).length
      add(`Stacks whose state has not exactly ${components} resources`, different, '0', different === 0)
      const seconds = runs.filter(isSucceeded).map(runSeconds)
      add('a Run (preview and update), s: median', quantile(seconds, 0.5))
    }
    addMemory(add, `${stackCount} program loads`, use)
    addOutOfMemory(add, runs, stackCount)
    const locks = await fleet.locks('default')
    add('locks left', locks, '0', locks === 0)
    const idle = await fleet.untilIdle()
    const idleSeconds = (Date.now() - load.atMs) / 1_000 - convergedSeconds
    const left = idle.workers + idle.processes
    add(`workers and their processes ${idleSeconds.toFixed(0)} s after the last Stack was Ready`, left, '0', left === 0)
    return rows
  } finally {
    await oarlock.stop()
    rmSync(directory, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 })
  }
}

/**
 * Installs of the project by npm itself, as an operator without shared packages executes them, each with an empty cache in a directory of its own.
 * Resolves with the seconds that all took.
 */
async function plainInstalls(
  project: Project,
  directory: string,
  { count, concurrent, path }: { count: number; concurrent: number; path: readonly string[] },
): Promise<number> {
  const workspaces = Array.from({ length: count }, (_, index) => join(directory, `${index}`))
  for (const workspace of workspaces) project.cloneTo(join(workspace, 'project'))
  const startedMs = performance.now()
  const install = async (workspace: string) => {
    const env = { PATH: path.join(':'), HOME: workspace, npm_config_cache: join(workspace, 'cache') }
    await promisify(execFile)('npm', ['ci', '--no-audit', '--no-fund', '--no-update-notifier'], { cwd: join(workspace, 'project'), env })
  }
  for (let index = 0; index < count; index += concurrent) await Promise.all(workspaces.slice(index, index + concurrent).map(install))
  const seconds = (performance.now() - startedMs) / 1_000
  rmSync(directory, { recursive: true, force: true })
  return seconds
}

type Add = (what: string, value: number, bar?: string, isMet?: boolean) => void

function addInstalls(add: Add, lifecycle: string, runs: readonly Run[], stackCount: number): void {
  const dependencies = runs.flatMap(({ status }) => (status?.dependencies ? [status.dependencies] : []))
  const installed = dependencies.filter(({ source }) => source === 'Installed')
  const found = dependencies.filter(({ source }) => source === 'Cached').map(({ seconds }) => seconds)
  add(`${lifecycle}: installs for ${stackCount} Stacks`, installed.length, 'at most 1', installed.length === 1)
  add(`${lifecycle}: the install, s`, Math.max(...installed.map(({ installSeconds }) => installSeconds)))
  for (const [name, q] of [
    ['median', 0.5],
    ['p95', 0.95],
  ] as const)
    add(`${lifecycle}: each further workspace, s: ${name}`, quantile(found, q), 'at most 0.5', quantile(found, q) <= 0.5)
}

function addMemory(add: Add, during: string, { controlPlane, controlPlanePss, all, workers }: MemoryUse): void {
  const growth = controlPlane.highest - controlPlane.before
  add(`oarlock up during ${during}, RSS: before, MB`, controlPlane.before)
  add(`oarlock up during ${during}, RSS: highest, MB`, controlPlane.highest, `at most ${flatMb} more`, growth <= flatMb)
  add(`oarlock up during ${during}, RSS: after, MB`, controlPlane.after)
  add(`oarlock up during ${during}, PSS: highest, MB`, controlPlanePss.highest)
  add(`everything during ${during} (up to ${workers} workers), PSS: highest, MB`, all)
}

/** One Run exceeds its memory, and only that one fails. */
function addOutOfMemory(add: Add, runs: readonly Run[], stackCount: number): void {
  const failed = runs.filter(run => !isSucceeded(run))
  for (const { metadata, status } of failed) console.error(`\n${metadata.name}: ${status?.phase} ${status?.reason} ${status?.message}`)
  const ofVictim = failed.filter(({ spec }) => spec.stackRef.name === victim)
  const isOutOfMemory = ofVictim.length === 1 && ofVictim[0]?.status?.reason === 'OutOfMemory'
  add('Runs of the Stack that exceeds its memory that failed with OutOfMemory', ofVictim.length, '1', isOutOfMemory)
  add('other Runs that failed', failed.length - ofVictim.length, '0', failed.length === ofVictim.length)
  const retries = runs.filter(run => run.spec.stackRef.name === victim && isSucceeded(run))
  const isRaised = retries.length === 1 && retries[0]?.spec.stack.resources?.memory === raisedLimit
  add(`its retries, with ${raisedLimit} instead of ${memoryLimit}`, retries.length, '1', isRaised)
  add('Runs in all', runs.length, `${stackCount + 1}`, runs.length === stackCount + 1)
}

const isSucceeded = ({ status }: Run): boolean => status?.phase === 'Succeeded'
const runSeconds = ({ status }: Run): number => (Date.parse(status?.finishedAt ?? '') - Date.parse(status?.startedAt ?? '')) / 1_000
const startedMs = ({ status }: Stack): number => Number((status?.outputs as { startedMs?: number } | undefined)?.startedMs)

function quantile(values: readonly number[], q: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? Number.NaN
}
