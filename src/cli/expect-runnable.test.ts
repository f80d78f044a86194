import { rejects } from 'node:assert/strict'
import { test } from 'node:test'
import type { Stack } from '../api/index.ts'
import type { Client } from '../kubernetes/client/index.ts'
import { exitCodes } from './exit-codes.ts'
import { expectRunnable } from './expect-runnable.ts'
import { makeStack } from './fleet/fleet.testing.ts'

/** Nothing is read of a Stack that reports no error of its state. */
const noClient = {} as Client

function stackWith({ spec, status, metadata }: { spec?: object; status?: object; metadata?: object }): Stack {
  const stack = makeStack('app')
  return { ...stack, metadata: { ...stack.metadata, ...metadata }, spec: { ...stack.spec, ...spec }, status: { ...status } } as Stack
}

const deletionTimestamp = '2026-06-01T10:00:00Z'
const canceled = ['Ready', 'Stalled'].map(type => ({
  ...{ type, reason: 'RunCanceled', message: '', lastTransitionTime: deletionTimestamp },
  status: type === 'Ready' ? 'False' : 'True',
}))
const deletion = { metadata: { deletionTimestamp, generation: 2 }, status: { observedGeneration: 2, conditions: canceled } }

test('a Run that would not be executed is not requested, with the reason and what to do', async () => {
  await rejects(expectRunnable(noClient, stackWith({ spec: { suspend: true } }), { type: 'apply' }), {
    message: 'no Run of stack/app was requested: the Stack is suspended',
    hint: 'resume it first: oarlock resume app -n shop',
    exitCode: exitCodes.failed,
  })
  await rejects(expectRunnable(noClient, stackWith({ status: { restored: { at: deletionTimestamp } } }), { type: 'refresh' }), {
    message: 'no Run of stack/app was requested: the Stack was restored from a backup and waits for its review',
    exitCode: exitCodes.rejected,
  })
  await expectRunnable(noClient, stackWith({ status: { restored: { at: deletionTimestamp } } }), { type: 'plan' })
})

test('a canceled destruction is continued by a Run only: what is called a plan or a refresh would destroy too', async () => {
  await expectRunnable(noClient, stackWith(deletion), { type: 'apply' })
  for (const type of ['plan', 'refresh', 'plan-destroy'] as const)
    await rejects(expectRunnable(noClient, stackWith(deletion), { type }), {
      message: 'no Run of stack/app was requested: the Stack is being deleted',
      exitCode: exitCodes.rejected,
    })
})
