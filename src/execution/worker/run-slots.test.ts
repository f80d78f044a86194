import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Run } from '../../api/index.ts'
import type { ExecuteResult } from './run/execution.ts'
import { RunSlots } from './run-slots.ts'

const runOf = (name: string) => ({ metadata: { name, namespace: 'apps', uid: `uid-${name}` } }) as unknown as Run

function createSlots() {
  const calls: string[] = []
  const ended = new Map<string, PromiseWithResolvers<ExecuteResult>>()
  const loading = Promise.withResolvers<void>()
  const slots: RunSlots = new RunSlots({
    async execute({ metadata: { name } }) {
      await loading.promise
      const end = Promise.withResolvers<ExecuteResult>()
      ended.set(name, end)
      return {
        done: end.promise,
        observe: () => void calls.push(`observe ${name}`),
        stop: cause => void calls.push(`stop ${name}: ${cause.kind}`),
        renewed: () => void calls.push(`renewed ${name}`),
      }
    },
    onResult: ({ metadata }, result) => void calls.push(`${metadata.name} ${result}, ${slots.runningCount} running`),
    onCrash: error => void calls.push(`crash ${(error as Error).message}`),
    onChange: () => void calls.push(`change, ${slots.runningCount} running`),
  })
  return { slots, calls, ended, load: () => loading.resolve() }
}

test('a Run occupies its slot until its result was handled', async () => {
  const { slots, calls, ended, load } = createSlots()
  load()
  slots.start(runOf('a'))
  deepEqual(slots.keys, ['apps/a'])
  await nextTurn()
  ended.get('a')?.resolve('reported')
  await nextTurn()
  deepEqual(calls, ['change, 1 running', 'a reported, 1 running', 'change, 0 running'])
})

test('a Run whose execution is still loading when all are stopped is stopped once it has loaded', async () => {
  const { slots, calls, load } = createSlots()
  slots.start(runOf('a'))
  slots.stopAll({ kind: 'WorkerDrained', because: 'GraceExpired' })
  equal(slots.isStopping, true)
  load()
  await nextTurn()
  deepEqual(calls.slice(1), ['stop a: WorkerDrained'])
})

test('events reach the Run that they belong to', async () => {
  const { slots, calls, load } = createSlots()
  load()
  for (const name of ['a', 'b']) slots.start(runOf(name))
  await nextTurn()
  calls.length = 0
  equal(slots.observe(runOf('a')), true)
  equal(slots.observe(runOf('c')), false)
  slots.stopMissing(new Set(['uid-a']), { kind: 'OwnershipLost', detail: 'it was deleted' })
  slots.renewed()
  deepEqual(calls, ['observe a', 'stop b: OwnershipLost', 'renewed a', 'renewed b'])
})

test('a crash is reported before the slot is freed', async () => {
  const { slots, calls, ended, load } = createSlots()
  load()
  slots.start(runOf('a'))
  await nextTurn()
  ended.get('a')?.reject(new Error('a bug'))
  await nextTurn()
  deepEqual(calls.slice(1), ['crash a bug', 'change, 0 running'])
})
