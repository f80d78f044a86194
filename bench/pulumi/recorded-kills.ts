/**
 * Recorded conversations of the real CLI, cut off at random requests, against the endpoint of a Run and the real state store. What the store must have is
 * read from the requests that were answered, not with the product's own replay.
 */
import { globSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { seededRandom } from '../../src/kubernetes/util/index.ts'
import { parseUntypedDeployment } from '../../src/stores/pulumi/index.ts'
import { acknowledgedState, exchangesOf, type StateSummary, summarize } from '../../test/pulumi/expected-state.ts'
import { decodeRecording, type Recording } from '../../test/pulumi/recording.ts'
import { replayOnRun } from '../../test/pulumi/replay-run.ts'
import { type StacksServer, withStateServerOfStacks } from '../../test/pulumi/run-endpoint.ts'
import type { Bench } from '../run.ts'

/** With updates that create, change, replace, refresh and delete. Not `too-large`, whose limit is none of the state store. */
const names = ['up', 'changes', 'refresh', 'destroy', 'secrets', 'checkpoints']
/** `worker`: with the CLI; its lock is broken by the next Run, once it is declared ended. */
const victims = ['cli', 'worker'] as const
type Victim = (typeof victims)[number]

type KillOutcome = {
  readonly victim: Victim
  readonly acknowledged: number
  readonly inFlight: number
  /** Acknowledged resources and operations in flight that the next Run does not find, and what it finds besides. */
  readonly missing: number
  readonly unexpected: number
  readonly locks: number
}

/** `kills` conversations, of which each is cut off once; the victims take turns. The seed decides where. */
export async function measureRecordedKills(kills: number, seed: number): Promise<Pick<Bench, 'rows' | 'failed'>> {
  const random = seededRandom(seed)
  console.error(`seed ${seed}`)
  const directory = join(import.meta.dirname, '..', '..', 'test', 'pulumi', 'recordings')
  const recordings = globSync(join(directory, '*.jsonl.zst'))
    .filter(file => names.includes(basename(file, '.jsonl.zst')))
    .sort()
    .map(file => decodeRecording(readFileSync(file)))
  const outcomes: KillOutcome[] = []
  await withStateServerOfStacks(async server => {
    for (let index = 0; index < kills; index++) {
      const recording = recordings[Math.floor(random() * recordings.length)] as Recording
      const points = killPoints(recording)
      const until = points[Math.floor(random() * points.length)] as number
      const victim = victims[index % victims.length] as Victim
      const outcome = await killOnce(server, recording, `kill-${index}`, until, victim)
      outcomes.push(outcome)
      const { acknowledged, inFlight, missing, unexpected } = outcome
      console.error(
        `${index + 1}/${kills} ${victim} after request ${until} of ${recording.header.scenario}: ${acknowledged} acknowledged, ${inFlight} in flight, ${missing} missing, ${unexpected} unexpected`,
      )
    }
  })
  return summarizeKills(outcomes)
}

/** After the requests that start, write or end an update: the others do not reach the state. */
function killPoints(recording: Recording): number[] {
  const isWrite = (path: string) => /\/(journalentries|checkpoint|complete|update\/[^/]+)$/.test(path)
  return exchangesOf(recording).flatMap(({ method, path }, index) => (method !== 'GET' && isWrite(path) ? [index + 1] : []))
}

async function killOnce(server: StacksServer, recording: Recording, stack: string, until: number, victim: Victim): Promise<KillOutcome> {
  const { run } = await replayOnRun(server, recording, { stack, until })
  if (victim === 'cli') await run.end()
  else {
    await run.killWorker()
    server.abandoned.add(run.runName)
  }
  const next = await run.takeOver()
  const newest = await next.state.readPulumiState()
  const found = summarize(newest && parseUntypedDeployment(newest.bytes.toString('utf8')).deployment)
  await next.end()
  const expected = acknowledgedState(recording, until)
  const lock = await server.store.currentLock(stack)
  return {
    ...{ victim, acknowledged: expected.resources.length, inFlight: expected.pending.length },
    ...{ missing: difference(expected, found), unexpected: difference(found, expected), locks: lock === undefined ? 0 : 1 },
  }
}

/** How much of `a` is not in `b`. */
function difference(a: StateSummary, b: StateSummary): number {
  const count = (left: readonly string[], right: readonly string[]) => {
    const others = [...right]
    return left.filter(each => {
      const at = others.indexOf(each)
      if (at >= 0) others.splice(at, 1)
      return at < 0
    }).length
  }
  return count(a.resources, b.resources) + count(a.pending, b.pending)
}

function summarizeKills(outcomes: readonly KillOutcome[]): Pick<Bench, 'rows' | 'failed'> {
  const rows = victims.map(victim => {
    const own = outcomes.filter(each => each.victim === victim)
    const sum = (field: Exclude<keyof KillOutcome, 'victim'>) => own.reduce((total, each) => total + each[field], 0)
    return {
      ...{ killed: victim, kills: own.length, acknowledged: sum('acknowledged'), 'in flight': sum('inFlight') },
      ...{ lost: sum('missing'), unexpected: sum('unexpected'), 'locks left': sum('locks') },
    }
  })
  return { rows, failed: outcomes.some(({ missing, unexpected, locks }) => missing + unexpected + locks > 0) }
}
