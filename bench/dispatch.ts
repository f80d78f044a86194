/**
 * Time from a change of a Stack until its Run is assigned to a Worker. `--hollow`: at a constant rate, with hollow workers that report Runs to their
 * end: `--workers N`, `--runs-per-second R`, `--stacks N`, `--duration S`. `--sketch`: afterwards the same writes and watches without Oarlock.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { labels, runResource, stackResource, systemNamespace, workerPoolResource, workerResource } from '../src/api/index.ts'
import { type Client, leaseResource } from '../src/kubernetes/client/index.ts'
import { rfc3339Micro } from '../src/kubernetes/object/index.ts'
import { type SketchResult, sketch } from './dispatch-sketch.ts'
import { startHollow } from './leases.ts'
import { up } from './oarlock-up.ts'
import type { Bench } from './run.ts'
import { cpuSecondsOf } from './server-process.ts'

const rounds = 200
const concurrencies = [1, 20]

export async function bench(args: string[]): Promise<Bench> {
  return args.includes('--hollow') ? await benchHollow(args) : await benchIdle()
}

/** All roles of Oarlock in one process; the hollow workers and the changes of Stacks in another. */
async function benchHollow(args: string[]): Promise<Bench> {
  const text = (value: string) => ({ type: 'string', default: value }) as const
  const options = {
    ...{ workers: text('2000'), 'runs-per-second': text('1000'), stacks: text('4000'), duration: text('60') },
    sketch: { type: 'boolean', default: false },
  } as const
  const { values } = parseArgs({ args, strict: false, allowPositionals: true, options })
  const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-bench-'))
  const app = await up(dataDir)
  try {
    const beforeMb = app.rssMb()
    const cpuBefore = app.cpuSeconds()
    const fleet = startHollow([
      ...['--kubeconfig', join(dataDir, 'kubeconfig'), '--workers', String(values.workers), '--stacks', String(values.stacks)],
      ...['--runs-per-second', String(values['runs-per-second']), '--duration', `${values.duration}s`, '--connections', '2', '-o', 'json'],
    ])
    let highestMb = 0
    const samples: CpuSample[] = []
    const sampling = setInterval(() => {
      highestMb = Math.max(highestMb, app.rssMb())
      samples.push({ atMs: Date.now(), serverSeconds: app.cpuSeconds(), fleetSeconds: cpuSecondsOf(fleet.pid) })
    }, 100)
    const { workers, runs, renewals, loadSeconds, loadEndedAtMs, errors } = await fleet.ended.finally(() => clearInterval(sampling))
    if (!runs) throw new Error('bug: oarlock hollow was asked for Runs and reports none')
    const cpu = cpuPerRun(samples, { fromMs: loadEndedAtMs - loadSeconds * 1_000, toMs: loadEndedAtMs }, Math.max(1, runs.succeeded))
    if (values.sketch) {
      const [stacks, runsPerSecond, seconds] = [values.stacks, values['runs-per-second'], values.duration].map(Number) as [
        number,
        number,
        number,
      ]
      const { p50Ms, p99Ms } = runs.changeToAssigned
      const real = { what: 'oarlock up', 'runs/s': runs.succeeded / loadSeconds, 'assigned p50 ms': p50Ms, 'p99 ms': p99Ms }
      return comparison({ ...real, ...cpuColumns(cpu.serverMs, cpu.fleetMs) }, await sketch({ stacks, runsPerSecond, seconds }))
    }
    return {
      title: `Stack change → Run assigned → Succeeded, ${values['runs-per-second']} changes per second requested`,
      about:
        `${workers.registered} hollow workers; every write durable and over TLS. A change that is due while all ${values.stacks} Stacks have a Run is skipped. ` +
        'Runs/s: succeeded Runs, from the first change to the end of the last Run. Memory of the process of Oarlock: before, peak, after. CPU: during these Runs; ' +
        '"with all": also of its start, the registration of the workers and the deletion of the Stacks.',
      rows: [
        {
          changes: runs.changes,
          skipped: runs.skipped,
          succeeded: runs.succeeded,
          'runs/s': runs.succeeded / loadSeconds,
          'assigned p50 ms': runs.changeToAssigned.p50Ms,
          'p99 ms': runs.changeToAssigned.p99Ms,
          'ended p50 ms': runs.changeToEnd.p50Ms,
          'ended p99 ms': runs.changeToEnd.p99Ms,
          'renewal p99 ms': renewals.p99Ms,
          lost: workers.lost,
          errors,
          'before MB': beforeMb,
          'highest MB': highestMb,
          'after MB': app.rssMb(),
          ...cpuColumns(cpu.serverMs, cpu.fleetMs),
          'server with all': ((app.cpuSeconds() - cpuBefore) * 1_000) / Math.max(1, runs.succeeded),
          load: loadavg()[0] ?? 0,
        },
      ],
    }
  } finally {
    await app.stop()
    rmSync(dataDir, { recursive: true, force: true })
  }
}

type CpuSample = { readonly atMs: number; readonly serverSeconds: number; readonly fleetSeconds: number }

