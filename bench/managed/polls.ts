/** Many resources that are observed at an interval, and what that costs. */
import { setTimeout as sleep } from 'node:timers/promises'
import { ManagedFleet, type Usage } from '../../test/support/managed/fleet.ts'
import type { BenchServer } from '../managed.ts'
import type { Bench } from '../run.ts'

export type PollsOptions = {
  readonly resources: number
  readonly replicas: number
  readonly pollS: number
  readonly rounds: number
  readonly latencyMs: number
  readonly leaseMs: number
  /** Whether a replica is killed in each round. */
  readonly kills: boolean
}

export async function polls({ client, kubeconfig }: BenchServer, options: PollsOptions): Promise<Bench> {
  const { resources, replicas, pollS, rounds, latencyMs, leaseMs, kills } = options
  const settings = {
    lock: 'shard',
    leaseMs,
    slots: replicas,
    isDeterministic: true,
    latencyMs,
    pollIntervalMs: pollS * 1_000,
    maxConcurrent: 40,
  } as const
  const fleet = await ManagedFleet.start(client, kubeconfig, settings)
  try {
    for (let index = 0; index < replicas; index++) await fleet.add()
    const startedMs = performance.now()
    await fleet.createAll(resources)
    const createdS = (performance.now() - startedMs) / 1_000
    process.stderr.write(`created in ${Math.round(createdS)} s\n`)
    // One interval, so that every resource has been polled since.
    await sleep(pollS * 1_000)
    fleet.cloud.forgetIntervals()
    const before = await fleet.measure()
    for (let round = 0; round < rounds; round++) {
      if (kills) await fleet.kill(round % fleet.members.length)
      await sleep(pollS * 1_000)
      process.stderr.write(`round ${round + 1}/${rounds}\n`)
    }
    const after = await fleet.measure()
    const longest = fleet.cloud.intervalsMs(resources).sort((a, b) => a - b)
    const at = (share: number) =>
      Math.round((longest[Math.min(longest.length - 1, Math.floor(share * longest.length))] ?? Number.NaN) / 100) / 10
    const bar = pollS * 1.2 + (kills ? leaseMs / 1_000 + 2 : 0)
    const cpu = kills ? Number.NaN : total(after, 'cpuSeconds') - total(before, 'cpuSeconds')
    const round2 = (value: number) => Math.round(value * 100) / 100
    const row = {
      ...{ resources, replicas, 'poll, s': pollS, 'call, ms': latencyMs, kills: kills ? rounds : 0, 'created in, s': Math.round(createdS) },
      ...{ 'longest interval of a resource p50, s': at(0.5), 'p99, s': at(0.99), 'max, s': at(1), 'bar, s': round2(bar) },
      ...{ duplicates: fleet.cloud.duplicates.length, 'RSS per 1,000, MB': round2((total(after, 'rssMb') / resources) * 1_000) },
      ...{ 'heap per 1,000, MB': round2((total(after, 'heapMb') / resources) * 1_000) },
      ...{ 'CPU per 1,000, % of a core': Number.isNaN(cpu) ? '-' : round2((cpu / (rounds * pollS) / resources) * 1_000 * 100) },
    }
    return {
      title: 'Managed resources that are observed at an interval',
      about:
        'Sharded replicas, names known before. Bar: the longest time between two observations of a resource is 1.2 intervals, with kills Lease + 2 s more; no duplicates.',
      rows: [row],
      failed: !(at(1) <= bar) || fleet.cloud.duplicates.length > 0,
    }
  } finally {
    await fleet.close()
  }
}

const total = (usages: readonly Usage[], field: keyof Usage): number => usages.reduce((sum, usage) => sum + usage[field], 0)
