import type { Client } from '../../src/kubernetes/client/index.ts'
import { configMapResource } from '../../src/kubernetes/client/index.ts'
import type { Bench } from '../run.ts'
import { median } from './measure.ts'
import { withPartitions } from './with-partitions.ts'

const addedShare = 0.4

/** A list of many objects: of one partition directly and through the gateway, and merged over two partitions. */
export async function list({ objects, rounds }: { readonly objects: number; readonly rounds: number }): Promise<Bench> {
  return await withPartitions(['t1', 't2'], async ({ gateway, direct, namespaces }) => {
    for (const [name, share] of [
      ['t1', objects],
      ['t2', Math.round(objects / 2)],
    ] as const) {
      const maps = (direct.get(name) as Client).resource(configMapResource)
      const create = (index: number) =>
        maps.create({ metadata: { name: `o-${index}`, namespace: namespaces.get(name) as string }, data: { text: 'x'.repeat(1_000) } })
      for (let index = 0; index < share; index += 100)
        await Promise.all(Array.from({ length: Math.min(100, share - index) }, (_, more) => create(index + more)))
    }
    const own = `/api/v1/namespaces/${namespaces.get('t1')}/configmaps`
    const sides = {
      'one partition, direct': { client: direct.get('t1') as Client, path: own, expected: objects },
      'one partition, gateway': { client: gateway, path: own, expected: objects },
      'merged, gateway': { client: gateway, path: '/api/v1/configmaps', expected: objects + Math.round(objects / 2) },
    }
    const took: Record<string, number[]> = {}
    for (let round = 0; round < rounds; round++) {
      for (const [name, { client, path, expected }] of Object.entries(sides)) {
        const startMs = performance.now()
        const { body } = await client.stream({ method: 'GET', path, idleTimeoutMs: 60_000 })
        const chunks: Buffer[] = []
        for await (const chunk of body) chunks.push(Buffer.from(chunk))
        took[name] = [...(took[name] ?? []), performance.now() - startMs]
        if (round > 0) continue
        const { items } = JSON.parse(Buffer.concat(chunks).toString()) as { items: unknown[] }
        if (items.length < expected) throw new Error(`${name}: ${items.length} of ${expected} objects`)
      }
    }
    const base = median(took['one partition, direct'] ?? [])
    const through = median(took['one partition, gateway'] ?? [])
    const rows = Object.entries(took).map(([what, values]) => ({
      what,
      objects: sides[what as keyof typeof sides].expected,
      'median ms': median(values),
      'lowest ms': Math.min(...values),
      'highest ms': Math.max(...values),
      'of direct %': Math.round((median(values) / base) * 100),
    }))
    const about = `${rounds} alternating runs; bar: through the gateway at most ${addedShare * 100} % longer than direct.`
    return { title: `List of ${objects} objects`, about, rows, failed: through > base * (1 + addedShare) }
  })
}
