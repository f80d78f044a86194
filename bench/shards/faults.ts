/** Members of a ring under load are killed, paused, cut off, or restarted one after the other; a ledger of their reconciles is judged. */
import { setTimeout as sleep } from 'node:timers/promises'
import { rootResource } from './kinds.ts'
import { judge, type LedgerResult, type Pause } from './ledger.ts'
import { monotonicMs } from './messages.ts'
import { Fleet, namespace, type Replica } from './replicas.ts'
import { median } from './throughput.ts'

export type FaultOptions = { members: number; keys: number; times: number; leaseMs: number; intervalMs: number }

export const faultNames = ['kill', 'stop', 'cut', 'restart'] as const
export type FaultName = (typeof faultNames)[number]

export async function faults(fault: FaultName, options: FaultOptions): Promise<Record<string, string | number>[]> {
  const { members, keys, times, leaseMs } = options
  const fleet = await Fleet.start()
  try {
    await fleet.createRoots(keys)
    for (let index = 0; index < members; index++) await join(fleet, options)
    await fleet.untilSettled(members)
    // Every key once more by its owner: otherwise the last move of the start would count as one of the first trial.
    await sleep(2 * options.intervalMs)
    const fences = await followFences(fleet)
    const trials: LedgerResult[] = []
    const settleMs: number[] = []
    for (let time = 0; time < times; time++) {
      const { pauses, fromMs, settledMs } = fault === 'restart' ? await restartAll(fleet, options) : await trial(fleet, fault, options)
      // Every key again at its interval: one that has no owner yet has not been.
      await sleep(2 * options.intervalMs)
      const untilMs = monotonicMs()
      const result = judge(fleet.entries, pauses, { fromMs, untilMs })
      trials.push(result)
      settleMs.push(settledMs)
      const { longestGapMs, overlaps, begunBefore, lowerFences, mostMoves } = result
      process.stderr.write(
        `${fault} ${time + 1}/${times}: gap ${Math.round(longestGapMs)} ms, settled ${Math.round(settledMs)} ms, overlaps ${overlaps} (${begunBefore} begun before), lower fences ${lowerFences}, moves ${mostMoves}\n`,
      )
      // What ended before this trial cannot overlap with the next one.
      fleet.entries.splice(0, fleet.entries.length - keys * members)
    }
    const written = await fences.stop()
    const sum = (key: 'reconciles' | 'overlaps' | 'begunBefore' | 'allowedBefore' | 'lowerFences') =>
      trials.reduce((total, each) => total + each[key], 0)
    const idle = trials.map(({ longestGapMs }) => Math.max(0, longestGapMs - options.intervalMs) / 1_000)
    const round = (value: number) => Math.round(value * 100) / 100
    return [
      {
        fault,
        times,
        members,
        keys,
        'Lease, s': leaseMs / 1_000,
        reconciles: sum('reconciles'),
        'two at work on a key': sum('overlaps'),
        'of these: the call begun before the pause': sum('begunBefore'),
        'began with a lower fence': sum('lowerFences'),
        'allowed before the pause, begun after it': sum('allowedBefore'),
        'writes accepted': written.writes,
        'writes of a lower fence': written.lower,
        'key idle p50, s': round(median(idle)),
        'max, s': round(Math.max(...idle)),
        'settled p50, s': round(median(settleMs) / 1_000),
        'most moves of a key': Math.max(...trials.map(({ mostMoves }) => mostMoves)),
      },
    ]
  } finally {
    await fleet.close()
  }
}

async function join(fleet: Fleet, { members, leaseMs, intervalMs }: FaultOptions): Promise<Replica> {
  const replica = await fleet.add({
    ...{ intervalMs, reports: true, cpuMs: 0.2 },
    shards: {
      slots: members,
      leaseDurationMs: leaseMs,
      renewDeadlineMs: Math.round(leaseMs * 0.66),
      retryPeriodMs: Math.round(leaseMs / 10),
      releaseGraceMs: 500,
    },
  })
  await replica.started
  return replica
}

type Trial = { pauses: Pause[]; fromMs: number; settledMs: number }

async function trial(fleet: Fleet, fault: 'kill' | 'stop' | 'cut', options: FaultOptions): Promise<Trial> {
  const { members, leaseMs } = options
  const victim = fleet.replicas[Math.floor(Math.random() * fleet.replicas.length)]!
  await sleep(Math.random() * options.intervalMs)
  const fromMs = monotonicMs()
  if (fault === 'kill') {
    await victim.kill()
    fleet.remove(victim)
    await join(fleet, options)
    await fleet.untilSettled(members, victim)
    return { pauses: [], fromMs, settledMs: monotonicMs() - fromMs }
  }
  // Longer than its Lease: another member takes its keys meanwhile.
  const pauseMs = leaseMs + 3_000
  if (fault === 'stop') victim.signal('SIGSTOP')
  else victim.proxy.cut()
  await sleep(pauseMs)
  const toMs = monotonicMs()
  if (fault === 'stop') victim.signal('SIGCONT')
  else victim.proxy.restore()
  await fleet.untilSettled(members)
  return { pauses: [{ member: victim.member, fromMs, toMs }], fromMs, settledMs: monotonicMs() - toMs }
}

/** Stops one member gracefully and starts its replacement when it has ended, as a StatefulSet does, then the next. */
async function restartAll(fleet: Fleet, options: FaultOptions): Promise<Trial> {
  const fromMs = monotonicMs()
  for (const replica of [...fleet.replicas]) {
    await replica.stop()
    fleet.remove(replica)
    await join(fleet, options)
    await fleet.untilSettled(options.members)
  }
  return { pauses: [], fromMs, settledMs: monotonicMs() - fromMs }
}

/** Follows every write that the API server accepted, in its order: the fence of a key never goes down. */
async function followFences(fleet: Fleet): Promise<{ stop(): Promise<{ writes: number; lower: number }> }> {
  const abort = new AbortController()
  const highest = new Map<string, number>()
  const result = { writes: 0, lower: 0 }
  const roots = fleet.client.resource(rootResource)
  const { metadata } = await roots.listAll({ namespace })
  const following = (async () => {
    for await (const { type, object } of roots.watch({ namespace, resourceVersion: metadata.resourceVersion, signal: abort.signal })) {
      if (type !== 'MODIFIED') continue
      const fence = object.status?.fence ?? 0
      result.writes++
      if (fence < (highest.get(object.metadata.name) ?? 0)) result.lower++
      highest.set(object.metadata.name, fence)
    }
  })().catch(error => {
    if (!abort.signal.aborted) throw error
  })
  return {
    stop: async () => {
      abort.abort()
      await following
      return result
    },
  }
}
