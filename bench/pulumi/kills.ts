/**
 * Updates of Pulumi programs that are killed at random points, with the real CLI: what is created is recorded by the provider `command` in a ledger that
 * Oarlock does not know.
 */
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Run, runResource, type StackSpec, stackResource, workerResource } from '../../src/api/index.ts'
import type { Client } from '../../src/kubernetes/client/index.ts'
import { seededRandom } from '../../src/kubernetes/util/index.ts'
import { eventually } from '../../test/support/eventually.ts'
import { type LedgerLine, readLedger, record } from '../../test/support/ledger.ts'
import { processesOfRun } from '../../test/support/processes.ts'
import { inDirectory, isReady, lockOf, runsOf, signal, spread, supervisorOf } from '../faults/chain.ts'
import { type Up, up } from '../oarlock-up.ts'
import type { Bench } from '../run.ts'

/**
 * What is killed with SIGKILL. `worker`: with the CLI and the providers of its Run. `oarlock`: every process of Oarlock, the supervisor too; CLI and
 * providers run on until the next Run kills them.
 */
const victims = ['cli', 'worker', 'oarlock'] as const
type Victim = (typeof victims)[number]

const resources = 40
const parallel = 4
const namespace = 'default'

/** Resources that record when their creation begins and ends, and their deletion. Another generation replaces all of them. */
function programOf(ledger: string, generation: number): StackSpec {
  const note = (what: string, index: number) => record(ledger, what, `${generation}.r${index}`)
  const resource = (index: number) => `
  r${index}:
    type: command:local:Command
    properties:
      triggers: [${generation}]
      create: "${note('begin', index)}; sleep 0.1; ${note('done', index)}"
      delete: "${note('deleted', index)}"`
  const files = {
    'Pulumi.yaml': `name: web\nruntime: yaml\nresources:${Array.from({ length: resources }, (_, i) => resource(i)).join('')}\n`,
  }
  return {
    engine: 'pulumi',
    source: { inline: { files } },
    pulumi: { pendingCreates: 'Clear', parallel },
    retry: { initial: '500ms', max: '2s', limit: 1_000 },
  }
}

type KillOutcome = {
  readonly victim: Victim
  readonly inFlight: number
  readonly createdBefore: number
  /** Resources that a Run had created, without being in flight at its end, and that a later Run created again. */
  readonly again: readonly string[]
  /** Resources that were deleted, or that are missing in the state. */
  readonly lost: readonly string[]
  /** Replaced resources that were never deleted. */
  readonly left: number
  /** Processes of the killed Run when the next one had started, and lines that they added to the ledger from then on. */
  readonly overlapping: number
  readonly processes: number
  readonly locks: number
  readonly readyMs: number
}

/** `kills` updates, of which each is killed once; the victims take turns. The seed decides at which points. */
export async function measureKills(kills: number, seed: number): Promise<Pick<Bench, 'rows' | 'failed'>> {
  const random = seededRandom(seed)
  console.error(`seed ${seed}`)
  return await inDirectory(async directory => {
    const dataDir = join(directory, 'data')
    const start = () => up(dataDir, ['--max-workers', '2'])
    const running: { oarlock: Up } = { oarlock: await start() }
    const outcomes: KillOutcome[] = []
    try {
      for (let index = 0; index < kills; index++) {
        const victim = victims[index % victims.length] as Victim
        // Also a moment within the creation, which takes 100 ms.
        const point = { begun: 1 + Math.floor(random() * (resources - 1)), delayMs: Math.floor(random() * 150) }
        const isReplacement = Math.floor(index / victims.length) % 2 === 1
        const name = `kill-${index}`
        const target = { dataDir, ledger: join(directory, 'ledgers', name), name, victim, point, isReplacement }
        const outcome = await killOnce(running, start, target)
        outcomes.push(outcome)
        const { again, lost, createdBefore, inFlight } = outcome
        console.error(
          `${index + 1}/${kills} ${victim}, ${isReplacement ? 'replacement' : 'creation'}, after ${point.begun} begun + ${point.delayMs} ms: ${createdBefore} created, ${inFlight} in flight, again [${again}], lost [${lost}], ${outcome.left} not deleted`,
        )
      }
    } finally {
      await running.oarlock.stop()
    }
    return summarize(outcomes)
  })
}

