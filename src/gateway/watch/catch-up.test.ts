import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import type { Partition } from '../partition/partition.ts'
import { CatchUp } from './catch-up.ts'

const event = (revision: number, size = 0) => `${revision} {"type":"ADDED","object":{"n":${revision},"x":"${'x'.repeat(size)}"}}\n`
const bookmark = (revision: number) => `B${revision} {"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"${revision}"}}}\n`

/** A round over partitions that send these texts, each after the one before was read. */
async function round(texts: Record<string, readonly string[]>, maxBufferedBytes: number) {
  const sent: number[] = []
  const parts = Object.entries(texts).map(([name, chunks]) => ({
    partition: {
      name,
      stream: async () => ({
        ...{ status: 200, headers: {} },
        body: (async function* () {
          for (const chunk of chunks) {
            await new Promise(resolve => setImmediate(resolve))
            yield Buffer.from(chunk)
          }
        })(),
      }),
    } as unknown as Partition,
    pathFrom: () => '/watch',
  }))
  const catchUp = new CatchUp({
    ...{ parts, user: { name: 'ada', groups: [] }, headers: {}, from: 10, maxBufferedBytes: () => maxBufferedBytes },
    signal: new AbortController().signal,
    isCurrentAt: () => true,
    async write(lines) {
      for (const line of lines) sent.push(Number(/"n":(\d+)/.exec(Buffer.from(line).toString())?.[1]))
    },
  })
  return { ...(await catchUp.round()), sent, watermarks: Object.fromEntries(catchUp.watermarks) }
}

const numbers = (first: number, count: number, step = 1) => Array.from({ length: count }, (_, index) => first + index * step)

test('a part that is behind is not held up by one that has sent more than fits', { timeout: 10_000 }, async () => {
  const many = numbers(20, 50, 2)
  const slow = ['M1 \n', 'M2 \n', 'M3 \n', event(45), bookmark(200)]
  const result = await round({ a: [...many.map(revision => event(revision, 1_000)), bookmark(200)], b: slow }, 4_000)
  equal(result.kind, 'current')
  deepEqual(
    result.sent,
    [...many, 45].sort((x, y) => x - y),
  )
  deepEqual(result.watermarks, { a: 200, b: 200 })
})

test('a part continues when the one that is behind has nothing more to send', { timeout: 10_000 }, async () => {
  const result = await round({ a: [...numbers(20, 50).map(revision => event(revision, 1_000)), bookmark(100)], b: [bookmark(30)] }, 4_000)
  equal(result.kind, 'current')
  // The others come again: of b nothing is known after 30.
  deepEqual(result.sent, numbers(20, 11))
  deepEqual(result.watermarks, { a: 30, b: 30 })
})

test('two parts that send more than fits take turns', { timeout: 10_000 }, async () => {
  const [a, b] = [numbers(20, 200, 2), numbers(21, 200, 2)]
  const texts = (revisions: readonly number[]) => [...revisions.map(revision => event(revision, 500)), bookmark(1_000)]
  const result = await round({ a: texts(a), b: texts(b) }, 2_000)
  deepEqual(
    result.sent,
    [...a, ...b].sort((x, y) => x - y),
  )
})
