import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { labels, type Worker } from '../../../api/index.ts'
import { testWorker } from '../objects.testing.ts'
import { collectForMs, EndedWorkers, maxTogether } from './ended-workers.ts'

class Fixture {
  readonly ended = new EndedWorkers()
  readonly workers = new Map<string, Worker>()
  readonly busy = new Set<string>()

  end(name: string, nowMs: number, own: Record<string, string> = { [labels.worker]: name }): void {
    this.workers.set(name, testWorker(name, { labels: own }))
    this.ended.add(name, nowMs)
  }

  decide(nowMs: number) {
    const { together, alone, requeueAfterMs } = this.ended.decide({
      workerOf: name => this.workers.get(name),
      isBusy: ({ metadata }) => this.busy.has(metadata.name),
      nowMs,
    })
    return [together.join(' '), alone.map(({ metadata }) => metadata.name).join(' '), requeueAfterMs]
  }
}

const none = Number.POSITIVE_INFINITY

test('Workers that end within the interval are deleted together, and alone if they remain', () => {
  const fixture = new Fixture()
  fixture.end('a', 0)
  fixture.end('b', 500)
  deepEqual(fixture.decide(500), ['', '', collectForMs - 500])
  deepEqual(fixture.decide(collectForMs), ['a b', '', 5_000])
  fixture.workers.delete('a')
  deepEqual(fixture.decide(collectForMs + 1_000), ['', '', 4_000])
  deepEqual(fixture.decide(collectForMs + 5_000), ['', 'b', 5_000])
  deepEqual(fixture.decide(collectForMs + 10_000), ['', 'b', 5_000])
  fixture.workers.delete('b')
  deepEqual(fixture.decide(collectForMs + 15_000), ['', '', none])
})

test('a Worker without its name in the label, or with that of another, is deleted alone', () => {
  const fixture = new Fixture()
  fixture.end('a', 0)
  fixture.end('b', 0)
  fixture.end('unlabeled', 0, {})
  fixture.end('mislabeled', 0, { [labels.worker]: 'running' })
  deepEqual(fixture.decide(collectForMs), ['a b', 'unlabeled mislabeled', 5_000])
})

test('a Worker with a Run that has not ended remains, until the Run is Lost', () => {
  const fixture = new Fixture()
  for (const name of ['a', 'b', 'c']) fixture.end(name, 0)
  fixture.busy.add('b')
  deepEqual(fixture.decide(collectForMs), ['a c', '', 5_000])
  fixture.busy.clear()
  deepEqual(fixture.decide(collectForMs + 1), ['', 'b', 4_999])
})

test('a request names at most as many as fit into a URL', () => {
  const fixture = new Fixture()
  for (let index = 0; index < maxTogether + 2; index++) fixture.end(`w${index}`, 0)
  const [together, , requeueAfterMs] = fixture.decide(1)
  deepEqual([`${together}`.split(' ').length, requeueAfterMs], [maxTogether, collectForMs - 1])
  deepEqual(fixture.decide(collectForMs)[0], `w${maxTogether} w${maxTogether + 1}`)
})
