import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import type { RunQueueEntry } from '../queue/index.ts'
import { planWorkers } from './plan-workers.ts'

/** `a`: a Run of that trust domain. `-`: of none. `ns/sa`: for the Pod of a Stack. */
const entry = (text: string, index: number) => {
  const trustDomain = text === '-' ? undefined : text
  const [namespace = '', serviceAccountName] = text.split('/')
  const pod = serviceAccountName === undefined ? undefined : { namespace, serviceAccountName }
  return { request: { key: `${index + 1}`, requirements: { trustDomain, pod } } } as unknown as RunQueueEntry
}
const plan = (runs: string[], workers: Record<string, string | undefined>, slots = 1) => {
  const own = Object.entries(workers).map(([name, trustDomain]) => ({ name, trustDomain }))
  const { needs, unused } = planWorkers(runs.map(entry), own, slots)
  return { needs: needs.map(({ run }) => run).join(' '), unused: [...unused].join(' ') }
}

for (const [name, runs, workers, slots, needs, unused] of [
  ['a worker that is starting is for the first Run', ['-', '-'], { w1: undefined }, 1, '2', ''],
  ['a worker of another domain is not used', ['a', 'b'], { w1: 'b', w2: 'c' }, 1, '1', 'w2'],
  ['a worker without a domain is used by one of any, and then has it', ['a', 'b', 'a'], { w1: undefined }, 2, '2', ''],
  ['free slots of a new worker are for its domain', ['a', 'b', 'a', 'b', 'b'], {}, 2, '1 2 5', ''],
  ['a Run without a domain does not use a worker of one', ['-'], { w1: 'a', w2: '*' }, 1, '', 'w1'],
  ['the Pod of a Stack is never one without a domain', ['ns/sa'], { w1: undefined }, 1, '1', 'w1'],
  ['the Pod of a Stack is for its namespace and ServiceAccount', ['ns/sa', 'ns/'], { w1: 'ns/', w2: 'ns/other' }, 1, '1', 'w2'],
] as const)
  test(name, () => deepEqual(plan([...runs], workers, slots), { needs, unused }))