type Target = {
  readonly dataDir: string
  readonly ledger: string
  readonly name: string
  readonly victim: Victim
  /** When so many creations have begun, and this time later. */
  readonly point: { readonly begun: number; readonly delayMs: number }
  /** The update that is killed replaces the resources, and does not create the first ones. */
  readonly isReplacement: boolean
}

async function killOnce(running: { oarlock: Up }, start: () => Promise<Up>, target: Target): Promise<KillOutcome> {
  const { dataDir, ledger, name, victim, point, isReplacement } = target
  const client = () => running.oarlock.client
  const apply = async (generation: number) => {
    const spec = programOf(ledger, generation)
    await client().resource(stackResource).apply({ metadata: { name, namespace }, spec }, { force: true })
  }
  await apply(1)
  if (isReplacement) {
    await eventually(() => isReady(client(), name), `${name} to be Ready`, 180_000)
    await apply(2)
  }
  const generation = isReplacement ? 2 : 1
  const ofGeneration = (lines: readonly LedgerLine[]) => lines.filter(({ item }) => item.startsWith(`${generation}.`))
  await eventually(
    () => count(ofGeneration(readLedger(ledger)), 'begin') >= point.begun,
    `${name} to have begun ${point.begun} resources`,
    120_000,
  )
  await sleep(point.delayMs)
  const first = (await runsOf(client(), name)).at(-1)
  if (!first) throw new Error(`${name}: no Run`)
  const killedAtMs = Date.now()
  await kill(running, start, dataDir, victim, first)
  const ended = await eventually(() => endedRun(client(), first), `run/${first.metadata.name} to end`, 60_000)
  const next = await eventually(
    async () => (await runsOf(client(), name)).find(run => run.spec.epoch > first.spec.epoch && run.status?.startedAt !== undefined),
    `the next Run of ${name} to start`,
    60_000,
  )
  const processesAtStart = processesOfRun(first.metadata.uid).length
  const linesAtStart = readLedger(ledger).length
  const stack = await eventually(() => isReady(client(), name), `${name} to be Ready`, 180_000)
  const lines = readLedger(ledger)
  const late = lines.slice(linesAtStart).filter(({ runUid }) => runUid === first.metadata.uid)
  const runs = await runsOf(client(), name)
  const created = new Set(lines.filter(({ what, runUid }) => what === 'begin' && runUid === first.metadata.uid).map(({ item }) => item))
  const inState = stack.status?.resources ?? 0
  const deleted = lines.filter(({ what }) => what === 'deleted').map(({ item }) => item)
  return {
    ...{ victim, createdBefore: created.size, inFlight: ended.status?.pendingOperations?.count ?? 0 },
    again: createdAgain(lines, [ended, next, ...runs], killedAtMs),
    lost: [
      ...deleted.filter(item => item.startsWith(`${generation}.`)),
      ...(inState === resources ? [] : [`${inState} of ${resources} in the state`]),
    ],
    left: isReplacement ? resources - new Set(deleted).size : 0,
    overlapping: processesAtStart + late.length,
    processes: (await eventually(() => runs.every(run => processesOfRun(run.metadata.uid).length === 0), 'processes to end', 5_000).catch(
      () => false,
    ))
      ? 0
      : 1,
    locks: Object.keys(await lockOf(client(), name)).length > 0 ? 1 : 0,
    readyMs: Date.now() - killedAtMs,
  }
}

const count = (lines: readonly LedgerLine[], what: string) => lines.filter(line => line.what === what).length

async function endedRun(client: Client, { metadata }: Run): Promise<Run | undefined> {
  const run = await client.resource(runResource).get(metadata.name, { namespace })
  return run.status?.finishedAt === undefined ? undefined : run
}

