import { type Client, configMapResource } from '../../src/kubernetes/client/index.ts'
import type { Bench } from '../run.ts'
import { EventStream } from './event-stream.ts'
import { latenciesOf, openLoop } from './measure.ts'
import { withPartitions } from './with-partitions.ts'

const addedMs = 10
const tenantPartitions = ['t1', 't2', 't3']

/** A watch merged over four partitions: its order at a high rate, and its latency with many clients beside that of a direct watch. */
export async function watch({
  orderPerSecond,
  perSecond,
  clients,
  seconds,
}: {
  readonly orderPerSecond: number
  readonly perSecond: number
  readonly clients: number
  readonly seconds: number
}): Promise<Bench> {
  return await withPartitions(tenantPartitions, async ({ gateway, direct, namespaces }) => {
    let next = 0
    const maps = tenantPartitions.map(name => (direct.get(name) as Client).resource(configMapResource))
    const write = (partitions: number) => (index: number) => {
      const name = tenantPartitions[index % partitions] as string
      return (maps[index % partitions] as (typeof maps)[number]).create({
        metadata: { name: `w-${next++}`, namespace: namespaces.get(name) as string },
        data: { at: String(performance.now()) },
      })
    }
    const rows: Bench['rows'] = []
    const path = async (client: Client) => {
      const { resourceVersion } = (await client.resource(configMapResource).list({ limit: 1 })).metadata
      return `/api/v1/configmaps?watch=true&resourceVersion=${resourceVersion}`
    }
    const run = async (what: string, client: Client, count: number, rate: number, partitions: number) => {
      const from = await path(client)
      const streams = Array.from({ length: count }, () => new EventStream(client, from))
      await Promise.all(streams.map(({ opened }) => opened))
      const writes = await openLoop(seconds, rate, write(partitions))
      const deadlineMs = performance.now() + 30_000
      while (streams.some(({ events }) => events < writes.length) && performance.now() < deadlineMs)
        await new Promise(resolve => setTimeout(resolve, 10))
      const missing = streams.reduce((sum, { events }) => sum + writes.length - events, 0)
      const outOfOrder = streams.reduce((sum, stream) => sum + stream.outOfOrder, 0)
      const { p50Ms, p99Ms } = latenciesOf(streams.flatMap(({ latenciesMs }) => latenciesMs))
      await Promise.all(streams.map(stream => stream.stop()))
      const ofWrites = latenciesOf(writes)
      rows.push({
        ...{ what, clients: count, 'writes/s': rate, events: writes.length * count, missing, 'out of order': outOfOrder },
        ...{ 'p50 ms': p50Ms, 'p99 ms': p99Ms, 'write p99 ms': ofWrites.p99Ms },
      })
      return { isExact: missing === 0 && outOfOrder === 0, p99Ms }
    }
    const order = await run('order: merged over 4 partitions', gateway, 1, orderPerSecond, tenantPartitions.length)
    const before = await run('direct watch of one partition', direct.get('t1') as Client, clients, perSecond, 1)
    const merged = await run('merged over 4 partitions', gateway, clients, perSecond, tenantPartitions.length)
    const failed = !order.isExact || !merged.isExact || merged.p99Ms > before.p99Ms + addedMs
    const about = `Writes go to the partitions directly, for ${seconds} s each. Bars: every event once and in order; p99 within ${addedMs} ms of a direct watch.`
    return { title: 'Merged watches', about, rows, failed }
  })
}
