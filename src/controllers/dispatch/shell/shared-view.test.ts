import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { SharedView } from './shared-view.ts'

/** The numbers of changes after each set of tenant partitions. */
function changesOf(options: ConstructorParameters<typeof SharedView>[0], sets: readonly (readonly string[])[]): number[] {
  const view = new SharedView(options)
  let changes = 0
  view.onChange(() => changes++)
  return sets.map(partitions => {
    view.setPartitions(partitions)
    return changes
  })
}

test('a dispatcher that sizes the pools follows the views of all tenant partitions, and not their order', () => {
  const sets = [['t1'], ['t1'], ['t1', 't2', 't3'], ['t3', 't2', 't1'], ['t1', 't3']]
  deepEqual(changesOf({ own: 'home', seesAll: true }, sets), [1, 1, 2, 2, 3])
})

test('a dispatcher that is one of them follows its own view', () => {
  const sets = [['t1'], ['t1', 't2'], ['t2', 't1']]
  deepEqual(changesOf({ own: 't1' }, sets), [1, 2, 2])
})

test('which workers another partition sees follows the partitions', () => {
  const view = new SharedView({ own: 'home', seesAll: true, viewsPerWorker: 1 })
  const workers = Array.from({ length: 64 }, (_, index) => `w${index}`)
  const seenBy = (partition: string) => workers.filter(worker => view.sees(partition, worker)).length
  view.setPartitions(['t1'])
  equal(seenBy('t1'), workers.length)
  view.setPartitions(['t1', 't2'])
  equal(seenBy('t1') + seenBy('t2'), workers.length)
})
