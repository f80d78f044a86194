/** 5 replicas against 1: the same objects, the same CPU in each reconcile, each replica held to the same share of a core. */
import { setTimeout as sleep } from 'node:timers/promises'
import { leaseResource } from '../../src/kubernetes/client/index.ts'
import { CpuShare } from './cpu-share.ts'
import { rootResource } from './kinds.ts'
import { monotonicMs } from './messages.ts'
import { each, Fleet, namespace, rootName } from './replicas.ts'

export type ThroughputOptions = { objects: number; cpuMs: number; share: number; rounds: number; replicas: number }

type Round = { perSecond: number; cpuMsEach: number; throttled: number }

/** Alternating runs; each changes every object once without a limit, so that all code is compiled, and then once with it, which is measured to the last write of a status. */
export async function throughput(options: ThroughputOptions): Promise<Record<string, string | number>[]> {
  const { objects, rounds, replicas, cpuMs, share } = options
  const fleet = await Fleet.start()
  try {
    await fleet.createRoots(objects)
    const results: Record<'one' | 'many', Round[]> = { one: [], many: [] }
    let revision = 0
    for (let round = 0; round < rounds; round++) {
      for (const which of round % 2 === 0 ? (['one', 'many'] as const) : (['many', 'one'] as const)) {
        revision += 2
        results[which].push(await one(fleet, which === 'one' ? 1 : replicas, revision, options))
        const { perSecond } = results[which].at(-1)!
        process.stderr.write(`round ${round + 1}: ${which} ${perSecond.toFixed(1)} reconciles/s\n`)
      }
    }
    const rate = (rows: readonly Round[]) => median(rows.map(({ perSecond }) => perSecond))
    const ratio = median(results.many.map(({ perSecond }, index) => perSecond / results.one[index]!.perSecond))
    const row = (count: number, rows: readonly Round[]) => ({
      replicas: count,
      objects,
      'CPU per reconcile, ms': cpuMs,
      'share of a core each': share,
      'reconciles/s, median': Math.round(rate(rows) * 10) / 10,
      lowest: Math.round(Math.min(...rows.map(({ perSecond }) => perSecond)) * 10) / 10,
      highest: Math.round(Math.max(...rows.map(({ perSecond }) => perSecond)) * 10) / 10,
      'CPU used per reconcile, ms': Math.round(median(rows.map(({ cpuMsEach }) => cpuMsEach)) * 100) / 100,
      'periods throttled': Math.round(median(rows.map(({ throttled }) => throttled)) * 100) / 100,
      'ratio, median of pairs': count === 1 ? 1 : Math.round(ratio * 100) / 100,
    })
    return [row(1, results.one), row(replicas, results.many)]
  } finally {
    await fleet.close()
  }
}

async function one(fleet: Fleet, replicas: number, revision: number, options: ThroughputOptions): Promise<Round> {
  const { objects, cpuMs, share } = options
  const shares: CpuShare[] = []
  const started = []
  for (let index = 0; index < replicas; index++) {
    const replica = await fleet.add({ cpuMs, shards: replicas > 1 ? { slots: replicas } : undefined })
    started.push(replica)
  }
  await Promise.all(started.map(replica => replica.started))
  if (replicas > 1) await fleet.untilSettled(replicas)
  await changeAll(fleet, objects, revision - 1)
  const before = await Promise.all(started.map(replica => replica.measure()))
  // From here on: start and warm-up are not what is measured.
  for (const replica of started) {
    const cpu = new CpuShare(replica.member, share)
    cpu.add(replica.child.pid as number)
    shares.push(cpu)
  }
  await sleep(500)
  const beganMs = monotonicMs()
  const endMs = await changeAll(fleet, objects, revision)
  const throttled = Math.max(...shares.map(cpu => cpu.throttled()))
  const after = await Promise.all(started.map(replica => replica.measure()))
  const cpuSeconds = after.reduce((sum, { cpuSeconds: used }, index) => sum + used - before[index]!.cpuSeconds, 0)
  for (const [index, replica] of started.entries()) {
    await replica.kill()
    shares[index]!.remove()
    fleet.remove(replica)
  }
  await removeRing(fleet)
  return { perSecond: objects / ((endMs - beganMs) / 1_000), cpuMsEach: (cpuSeconds * 1_000) / objects, throttled }
}

/** Changes every object; returns when the last one was reconciled. */
async function changeAll(fleet: Fleet, objects: number, revision: number): Promise<number> {
  const roots = fleet.client.resource(rootResource)
  await each(objects, async index => {
    await roots.patch(rootName(index), { spec: { revision } }, { type: 'merge', namespace })
  })
  return await reached(fleet, objects, revision)
}

/** When the last status had this revision, by a watch of this process. */
async function reached(fleet: Fleet, objects: number, revision: number): Promise<number> {
  const done = new Set<string>()
  const abort = new AbortController()
  const roots = fleet.client.resource(rootResource)
  const listed = await roots.listAll({ namespace })
  const see = (name: string, seen: number | undefined) => seen === revision && done.add(name)
  for (const { metadata, status } of listed.items) see(metadata.name, status?.revision)
  if (done.size >= objects) return monotonicMs()
  try {
    for await (const { type, object } of roots.watch({
      namespace,
      resourceVersion: listed.metadata.resourceVersion,
      signal: abort.signal,
    })) {
      if (type === 'MODIFIED' || type === 'ADDED') see(object.metadata.name, object.status?.revision)
      if (done.size >= objects) return monotonicMs()
    }
    throw new Error('the watch ended before all objects were reconciled')
  } finally {
    abort.abort()
  }
}

/** The next round has other members, and starts without their Leases. */
async function removeRing(fleet: Fleet): Promise<void> {
  const leases = fleet.client.resource(leaseResource)
  for (const { metadata } of (await leases.listAll({ namespace })).items) await leases.delete(metadata.name, { namespace })
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}
