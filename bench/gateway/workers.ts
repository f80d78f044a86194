import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Installation } from '../../examples/partitions/installation.ts'
import { startRoles } from '../../examples/partitions/roles.ts'
import { runResource, stackResource, workerPoolResource } from '../../src/api/index.ts'
import { type Client, createClient } from '../../src/kubernetes/client/index.ts'
import { findCondition } from '../../src/kubernetes/object/index.ts'
import { eventually } from '../../test/support/eventually.ts'
import { freePorts } from '../../test/support/free-ports.ts'
import { createTenant } from '../../test/support/gateway/create-tenant.ts'
import type { Bench } from '../run.ts'

const tenantPartitions = ['t1', 't2']
const resourcePartitions = ['r1', 'r2']
const bars = { renewalP99Ms: 1_000, conflictShare: 0.01, watches: 100 }
const sampleEveryMs = 5_000

/**
 * Hollow workers in two resource partitions, and Runs of Tenants in two tenant partitions: renewals of Leases, conflicts, and open watches. Runs take as long as it
 * takes for `load` of all slots to be used at this rate, and more of them come for as long again.
 */
export async function workers({
  count,
  perSecond,
  load,
}: {
  readonly count: number
  readonly perSecond: number
  /** 0 < load ≤ 1 */
  readonly load: number
}): Promise<Bench> {
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-bench-workers-'))
  const [gatewayPort = 0] = await freePorts(1)
  const loadBefore = loadavg()[0]
  const runSeconds = (load * count) / perSecond
  const stacks = Math.ceil(perSecond * runSeconds * 2)
  const hollowProfile = join(directory, 'profile.json')
  writeFileSync(hollowProfile, JSON.stringify({ phases: { applying: spreadAround(runSeconds) } }))
  let installation: Installation | undefined
  let client: Client | undefined
  try {
    installation = await Installation.start({ directory, tenantPartitions, resourcePartitions, gatewayPort })
    client = await createClient({ kubeconfig: installation.kubeconfig, userAgent: 'bench' })
    await startRoles(installation, client, { tenantPartitions, resourcePartitions, workers: 0, hollow: count, hollowProfile })
    for (const partition of tenantPartitions) await createTenant(client, `tenant-${partition}`, partition)
    const samples = new Samples(installation, client)
    const startMs = performance.now()
    const isSteady = () => performance.now() - startMs > runSeconds * 1_000
    const creating = createStacks(client, stacks, perSecond)
    const sampling = samples.take(creating, isSteady)
    await creating
    await sampling
    const open = client
    const waitMs = runSeconds * 4_000 + 300_000
    await eventually(async () => ((await readyStacks(open)) === stacks ? true : undefined), `${stacks} Stacks to be Ready`, waitMs)
    const seconds = (performance.now() - startMs) / 1_000
    const conflicts = await conflictsOf(installation)
    const runs = await runsByEnd(client)
    const total = [...runs.values()].reduce((sum, some) => sum + some, 0)
    const rows: Bench['rows'] = [
      { what: 'Stacks that became Ready', value: stacks, unit: `of 2 Tenants, in ${seconds.toFixed(0)} s`, bar: '', met: '' },
      {
        what: 'slots in use',
        value: Math.round(samples.meanBusy * 1_000) / 10,
        unit: `% of ${count}, while Runs end as fast as they come`,
        ...{ bar: '', met: '' },
      },
      ...[...runs].map(([what, value]) => ({ what: `Runs ${what}`, value, unit: `of ${total}`, bar: '', met: '' })),
      row('conflicts', (conflicts / total) * 100, `% of the Runs (${conflicts})`, bars.conflictShare * 100),
      row('watches', samples.mostWatches, 'open at a time in the tenant partition that has more', bars.watches),
    ]
    for (const partition of resourcePartitions) {
      const hollow = installation.role(`hollow-${partition}`)
      await hollow.end('SIGTERM')
      const [, succeeded, late, failed, p50, p99] =
        /renewals\s+(\d+) succeeded, (\d+) late, (\d+) failed; p50 ([\d.]+) ms, p99 ([\d.]+) ms/.exec(hollow.output()) ?? []
      if (p99 === undefined) throw new Error(`the hollow workers of ${partition} reported no renewals:\n${hollow.output()}`)
      rows.push(
        row(
          `renewals in ${partition}, p99`,
          Number(p99),
          `ms; p50 ${p50} ms; ${succeeded} succeeded, ${late} late, ${failed} failed`,
          bars.renewalP99Ms,
        ),
      )
    }
    const about = `${count} hollow workers that renew every 10 s, in 2 resource partitions, and ${stacks} Stacks in 2 tenant partitions at ${perSecond}/s, whose Runs take ${runSeconds.toFixed(0)} s, through one gateway on this machine; load average ${loadBefore?.toFixed(1)} before.`
    return { title: 'Workers over partitions', about, rows, failed: rows.some(({ met }) => met === 'no') }
  } finally {
    await client?.close()
    await installation?.stop()
    rmSync(directory, { recursive: true, force: true })
  }
}

