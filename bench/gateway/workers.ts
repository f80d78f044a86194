import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Installation } from '../../examples/partitions/installation.ts'
import { startRoles } from '../../examples/partitions/roles.ts'
import { stackResource } from '../../src/api/index.ts'
import { type Client, createClient } from '../../src/kubernetes/client/index.ts'
import { findCondition } from '../../src/kubernetes/object/index.ts'
import { eventually } from '../../test/support/eventually.ts'
import { freePorts } from '../../test/support/free-ports.ts'
import { createTenant } from '../../test/support/gateway/create-tenant.ts'
import type { Bench } from '../run.ts'

const tenantPartitions = ['t1', 't2']
const resourcePartitions = ['r1', 'r2']
const bars = { renewalP99Ms: 1_000, conflictShare: 0.01, watches: 100 }
const readyTimeoutMs = 300_000

/** Hollow workers in two resource partitions, and Runs of Tenants in two tenant partitions: renewals of Leases, conflicts, and open watches. */
export async function workers({
  count,
  stacks,
  perSecond,
}: {
  readonly count: number
  readonly stacks: number
  readonly perSecond: number
}): Promise<Bench> {
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-bench-workers-'))
  const [gatewayPort = 0] = await freePorts(1)
  let installation: Installation | undefined
  let client: Client | undefined
  try {
    installation = await Installation.start({ directory, tenantPartitions, resourcePartitions, gatewayPort })
    client = await createClient({ kubeconfig: installation.kubeconfig, userAgent: 'bench' })
    await startRoles(installation, client, { tenantPartitions, resourcePartitions, workers: 0, hollow: count })
    for (const partition of tenantPartitions) await createTenant(client, `tenant-${partition}`, partition)
    const startMs = performance.now()
    await createStacks(client, stacks, perSecond)
    const watches = await openWatches(installation)
    const open = client
    await eventually(async () => ((await readyStacks(open)) === stacks ? true : undefined), `${stacks} Stacks to be Ready`, readyTimeoutMs)
    const seconds = (performance.now() - startMs) / 1_000
    const conflicts = await conflictsOf(installation)
    const rows: Bench['rows'] = [
      { what: 'Stacks that became Ready', value: stacks, unit: `of 2 Tenants, in ${seconds.toFixed(0)} s`, bar: '', met: '' },
      row('conflicts', (conflicts / stacks) * 100, '% of the Runs', bars.conflictShare * 100),
      row('watches', watches, 'open in the tenant partition that has more', bars.watches),
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
    const about = `${count} hollow workers that renew every 10 s, in 2 resource partitions, and ${stacks} Stacks in 2 tenant partitions, through one gateway on this machine.`
    return { title: 'Workers over partitions', about, rows, failed: rows.some(({ met }) => met === 'no') }
  } finally {
    await client?.close()
    await installation?.stop()
    rmSync(directory, { recursive: true, force: true })
  }
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
    const url = new URL('/metrics', installation.role(name).printed('status page'))
    const response = await fetch(url, { headers: { authorization: `Bearer ${token}` } })
    if (!response.ok) throw new Error(`the metrics of ${name}: status ${response.status}`)
    conflicts += sumOf(await response.text(), /^oarlock_dispatch_conflicts_total\{.*\} (\d+)/gm)
  }
  return conflicts
}

const sumOf = (text: string, samples: RegExp) => [...text.matchAll(samples)].reduce((sum, [, value]) => sum + Number(value), 0)
