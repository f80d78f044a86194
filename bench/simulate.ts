/** `oarlock simulate`: its speed, and its accuracy against a small fleet of real processes. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runResource, stackResource, workerPoolResource, workerResource } from '../src/api/index.ts'
import { defaultProfile, parseSimulationProfile, simulateFleet } from '../src/controllers/simulate/index.ts'
import type { Client } from '../src/kubernetes/client/index.ts'
import { up } from './oarlock-up.ts'
import type { Bench } from './run.ts'

const stacks = 12
const max = 4
const seeds = 40
const shortestMs = 2_000
const longestMs = 3_000

/**
 * Real: 12 new Stacks at the same time whose engine sleeps 2 to 3 s, on a Process pool of 4. The simulation gets two measured values: the start time
 * of a worker, and the overhead of a Run until its slot is free. Compared are the waits and the time until all Runs have finished.
 */
export async function bench(): Promise<Bench> {
  const rows: Bench['rows'] = [speed(), ...(await realRows('OneShot')), ...(await realRows('Warm'))]
  return {
    title: 'Simulated and real',
    about: `A simulated day of 10,000 Stacks (1h, max 200); ${stacks} Stacks of 2 to 3 s on a pool of ${max}, simulated (mean of ${seeds} seeds) and real.`,
    rows,
  }
}

function speed(): Bench['rows'][number] {
  const startedMs = performance.now()
  const cpu = process.cpuUsage()
  const { runEnded } = simulateFleet({ stacks: 10_000, intervalMs: 3_600_000, profile: defaultProfile }, { max: 200 })
  const tookMs = performance.now() - startedMs
  const { user, system } = process.cpuUsage(cpu)
  const what = `10,000 Stacks, 24h, ${runEnded} Runs: s`
  return { what, simulated: tookMs / 1_000, real: '', 'difference %': '', note: `${((user + system) / 1e6).toFixed(1)} s of CPU` }
}

type Round = { waitsMs: number[]; startMs: number; extraMs: number; spanMs: number }

async function realRows(lifecycle: 'OneShot' | 'Warm'): Promise<Bench['rows']> {
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-bench-'))
  const process = await up(join(directory, 'data'))
  try {
    const { client } = process
    // The first workers fill the compile cache.
    await play(client, 'warm-up', lifecycle, max)
    const real = await play(client, 'real', lifecycle, stacks)
    const simulated = predict(real, lifecycle)
    const row = (what: string, simulatedMs: number, realMs: number) => ({
      what: `${lifecycle}: ${what}`,
      simulated: simulatedMs / 1_000,
      real: realMs / 1_000,
      'difference %': 100 * (simulatedMs / realMs - 1),
      note: `start ${Math.round(real.startMs)} ms, overhead ${Math.round(real.extraMs)} ms`,
    })
    return [
      row('mean wait s', simulated.waitMs, mean(real.waitsMs)),
      row('longest wait s', simulated.longestMs, Math.max(...real.waitsMs)),
      row('all done s', simulated.spanMs, real.spanMs),
    ]
  } finally {
    await process.stop()
    rmSync(directory, { recursive: true, force: true })
  }
}

function predict({ startMs, extraMs }: Round, lifecycle: 'OneShot' | 'Warm'): { waitMs: number; longestMs: number; spanMs: number } {
  const profile = parseSimulationProfile({
    phases: { preparing: ms(extraMs), applying: { p0: ms(shortestMs), p100: ms(longestMs) } },
    changesPerStackPerDay: 0,
    failureShare: 0,
    workerStart: ms(startMs),
  })
  const results = Array.from({ length: seeds }, (_, seed) =>
    simulateFleet({ stacks, intervalMs: undefined, profile, hours: 1, initialState: 'New', seed }, { max, lifecycle }),
  )
  return {
    waitMs: mean(results.map(({ wait }) => wait.all.meanMs)),
    longestMs: mean(results.map(({ wait }) => wait.all.maxMs)),
    spanMs: mean(results.map(({ lastEndMs }) => lastEndMs)),
  }
}