/** The CPU time between two times, in milliseconds per Run. */
function cpuPerRun(samples: readonly CpuSample[], { fromMs, toMs }: { fromMs: number; toMs: number }, runs: number) {
  const during = samples.filter(({ atMs }) => atMs >= fromMs && atMs <= toMs)
  const [first, last] = [during[0], during.at(-1)]
  if (!first || !last) throw new Error('the load was too short to measure its CPU time')
  const perRun = (seconds: number) => (seconds * 1_000) / runs
  return {
    serverMs: perRun(last.serverSeconds - first.serverSeconds),
    fleetMs: perRun(last.fleetSeconds - first.fleetSeconds),
  }
}

const cpuColumns = (serverMs: number, clientMs: number) => ({
  'server cpu ms/run': serverMs,
  'clients cpu ms/run': clientMs,
  'all cpu ms/run': serverMs + clientMs,
})

/** How far Oarlock is from the writes and watches that it needs. */
function comparison(real: Bench['rows'][number], { succeeded, seconds, assignedMs, serverCpuMs, clientCpuMs }: SketchResult): Bench {
  const at = (share: number) => assignedMs[Math.min(assignedMs.length - 1, Math.floor(assignedMs.length * share))] ?? 0
  const sketched = { what: 'sketch', 'runs/s': succeeded / seconds, 'assigned p50 ms': at(0.5), 'p99 ms': at(0.99) }
  const rows: Bench['rows'] = [real, { ...sketched, ...cpuColumns(serverCpuMs, clientCpuMs) }]
  const ratio = (column: string) => Number(rows[0]?.[column]) / Number(rows[1]?.[column])
  const columns = ['runs/s', 'assigned p50 ms', 'p99 ms', 'server cpu ms/run', 'clients cpu ms/run', 'all cpu ms/run']
  rows.push({ what: 'ratio', ...Object.fromEntries(columns.map(column => [column, ratio(column)])) })
  return {
    title: 'Dispatch and the same writes and watches without Oarlock',
    about:
      'oarlock up: server and controllers are one process; clients: hollow workers and the load, with their renewals; both while there are Runs. ' +
      'sketch: the embedded server alone, and one process with raw requests.',
    rows,
  }
}

/**
 * The workers are registrations with a Lease in a pool of mode External and execute nothing. This measures the two controllers and the server, with
 * every write durable and over TLS.
 */
async function benchIdle(): Promise<Bench> {
  const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-bench-'))
  const process = await up(dataDir)
  try {
    const rows: Bench['rows'] = []
    for (const concurrency of concurrencies) {
      const latencies = await measure(process.client, concurrency)
      latencies.sort((a, b) => a - b)
      const at = (share: number) => latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))] as number
      rows.push({ 'concurrent changes': concurrency, changes: latencies.length, 'p50 ms': at(0.5), 'p99 ms': at(0.99), 'max ms': at(1) })
    }
    return {
      title: 'Stack change → Run assigned',
      about: 'From before the Stack is created until a watcher sees spec.workerName on its Run; all in one process, load from another.',
      rows,
    }
  } finally {
    await process.stop()
    rmSync(dataDir, { recursive: true, force: true })
  }
}

async function measure(client: Client, concurrency: number): Promise<number[]> {
  const pool = `hollow-${concurrency}`
  await client.resource(workerPoolResource).create({ metadata: { name: pool }, spec: { mode: 'External', max: rounds } })
  const stopHeartbeat = await registerWorkers(client, pool, rounds)

  const assigned = new Map<string, (atMs: number) => void>()
  const abort = new AbortController()
  const watching = (async () => {
    for await (const { object } of client.resource(runResource).watch({ signal: abort.signal })) {
      if (object.spec?.workerName) assigned.get(object.spec.stackRef.name)?.(performance.now())
    }
  })().catch(error => {
    if (!abort.signal.aborted) throw error
  })

  const latencies: number[] = []
  let next = 0
  await Promise.all(
    Array.from({ length: concurrency }, async () => {
      while (next < rounds) {
        const name = `${pool}-${next++}`
        const seen = new Promise<number>(resolve => assigned.set(name, resolve))
        const started = performance.now()
        await client.resource(stackResource).create({
          metadata: { name, namespace: 'default' },
          spec: { engine: 'command', source: { inline: { files: { a: 'a' } } }, command: { apply: ['true'] }, pool },
        })
        latencies.push((await seen) - started)
      }
    }),
  )
  abort.abort()
  stopHeartbeat()
  await watching
  return latencies
}

async function registerWorkers(client: Client, pool: string, count: number): Promise<() => void> {
  const leases = client.resource(leaseResource)
  const names = Array.from({ length: count }, (_, index) => `${pool}-worker-${index}`)
  for (const name of names) {
    await leases.create({
      metadata: { name, namespace: systemNamespace, labels: { [labels.pool]: pool } },
      spec: { holderIdentity: name, leaseDurationSeconds: 10, renewTime: rfc3339Micro(Date.now()) },
    })
    await client.resource(workerResource).create({ metadata: { name }, spec: { pool, slots: 1, lifecycle: 'OneShot' } })
    await client.resource(workerResource).patchStatus(name, { status: { phase: 'Ready' } })
  }
  const stop = new AbortController()
  void (async () => {
    while (!stop.signal.aborted) {
      await sleep(2_000, undefined, { signal: stop.signal }).catch(() => {})
      if (stop.signal.aborted) return
      const renew = { spec: { renewTime: rfc3339Micro(Date.now()) } }
      await Promise.all(names.map(name => leases.patch(name, renew, { type: 'merge', namespace: systemNamespace }))).catch(error =>
        console.error(error),
      )
    }
  })()
  return () => stop.abort()
}
