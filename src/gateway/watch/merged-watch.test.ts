import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import type { TransportStreamResponse } from '../../kubernetes/client/transport.ts'
import type { Partition, PartitionRequest } from '../partition/partition.ts'
import { MergedWatch } from './merged-watch.ts'

/** A partition whose watches send these texts, one each; the last one stays open. */
class ScriptedPartition {
  readonly name: string
  readonly requests: PartitionRequest[] = []
  readonly #texts: string[]
  readonly #statuses: number[]

  constructor(name: string, texts: string[], statuses: number[] = []) {
    this.name = name
    this.#texts = texts
    this.#statuses = statuses
  }

  async stream(request: PartitionRequest): Promise<TransportStreamResponse> {
    this.requests.push(request)
    const status = this.#statuses.shift() ?? 200
    const text = status === 200 ? this.#texts.shift() : 'busy'
    const isLast = status === 200 && this.#texts.length === 0
    const body = (async function* () {
      if (text) yield Buffer.from(text)
      if (isLast) await new Promise(resolve => request.signal?.addEventListener('abort', resolve))
    })()
    return { status, headers: {}, body }
  }

  async progress(): Promise<number> {
    return 0
  }
}

const event = (revision: number) => `${revision} {"type":"ADDED","object":{"n":${revision}}}\n`
const bookmark = (revision: number) => `B${revision} {"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"${revision}"}}}\n`

async function run(partitions: ScriptedPartition[], count: number): Promise<{ lines: string[]; ends: boolean[]; reconnects: string[] }> {
  const lines: string[] = []
  const ends: boolean[] = []
  const reconnects: string[] = []
  const done = Promise.withResolvers<void>()
  const watch = new MergedWatch({
    isCurrentAt: () => true,
    parts: partitions.map(partition => ({ partition: partition as unknown as Partition, pathFrom: from => `/watch?from=${from}` })),
    user: { name: 'ada', groups: [] },
    ...{ headers: {}, from: 10, marksInitialEnd: false, wantsBookmarks: false, maxBufferedBytes: () => 1_000, log: () => {} },
    write(some) {
      for (const line of some) lines.push(Buffer.from(line).toString().trim())
      if (lines.length >= count) done.resolve()
      return true
    },
    reconnected: name => void reconnects.push(name),
    end(isBroken) {
      ends.push(isBroken)
      done.resolve()
    },
  })
  const rejected = await watch.open()
  if (!rejected) await done.promise
  watch.close()
  return { lines, ends, reconnects }
}

const numbers = (lines: string[]) => lines.map(line => Number(/"n":(\d+)/.exec(line)?.[1]))

for (const garbage of ['<html>\n', '15 {"type":"ADD', '\u0000\u0001\n', 'nonsense {}\n', '14 not an event\n'])
  test(`a watch in which a partition sends ${JSON.stringify(garbage)} is opened again where it was, and nothing of it is passed on`, async () => {
    const a = new ScriptedPartition('a', [event(11) + event(13) + garbage, event(13) + event(15) + bookmark(20)])
    const b = new ScriptedPartition('b', [event(12) + event(14) + bookmark(20)])
    const { lines, reconnects } = await run([a, b], 5)
    deepEqual(numbers(lines), [11, 12, 13, 14, 15])
    deepEqual(reconnects, ['a'])
    equal(a.requests[1]?.path, '/watch?from=13')
    // What it has shown must still be there.
    equal(a.requests[1]?.headers?.['x-oarlock-watch-known'], '13')
  })

test('a partition that is busy or starts is asked again, and one that has forgotten the version ends the watch', async () => {
  const a = new ScriptedPartition('a', [event(11), `${event(12)}E {"type":"ERROR","object":{"code":410}}\n`, ''], [200, 503, 429, 200])
  const { lines, ends } = await run([a], 9)
  deepEqual(
    lines.slice(0, 2).map(line => numbers([line])[0]),
    [11, 12],
  )
  equal(lines[2], '{"type":"ERROR","object":{"code":410}}')
  deepEqual(ends, [false])
})

test('a watch ends when so much waits for one partition that memory would fill', async () => {
  const a = new ScriptedPartition('a', [Array.from({ length: 100 }, (_, index) => event(11 + index)).join('')])
  const b = new ScriptedPartition('b', [''])
  const { lines, ends } = await run([a, b], 1)
  deepEqual([lines, ends], [[], [true]])
})