/** Times at which a watcher observed a Run: creation, assignment and end. */
type Observation = { madeMs: number; assignedMs: number; endedMs: number; worker: string }

async function play(client: Client, name: string, lifecycle: 'OneShot' | 'Warm', count: number): Promise<Round> {
  const pool = `${lifecycle.toLowerCase()}-${name}`
  await client.resource(workerPoolResource).create({ metadata: { name: pool }, spec: { mode: 'Process', lifecycle, max } })
  const seen = new Map<string, Observation>()
  const deletedMs = new Map<string, number>()
  const abort = new AbortController()
  const isDone = () => {
    const runs = [...seen.values()]
    const areDeleted = lifecycle === 'Warm' || runs.every(({ worker }) => deletedMs.has(worker))
    return runs.length === count && runs.every(({ endedMs }) => endedMs > 0) && areDeleted
  }
  const watching = Promise.all([
    watchAll(client.resource(runResource).watch({ signal: abort.signal }), ({ object }) => {
      if (object.spec?.pool !== pool) return
      const stack = object.spec.stackRef.name
      const nowMs = performance.now()
      const run = seen.get(stack) ?? { madeMs: nowMs, assignedMs: 0, endedMs: 0, worker: '' }
      if (object.spec.workerName && run.assignedMs === 0) Object.assign(run, { assignedMs: nowMs, worker: object.spec.workerName })
      if (object.status?.phase === 'Failed') throw new Error(`Run of ${stack} failed: ${object.status.message}`)
      if (object.status?.phase === 'Succeeded' && run.endedMs === 0) run.endedMs = nowMs
      seen.set(stack, run)
      if (isDone()) abort.abort()
    }),
    watchAll(client.resource(workerResource).watch({ signal: abort.signal }), ({ type, object }) => {
      if (type === 'DELETED') deletedMs.set(object.metadata.name, performance.now())
      if (isDone()) abort.abort()
    }),
  ]).catch((error: unknown) => {
    if (!abort.signal.aborted) throw error
  })
  const sleepMs = (index: number) => shortestMs + ((longestMs - shortestMs) * (index + 0.5)) / count
  const startedMs = performance.now()
  await Promise.all(
    Array.from({ length: count }, (_, index) =>
      client.resource(stackResource).create({
        metadata: { name: `${pool}-${index}`, namespace: 'default' },
        spec: {
          engine: 'command',
          source: { inline: { files: { a: 'a' } } },
          command: { apply: ['sleep', String(sleepMs(index) / 1_000)] },
          pool,
        },
      }),
    ),
  )
  await watching
  const runs = Array.from({ length: count }, (_, index) => ({ ...seen.get(`${pool}-${index}`)!, sleepMs: sleepMs(index) }))
  const assignedMs = ascending(runs.map(run => run.assignedMs))
  // The slot of a one-shot worker is free when its Worker has been deleted.
  const freeMs = ascending(runs.map(({ endedMs, worker }) => deletedMs.get(worker) ?? endedMs))
  const firstMs = ascending(runs.map(run => run.assignedMs - run.madeMs)).slice(0, max)
  const handoverMs = assignedMs.slice(max).map((atMs, index) => atMs - freeMs[index]!)
  const occupiedMs = mean(runs.map(({ assignedMs, endedMs, worker, sleepMs }) => (deletedMs.get(worker) ?? endedMs) - assignedMs - sleepMs))
  const isWarm = lifecycle === 'Warm'
  return {
    waitsMs: runs.map(run => run.assignedMs - run.madeMs),
    startMs: mean(isWarm ? firstMs : [...firstMs, ...handoverMs]),
    extraMs: occupiedMs + (isWarm && handoverMs.length > 0 ? mean(handoverMs) : 0),
    spanMs: freeMs.at(-1)! - startedMs,
  }
}

async function watchAll<Event>(events: AsyncIterable<Event>, see: (event: Event) => void): Promise<void> {
  for await (const event of events) see(event)
}

const ascending = (values: readonly number[]) => values.toSorted((a, b) => a - b)
const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length
const ms = (value: number) => `${Math.round(value)}ms`
