import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { initialStartState, withFailed, withStarted, withStartFailing } from '../pool/index.ts'
import { poolReadyCondition } from './pool-status.ts'

const failure = { reason: 'ImagePullFailed', message: 'pod w: ErrImagePull' } as const
const starting = withStarted(initialStartState, 'w', 0)

for (const { name, state, specError, expected } of [
  { name: 'a pool without starts is ready', state: undefined, specError: undefined, expected: ['True', 'Ready', 'workers can be started'] },
  {
    name: 'a pool with a healthy start is ready',
    state: starting,
    specError: undefined,
    expected: ['True', 'Ready', 'workers can be started'],
  },
  {
    name: 'a pool with an invalid schedule is not ready',
    state: undefined,
    specError: 'spec.schedule[0].timeZone is invalid',
    expected: ['False', 'InvalidSchedule', 'spec.schedule[0].timeZone is invalid'],
  },
  {
    name: 'a worker that is failing to start makes the pool not ready',
    state: withStartFailing(starting, 'w', failure),
    specError: undefined,
    expected: ['False', 'ImagePullFailed', 'pod w: ErrImagePull'],
  },
  {
    name: 'a failed start takes precedence over an invalid schedule',
    state: withFailed(starting, 'w', failure, 0),
    specError: 'spec.schedule[0].timeZone is invalid',
    expected: ['False', 'ImagePullFailed', 'pod w: ErrImagePull; failed starts in a row: 1'],
  },
]) {
  test(name, () => {
    const { status, reason, message } = poolReadyCondition(state, specError)
    deepEqual([status, reason, message], expected)
  })
}
