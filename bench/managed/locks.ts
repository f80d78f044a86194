/** A replica is killed or paused while it creates resources, many times, for each lock; what the external system counted is judged. */
import { setTimeout as sleep } from 'node:timers/promises'
import { eventually } from '../../test/support/eventually.ts'
import { type LockName, ManagedFleet, type Pause } from '../../test/support/managed/fleet.ts'
import type { BenchServer, WithServer } from '../managed.ts'
import type { Bench } from '../run.ts'

export type LocksOptions = {
  readonly fault: 'kill' | 'stop'
  readonly locks: readonly LockName[]
  readonly times: number
  readonly leaseMs: number
}

const perTrial = 20

type Row = Record<string, string | number>

/** Each lock with both ways of naming has its own server and replicas, and all run side by side: nearly all of the time is spent waiting for Leases. */
export async function locks(withServer: WithServer, options: LocksOptions): Promise<Bench> {
  const { fault } = options
  const trials = options.locks.flatMap(lock => [true, false].map(isDeterministic => ({ lock, isDeterministic })))
  const rows = await Promise.all(trials.map(trial => withServer(server => trialsOf(server, trial, options))))
  const failed = rows.some(
    row =>
      Number(row.duplicates) > Number(row['of these: the call begun before the pause']) || Number(row['neither ready nor reported']) > 0,
  )
  return {
    title: `Two replicas of a provider; the one that creates is ${fault === 'kill' ? 'killed' : 'paused for longer than its Lease'}`,
    about:
      'The external system accepts duplicates and counts them. Bar: no duplicate but the call already begun; a creation with an unknown result is reported and not repeated.',
    rows,
    failed,
  }
}

async function trialsOf(
  { client, kubeconfig }: BenchServer,
  { lock, isDeterministic }: { lock: LockName; isDeterministic: boolean },
  { fault, times, leaseMs }: LocksOptions,
): Promise<Row> {
  const names = isDeterministic ? 'known before' : 'assigned'
  const settings = { lock, leaseMs, slots: 2, isDeterministic, latencyMs: 60, pollIntervalMs: 2_000, maxConcurrent: 4 }
  const fleet = await ManagedFleet.start(client, kubeconfig, settings)
  try {
    await fleet.add()
    await fleet.add()
    const pauses: Pause[] = []
    for (let time = 0; time < times; time++) {
      const before = fleet.cloud.creations.length
      await fleet.create(Array.from({ length: perTrial }, (_, index) => `r-${time}-${index}`))
      await eventually(() => fleet.cloud.creations.length > before + 1, 'the first creations', 120_000)
      // The one that works: with lock none only the leader does.
      const index = fleet.members.findIndex(({ name }) => name === fleet.cloud.creations.at(-1)?.member)
      if (fault === 'kill') await fleet.kill(index)
      else pauses.push(await fleet.pause(index, leaseMs + 1_500))
      await eventually(() => fleet.isSettled(), 'every resource to be ready, or to report its reason', 120_000)
      process.stderr.write(`${lock}, names ${names}: ${fault} ${time + 1}/${times}, duplicates ${fleet.cloud.duplicates.length}\n`)
    }
    await sleep(500)
    const { duplicates, begunBefore, incomplete, hidden } = await fleet.judge(pauses)
    return {
      ...{ lock, names, fault, times, resources: times * perTrial },
      ...{ duplicates, 'of these: the call begun before the pause': begunBefore },
      ...{ 'creations with an unknown result, reported': incomplete.length, 'neither ready nor reported': hidden.length },
    }
  } finally {
    await fleet.close()
  }
}
