/** Keys per second through the work queue of controllers: add, get, done. */
import { WorkQueue } from '../src/kubernetes/controller/index.ts'
import type { Bench } from './run.ts'

const keys = Array.from({ length: 50_000 }, (_, index) => `default/object-${index}`)

export async function bench(): Promise<Bench> {
  const rows: Bench['rows'] = []
  const measure = async (what: string, run: () => Promise<number>) => {
    await run()
    const startedMs = performance.now()
    let operations = 0
    while (performance.now() - startedMs < 2_000) operations += await run()
    rows.push({ what, 'per second': operations / ((performance.now() - startedMs) / 1_000) })
  }
  await measure('add all, then get and done each', async () => {
    const queue = new WorkQueue()
    for (const key of keys) queue.add(key)
    for (let remaining = keys.length; remaining > 0; remaining--) queue.done((await queue.get()) as string)
    return keys.length
  })
  await measure('the same, each key added three times', async () => {
    const queue = new WorkQueue()
    for (let times = 0; times < 3; times++) for (const key of keys) queue.add(key)
    for (let remaining = keys.length; remaining > 0; remaining--) queue.done((await queue.get()) as string)
    return keys.length
  })
  await measure('with 10 priorities', async () => {
    const queue = new WorkQueue()
    for (const [index, key] of keys.entries()) queue.add(key, { priority: index % 10 })
    for (let remaining = keys.length; remaining > 0; remaining--) queue.done((await queue.get()) as string)
    return keys.length
  })
  await measure('add with a delay (heap of 50,000)', async () => {
    const queue = new WorkQueue()
    for (const [index, key] of keys.entries()) queue.add(key, { delayMs: 1_000_000 + ((index * 7_919) % 50_000) })
    queue.shutdown()
    return keys.length
  })
  return { title: 'Work queue', about: '50,000 keys, one worker, 2 s for each row.', rows }
}