/** With this mean, nearly. */
const spreadAround = (seconds: number) => ({ p0: durationOf(seconds * 0.6), p50: durationOf(seconds), p100: durationOf(seconds * 1.5) })
const durationOf = (seconds: number) => `${Math.max(1, Math.round(seconds * 1_000))}ms`

/** What is read while Stacks are created. */
class Samples {
  mostWatches = 0
  readonly #busy: number[] = []
  readonly #installation: Installation
  readonly #client: Client

  constructor(installation: Installation, client: Client) {
    this.#installation = installation
    this.#client = client
  }

  /** Share of the slots, on average. */
  get meanBusy(): number {
    return this.#busy.reduce((sum, share) => sum + share, 0) / Math.max(1, this.#busy.length)
  }

  async take(during: Promise<unknown>, isSteady: () => boolean): Promise<void> {
    let isOver = false
    const end = () => {
      isOver = true
    }
    during.then(end, end)
    while (!isOver) {
      this.mostWatches = Math.max(this.mostWatches, await openWatches(this.#installation))
      if (isSteady()) await this.#readBusy()
      await sleep(sampleEveryMs)
    }
  }

  async #readBusy(): Promise<void> {
    const { items } = await this.#client.resource(workerPoolResource).listAll({})
    const sum = (count: 'busy' | 'workers') => items.reduce((total, { status }) => total + (status?.[count] ?? 0), 0)
    if (sum('workers') > 0) this.#busy.push(sum('busy') / sum('workers'))
  }
}

/** How many Runs there are of each phase and reason. */
async function runsByEnd(client: Client): Promise<ReadonlyMap<string, number>> {
  const { items } = await client.resource(runResource).listAll({})
  const counts = new Map<string, number>()
  for (const { status } of items) {
    const key = [status?.phase ?? 'Queued', status?.reason].filter(Boolean).join(' ')
    counts.set(key, (counts.get(key) ?? 0) + 1)
  }
  return new Map([...counts].sort(([a], [b]) => a.localeCompare(b)))
}

const row = (what: string, value: number, unit: string, bar: number) => ({
  ...{ what, value: Math.round(value * 100) / 100, unit },
  ...{ bar: `at most ${bar}`, met: value <= bar ? 'yes' : 'no' },
})

/** Half of them in each Tenant, and for the workers of each resource partition. */
async function createStacks(client: Client, stacks: number, perSecond: number): Promise<void> {
  const startMs = performance.now()
  const creations: Promise<unknown>[] = []
  for (let index = 0; index < stacks; index++) {
    const namespace = `tenant-${tenantPartitions[index % 2]}`
    const pool = `hollow-${resourcePartitions[Math.floor(index / 2) % 2]}`
    const spec = {
      engine: 'command',
      pool,
      source: { inline: { files: { 'run.sh': 'true' } } },
      command: { apply: ['sh', 'run.sh'] },
    } as const
    creations.push(client.resource(stackResource).create({ metadata: { namespace, name: `stack-${index}` }, spec } as never))
    const aheadMs = (index / perSecond) * 1_000 - (performance.now() - startMs)
    if (aheadMs > 1) await sleep(aheadMs)
  }
  await Promise.all(creations)
}

async function readyStacks(client: Client): Promise<number> {
  await sleep(1_000)
  const { items } = await client.resource(stackResource).listAll({})
  return items.filter(({ status }) => findCondition(status?.conditions, 'Ready')?.status === 'True').length
}

/** Of the tenant partition that has more. */
async function openWatches(installation: Installation): Promise<number> {
  const counts: number[] = []
  for (const partition of tenantPartitions) {
    const client = await createClient({ kubeconfig: installation.partitionKubeconfig(partition) })
    const text = await (await client.request({ method: 'GET', path: '/metrics' })).text()
    await client.close()
    counts.push(sumOf(text, /^apiserver_longrunning_requests\{.*verb="WATCH".*\} (\d+)/gm))
  }
  return Math.max(...counts)
}

async function conflictsOf(installation: Installation): Promise<number> {
  let conflicts = 0
  for (const partition of tenantPartitions) {
    const name = `controller-${partition}`
    const token = readFileSync(join(installation.directory, name, 'status-token'), 'utf8').trim()
    const url = new URL('/metrics', installation.role(name).printed('health'))
    const response = await fetch(url, { headers: { authorization: `Bearer ${token}` } })
    if (!response.ok) throw new Error(`the metrics of ${name}: status ${response.status}`)
    conflicts += sumOf(await response.text(), /^oarlock_dispatch_conflicts_total\{.*\} (\d+)/gm)
  }
  return conflicts
}

const sumOf = (text: string, samples: RegExp) => [...text.matchAll(samples)].reduce((sum, [, value]) => sum + Number(value), 0)
