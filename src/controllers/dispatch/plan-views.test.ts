import { deepEqual, equal, ok } from 'node:assert/strict'
import { test } from 'node:test'
import { seededRandom } from '../../kubernetes/util/index.ts'
import { planViews } from './plan-views.ts'

const views = (text: Record<string, string>) => (partition: string, worker: string) => text[partition]?.includes(worker) ?? false

test('a worker that few waiting partitions see is used before one that many see', () => {
  const plan = planViews({
    startable: new Map([
      ['t1', 1],
      ['t2', 1],
    ]),
    workers: ['a', 'b'],
    slots: 1,
    sees: views({ t1: 'ab', t2: 'a' }),
  })
  deepEqual([plan.needs, [...plan.unused]], [[], []])
})

test('a partition needs a worker for each that it does not see, and slots count', () => {
  const input = {
    startable: new Map([
      ['t1', 5],
      ['t2', 0],
    ]),
    workers: ['a', 'b'],
    slots: 2,
    sees: views({ t1: 'a', t2: 'b' }),
  }
  const { needs, unused } = planViews(input)
  deepEqual([needs, [...unused]], [['t1', 't1'], ['b']])
})

test('with any views each Run has a worker, and no partition needs a new one while it sees an unused one', () => {
  for (let seed = 1; seed <= 500; seed++) {
    const random = seededRandom(seed)
    const number = (below: number) => Math.floor(random() * below)
    const partitions = Array.from({ length: 1 + number(4) }, (_, index) => `t${index}`)
    const workers = Array.from({ length: number(8) }, (_, index) => `w${index}`)
    const seen = new Set(partitions.flatMap(partition => workers.filter(() => random() < 0.5).map(worker => `${partition}/${worker}`)))
    const startable = new Map(partitions.map(partition => [partition, number(6)]))
    const sees = (partition: string, worker: string) => seen.has(`${partition}/${worker}`)
    const { needs, unused } = planViews({ startable, workers, slots: 1, sees })
    const total = [...startable.values()].reduce((sum, count) => sum + count, 0)
    equal(needs.length + workers.length - unused.size, total, `seed ${seed}`)
    for (const partition of new Set(needs))
      ok(![...unused].some(worker => sees(partition, worker)), `seed ${seed}: ${partition} needs a worker and sees an unused one`)
  }
})
