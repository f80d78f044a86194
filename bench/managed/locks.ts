/** A replica is killed or paused while it creates resources, many times, for each lock; what the external system counted is judged. */
import { type LockName, ManagedFleet } from '../../test/support/managed/fleet.ts'
import type { Pause } from '../../test/support/managed/judge-duplicates.ts'
import type { BenchServer, WithServer } from '../managed.ts'
import type { Bench } from '../run.ts'

export type LocksOptions = {
  readonly fault: 'kill' | 'stop'
  readonly locks: readonly LockName[]
  readonly times: number
  readonly leaseMs: number
}

const perTrial = 20
const maxConcurrent = 4
const knownBefore = 'known before'

/** Each lock with both ways of naming has its own server and replicas, and all run side by side: nearly all of the time is spent waiting for Leases. */
export async function locks(withServer: WithServer, options: LocksOptions): Promise<Bench> {
  const { fault } = options
  const trials = options.locks.flatMap(lock => [true, false].map(isDeterministic => ({ lock, isDeterministic })))
  const rows = await Promise.all(trials.map(trial => withServer(server => trialsOf(server, trial, options))))
  const failed = rows.some(
    row =>
      row['other duplicates'] !== 0 ||
      row['neither ready nor reported'] !== 0 ||
      row['in flight and not reported'] !== 0 ||
      // The calls of the interrupted replica, and those of the other one if a busy machine keeps it from renewing its Lease: it aborts them.
      row['creations with an unknown result, reported'] > (row.names === knownBefore ? 0 : options.times * 2 * maxConcurrent),
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
) {
  const names = isDeterministic ? knownBefore : 'assigned'
  const settings = { lock, leaseMs, slots: 2, isDeterministic, latencyMs: 60, pollIntervalMs: 1_000, maxConcurrent }
  const fleet = await ManagedFleet.start(client, kubeconfig, settings)
  try {
    await fleet.add()
    await fleet.add()
    const pauses: Pause[] = []
    const counts = { inFlight: 0, silent: 0, incomplete: 0, unaccounted: 0 }
    /** The one that works: with lock none only the leader does. Returns the names whose creation has no answer. */
    const interrupt = async (index: number): Promise<string[]> => {
      if (fault === 'kill') return await fleet.kill(index)
      pauses.push(await fleet.pause(index, leaseMs + 1_500))
      return []
    }
    for (let time = 0; time < times; time++) {
      const creating = fleet.untilCreating(fleet.cloud.creations.length + 1).then(interrupt)
      const created = fleet.create(Array.from({ length: perTrial }, (_, index) => `r-${time}-${index}`))
      const [inFlight] = await Promise.all([creating, created])
      await fleet.settle(120_000)
      const { incomplete, unaccounted } = await fleet.judge(pauses)
      counts.inFlight += inFlight.length
      if (!isDeterministic) counts.silent += inFlight.filter(name => !incomplete.includes(name)).length
      counts.incomplete += incomplete.length
      counts.unaccounted += unaccounted.length
      process.stderr.write(`${lock}, names ${names}: ${fault} ${time + 1}/${times}, duplicates ${fleet.cloud.duplicates.length}\n`)
      await fleet.deleteAll()
    }
    const { duplicates } = await fleet.judge(pauses)
    for (const name of new Set(duplicates.forbidden))
      process.stderr.write(
        `${lock}, names ${names}: ${name} ${JSON.stringify({ creations: fleet.cloud.things.get(name), pauses: pausesAround(fleet.cloud.things.get(name) ?? [], pauses) })}\n`,
      )
    return {
      ...{ lock, names, fault, times, resources: times * perTrial },
      ...(fault === 'kill' && { 'creations in flight at the kill': counts.inFlight }),
      ...{ duplicates: duplicates.total, 'of these: the call begun before the pause': duplicates.begunBefore },
      ...{ 'other duplicates': duplicates.forbidden.length, 'creations with an unknown result, reported': counts.incomplete },
      ...{ 'in flight and not reported': counts.silent, 'neither ready nor reported': counts.unaccounted },
    }
  } finally {
    await fleet.close()
  }
}

/** Those that may have to do with these creations. */
function pausesAround(creations: readonly { readonly receivedMs: number }[], pauses: readonly Pause[]): readonly Pause[] {
  const [from, to] = [
    Math.min(...creations.map(({ receivedMs }) => receivedMs)),
    Math.max(...creations.map(({ receivedMs }) => receivedMs)),
  ]
  return pauses.filter(({ fromMs, toMs }) => toMs + 10_000 > from && fromMs - 10_000 < to)
}
