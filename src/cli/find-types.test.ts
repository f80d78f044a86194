import { deepEqual, throws } from 'node:assert/strict'
import { test } from 'node:test'
import { runResource, stackResource, workerPoolResource } from '../api/index.ts'
import { secretResource } from '../kubernetes/client/index.ts'
import { CliError } from './cli-error.ts'
import { findTypes, type KnownType, parseTarget } from './find-types.ts'

const types: KnownType[] = [
  { resource: secretResource, names: ['secrets', 'secret'], categories: [] },
  { resource: stackResource, names: ['stacks', 'stack', 'stk', 'stacks.oarlock.dev'], categories: ['oarlock'] },
  { resource: runResource, names: ['runs', 'run'], categories: ['oarlock'] },
  { resource: workerPoolResource, names: ['workerpools', 'workerpool', 'pool'], categories: ['oarlock'] },
]

for (const [typed, want] of [
  ['stacks', ['Stack']],
  ['STK', ['Stack']],
  ['stacks.oarlock.dev', ['Stack']],
  ['stack,secret', ['Stack', 'Secret']],
  ['oarlock', ['Stack', 'Run', 'WorkerPool']],
] as const) {
  test(`findTypes() resolves ${typed} to ${want.join(' and ')}`, () =>
    deepEqual(
      findTypes(typed, types).map(({ kind }) => kind),
      want,
    ))
}

test('suggests the closest type for an unknown one', () => {
  throws(
    () => findTypes('stakcs', types),
    (error: unknown) => error instanceof CliError && error.hint === 'did you mean stacks?',
  )
})

for (const [text, want] of [
  ['network', { type: 'stack', name: 'network' }],
  ['run/network-1', { type: 'run', name: 'network-1' }],
] as const) {
  test(`parseTarget() reads ${text} as ${want.type} ${want.name}`, () => deepEqual(parseTarget(text, 'stack'), want))
}
