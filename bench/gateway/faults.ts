import { namespaceResource } from '../../src/kubernetes/client/index.ts'
import { seededRandom } from '../../src/kubernetes/util/index.ts'
import { FaultedClients } from '../../test/support/gateway/faulted-clients.ts'
import { makeFaults } from '../../test/support/gateway/faults.ts'
import { GatewayFixture } from '../../test/support/gateway/gateway-fixture.ts'
import { type NetworkProxy, startProxy } from '../../test/support/proxy.ts'
import type { Bench } from '../run.ts'

const partitions = ['t1', 't2', 't3']

/** Faults of partitions, one after another, while clients write, list and watch over all of them. */
export async function faults({ times, seed }: { readonly times: number; readonly seed: number }): Promise<Bench> {
  const proxies = new Map<string, NetworkProxy>()
  const roles = Object.fromEntries([['home', []], ...partitions.map(name => [name, ['Tenants']] as const)]) as Record<string, 'Tenants'[]>
  const fixture = await GatewayFixture.start(
    roles,
    {},
    {
      processes: partitions,
      async addressOf(name, { url, port }) {
        if (!partitions.includes(name)) return url
        const proxy = await startProxy(port)
        proxies.set(name, proxy)
        return `https://127.0.0.1:${proxy.port}`
      },
    },
  )
  const random = seededRandom(seed)
  const counts: Record<string, number> = {}
  let violation = ''
  let totals = { writes: 0, events: 0, lists: 0, relists: 0 }
  const namespaces = partitions.map(name => `ns-${name}`)
  let clients: FaultedClients | undefined
  try {
    for (const [index, tenant] of partitions.entries())
      await fixture.client
        .resource(namespaceResource)
        .create({ metadata: { name: namespaces[index] as string, labels: { 'oarlock.dev/tenant': tenant } } })
    clients = new FaultedClients(fixture.client, namespaces, random)
    await clients.start()
    for (let time = 0; time < times; time++) {
      const partition = partitions[Math.floor(random() * partitions.length)] as string
      const all = Object.entries(makeFaults(fixture, partition, proxies.get(partition) as NetworkProxy, random))
      const [name, fault] = all[time % all.length] as (typeof all)[number]
      await fault()
      counts[name] = (counts[name] ?? 0) + 1
    }
    totals = await clients.finish()
  } catch (error) {
    violation = (error as Error).message
  } finally {
    clients?.close()
    for (const proxy of proxies.values()) proxy.close()
    await fixture[Symbol.asyncDispose]()
  }
  const rows = [
    {
      ...counts,
      ...totals,
      'failed writes': clients?.counts.failedWrites ?? 0,
      'failed lists': clients?.counts.failedLists ?? 0,
      violation: violation || 'none',
    },
  ]
  const about = `Seed ${seed}, ${times} faults of 3 partitions. Every list has what was created before; versions of events rise; every cache is the list at the end.`
  return { title: 'Faults of partitions', about, rows, failed: violation !== '' }
}
