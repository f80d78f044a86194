import { deepEqual, ok } from 'node:assert/strict'
import { test } from 'node:test'
import { seededRandom } from '../../kubernetes/util/index.ts'
import { planViews } from './plan-views.ts'

/** By partition: the workers that it sees, each a letter. */
const views = (text: Record<string, string>) => (partition: string, worker: string) => text[partition]?.includes(worker) ?? false

for (const [name, { startable, workers, slots = 1, sees }, needs, unused] of [
  [
    'a worker that few waiting partitions see is used before one that many see',
    { startable: { t1: 1, t2: 1 }, workers: 'ab', sees: { t1: 'ab', t2: 'a' } },
    [],
    '',
  ],
  ['in the other order of partitions too', { startable: { t2: 1, t1: 1 }, workers: 'ab', sees: { t1: 'ab', t2: 'a' } }, [], ''],
  [
    'a partition needs a worker for each that it does not see, and slots count',
    { startable: { t1: 5, t2: 0 }, workers: 'ab', slots: 2, sees: { t1: 'a', t2: 'b' } },
    ['t1', 't1'],
    'b',
  ],
  ['without workers each Run needs one', { startable: { t1: 2, t2: 1 }, workers: '', sees: {} }, ['t1', 't1', 't2'], ''],
  ['a worker that no waiting partition sees is unused', { startable: { t1: 1, t2: 0 }, workers: 'ab', sees: { t2: 'ab' } }, ['t1'], 'ab'],
  ['more workers than Runs: the others are unused', { startable: { t1: 1 }, workers: 'abc', sees: { t1: 'abc' } }, [], 'bc'],
  [
    'a partition that does not wait does not make a worker scarce',
    { startable: { t1: 1, t2: 1, t3: 0 }, workers: 'ab', sees: { t1: 'ab', t2: 'b', t3: 'a' } },
    [],
    '',
  ],
  [
    'of three partitions with a worker each, all get it',
    { startable: { t1: 1, t2: 1, t3: 1 }, workers: 'abc', sees: { t1: 'a', t2: 'ab', t3: 'abc' } },
    [],
    '',
  ],
] as [
  string,
  { startable: Record<string, number>; workers: string; slots?: number; sees: Record<string, string> },
  readonly string[],
  string,
][])
  test(name, () => {
    const plan = planViews({ startable: new Map(Object.entries(startable)), workers: [...workers], slots, sees: views(sees) })
    deepEqual([plan.needs, [...plan.unused].join('')], [needs, unused])
  })

test('with any views at least half as many workers are used as by the best distribution, never more, and mostly as many', () => {
  let isWorse = 0
  for (let seed = 1; seed <= 500; seed++) {
    const random = seededRandom(seed)
    const number = (below: number) => Math.floor(random() * below)
    const partitions = Array.from({ length: 1 + number(4) }, (_, index) => `t${index}`)
    const workers = Array.from({ length: number(8) }, (_, index) => `w${index}`)
    const seen = new Set(partitions.flatMap(partition => workers.filter(() => random() < 0.5).map(worker => `${partition}/${worker}`)))
    const startable = new Map(partitions.map(partition => [partition, number(6)]))
    const sees = (partition: string, worker: string) => seen.has(`${partition}/${worker}`)
    const { needs } = planViews({ startable, workers, slots: 1, sees })
    const total = [...startable.values()].reduce((sum, count) => sum + count, 0)
    const most = mostUsed(startable, workers, sees)
    const used = total - needs.length
    // A distribution in which nothing can be added uses at least half of what the best one uses.
    ok(used <= most && 2 * used >= most, `seed ${seed}: ${used} of at most ${most} workers are used`)
    if (used < most) isWorse++
  }
  ok(isWorse < 25, `${isWorse} of 500 are not the best`)
})

/** How many workers the best distribution uses: a maximum matching of Runs and workers, by augmenting paths. */
function mostUsed(
  startable: ReadonlyMap<string, number>,
  workers: readonly string[],
  sees: (partition: string, worker: string) => boolean,
): number {
  const runs = [...startable].flatMap(([partition, count]) => Array.from({ length: count }, (_, index) => ({ partition, index })))
  const usedBy = new Map<string, (typeof runs)[number]>()
  const place = (run: (typeof runs)[number], tried: Set<string>): boolean =>
    workers.some(worker => {
      if (!sees(run.partition, worker) || tried.has(worker)) return false
      tried.add(worker)
      const other = usedBy.get(worker)
      if (other && !place(other, tried)) return false
      usedBy.set(worker, run)
      return true
    })
  return runs.filter(run => place(run, new Set())).length
}