async function kill(running: { oarlock: Up }, start: () => Promise<Up>, dataDir: string, victim: Victim, run: Run): Promise<void> {
  const { client } = running.oarlock
  const engines = processesOfRun(run.metadata.uid)
  if (victim === 'cli') {
    const cli = engines.find(pid => /^[^\0]*\/pulumi\0/.test(commandLine(pid)))
    // It has just ended: the Run is killed by nothing, which `endedRun` shows.
    if (cli !== undefined) signal(cli, 'SIGKILL')
    return
  }
  if (victim === 'worker') {
    const worker = await client.resource(workerResource).get(run.spec.workerName as string)
    for (const pid of [worker.status?.pid as number, ...engines]) signal(pid, 'SIGKILL')
    return
  }
  const workers = (await client.resource(workerResource).listAll()).items.flatMap(({ status }) => status?.pid ?? [])
  const supervisor = supervisorOf(dataDir)
  for (const pid of [...(supervisor === undefined ? [] : [supervisor]), ...workers]) signal(pid, 'SIGKILL')
  await running.oarlock.kill()
  running.oarlock = await start()
}

function commandLine(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1')
  } catch {
    return ''
  }
}

/**
 * Resources whose creation began in several Runs, although the Run before was not interrupted in it: by what the Run has listed, or because the creation
 * was done a second before the kill, when its entry had been acknowledged.
 */
function createdAgain(lines: readonly LedgerLine[], runs: readonly Run[], killedAtMs: number): string[] {
  const inFlight = new Set(
    runs.flatMap(({ metadata, status }) =>
      (status?.pendingOperations?.operations ?? [])
        .filter(({ type }) => type === 'creating')
        .map(({ urn }) => `${metadata.uid} ${urn.split('::').at(-1)}`),
    ),
  )
  const begun = lines.filter(({ what }) => what === 'begin')
  return begun.flatMap(({ item, runUid }, index) => {
    const isAgain = begun.slice(index + 1).some(later => later.item === item)
    if (!isAgain) return []
    const wasDone = lines.some(
      line => line.what === 'done' && line.item === item && line.runUid === runUid && line.atMs < killedAtMs - 1_000,
    )
    return !wasDone && inFlight.has(`${runUid} ${item.replace(/^\d+\./, '')}`) ? [] : [item]
  })
}

function summarize(outcomes: readonly KillOutcome[]): Pick<Bench, 'rows' | 'failed'> {
  const rows = victims.map(victim => {
    const own = outcomes.filter(each => each.victim === victim)
    const sum = (read: (outcome: KillOutcome) => number) => own.reduce((total, each) => total + read(each), 0)
    const ready = spread(own.map(({ readyMs }) => readyMs / 1_000))
    return {
      killed: victim,
      kills: own.length,
      'created before': sum(each => each.createdBefore),
      'in flight': sum(each => each.inFlight),
      'created again': sum(each => each.again.length),
      lost: sum(each => each.lost.length),
      'not deleted': sum(each => each.left),
      overlapping: sum(each => each.overlapping),
      'processes left': sum(each => each.processes),
      'locks left': sum(each => each.locks),
      'Ready p50 s': Math.round(ready.p50 * 10) / 10,
      'Ready max s': Math.round(ready.max * 10) / 10,
    }
  })
  const isBad = ({ again, lost, left, overlapping, processes, locks }: KillOutcome) =>
    again.length + lost.length + left + overlapping + processes + locks > 0
  return { rows: rows.filter(({ kills }) => kills > 0), failed: outcomes.some(isBad) }
}

/** Undefined if the real CLI and the provider `command` are there. */
export function killsProblem({ PULUMI_BIN: cli } = process.env): string | undefined {
  if (cli === undefined) return 'PULUMI_BIN is not set'
  const provider = join(dirname(cli), 'pulumi-resource-command')
  return existsSync(provider) ? undefined : `${provider} does not exist`
}
