import { type Client, configMapResource } from '../../src/kubernetes/client/index.ts'
import type { Bench } from '../run.ts'
import { EventStream } from './event-stream.ts'
import { closedLoop, type Latencies, latenciesOf, median, openLoop } from './measure.ts'
import { withPartitions } from './with-partitions.ts'

const addedMs = 0.5
const addedShare = { p50: 0.15, p99: 0.25 }

/** Added latency of get, write and event at `load` of the direct maximum: alternating runs, direct and through the gateway. */
export async function latency({
  rounds,
  seconds,
  load,
}: {
  readonly rounds: number
  readonly seconds: number
  readonly load: number
}): Promise<Bench> {
  return await withPartitions(['t1', 't2'], async ({ gateway, direct, namespaces }) => {
    const namespace = namespaces.get('t1') as string
    const past = direct.get('t1') as Client
    const configMaps = (client: Client) => client.resource(configMapResource)
    await configMaps(past).create({ metadata: { name: 'read', namespace }, data: { text: 'x'.repeat(1_000) } })
    let next = 0
    const write = (client: Client) => () =>
      configMaps(client).create({
        metadata: { name: `w-${next++}`, namespace },
        data: { at: String(performance.now()), text: 'x'.repeat(1_000) },
      })
    const get = (client: Client) => () => configMaps(client).get('read', { namespace })
    // The machine code of the gateway is made as that of the partition is by measuring the maximum.
    const throughGateway = { get: await closedLoop(2 * seconds, 16, get(gateway)), write: await closedLoop(seconds, 16, write(gateway)) }
    const rates = { get: load * (await closedLoop(seconds, 16, get(past))), write: load * (await closedLoop(seconds, 16, write(past))) }
    for (const what of ['get', 'write'] as const) {
      const [rate, maximum] = [Math.round(rates[what]), Math.round(throughGateway[what])]
      if (rate > maximum)
        throw new Error(
          `${load * 100} % of the direct maximum are ${rate} ${what}s/s; one gateway passes on at most ${maximum}: set --load lower`,
        )
    }
    const measured = { get: pairs(), write: pairs(), event: pairs() }
    for (let round = 0; round < rounds; round++) {
      const sides = [
        { name: 'direct', client: past },
        { name: 'gateway', client: gateway },
      ] as const
      for (const { name, client } of round % 2 ? [...sides].reverse() : sides) {
        measured.get[name].push(latenciesOf(await openLoop(seconds, rates.get, get(client))))
        const { resourceVersion } = (await configMaps(client).list({ namespace, limit: 1 })).metadata
        const path = `/api/v1/namespaces/${namespace}/configmaps?watch=true&resourceVersion=${resourceVersion}`
        const stream = new EventStream(client, path)
        await stream.opened
        measured.write[name].push(latenciesOf(await openLoop(seconds, rates.write, write(client))))
        measured.event[name].push(latenciesOf(stream.latenciesMs))
        await stream.stop()
      }
    }
    const rows: Bench['rows'] = []
    let failed = false
    for (const [what, { direct: before, gateway: through }] of Object.entries(measured)) {
      const of = (runs: readonly Latencies[], name: 'p50Ms' | 'p99Ms') => median(runs.map(run => run[name]))
      const [p50, p99] = [of(before, 'p50Ms'), of(before, 'p99Ms')]
      const [throughP50, throughP99] = [of(through, 'p50Ms'), of(through, 'p99Ms')]
      const meets = throughP50 - p50 <= Math.max(addedMs, addedShare.p50 * p50) && throughP99 <= p99 * (1 + addedShare.p99)
      failed ||= !meets
      rows.push({
        what,
        'per second': Math.round(what === 'get' ? rates.get : rates.write),
        'direct p50 ms': p50,
        'gateway p50 ms': throughP50,
        'direct p99 ms': p99,
        'gateway p99 ms': throughP99,
        'p99 of the runs, direct ms': rangeOf(before),
        'p99 of the runs, gateway ms': rangeOf(through),
        bar: 'p50 + 0.5 ms or 15 %, p99 + 25 %',
        met: meets ? 'yes' : 'no',
      })
    }
    const about = `${rounds} alternating runs of ${seconds} s each at ${load * 100} % of the direct maximum; medians. At most ${Math.round(throughGateway.get)} gets/s and ${Math.round(throughGateway.write)} writes/s through the gateway (16 at a time), after which it is warm. Client, partition and gateway are processes of this machine.`
    return { title: 'Latency through the gateway', about, rows, failed }
  })
}

const pairs = () => ({ direct: [] as Latencies[], gateway: [] as Latencies[] })

const rangeOf = (runs: readonly Latencies[]) => {
  const values = runs.map(({ p99Ms }) => p99Ms).sort((a, b) => a - b)
  return `${values[0]?.toFixed(1)}–${values.at(-1)?.toFixed(1)}`
}
