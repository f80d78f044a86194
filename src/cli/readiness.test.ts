import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import type { Stack, StackSpec } from '../api/index.ts'
import type { Condition } from '../kubernetes/object/index.ts'
import { exitCodes } from './exit-codes.ts'
import { readinessOf } from './readiness.ts'

const awaitingApproval = exitCodes.awaitingApproval

/** `Ready=<reason>`, and the other condition that has the same one. */
const stack = (name: string, reason: string, other: string | undefined, spec: Partial<StackSpec> = {}): Stack => {
  const conditionOf = (type: string, status: 'True' | 'False', why = reason): Condition => ({
    ...{ type, status, reason: why, message: `${name} ${why}`, lastTransitionTime: '' },
  })
  return {
    apiVersion: 'oarlock.dev/v1alpha1',
    kind: 'Stack',
    metadata: { name, namespace: 'ns', uid: `uid-${name}`, resourceVersion: '1', creationTimestamp: '', generation: 2 },
    spec: { engine: 'command', source: {}, ...spec },
    status: {
      observedGeneration: 2,
      conditions: [conditionOf('Ready', reason === 'Applied' ? 'True' : 'False'), ...(other ? [conditionOf(other, 'True')] : [])],
      ...(other === 'AwaitingApproval' && {
        plan: { digest: 'sha256:1', runName: `${name}-1`, generation: 2, revision: 'r', inputsDigest: '', add: 1, change: 0, destroy: 0 },
      }),
    },
  }
}
const manual = stack('manual', 'AwaitingApproval', 'AwaitingApproval')
const failed = stack('failed', 'RetriesExhausted', 'Stalled')
const canceled = stack('canceled', 'RunCanceled', 'Stalled')
const working = stack('working', 'Progressing', 'Reconciling')
const drifted = stack('drifted', 'Drifted', undefined)
const suspended = stack('suspended', 'Suspended', undefined, { suspend: true })
const on = (...names: string[]): Partial<StackSpec> => ({ dependsOn: names.map(name => ({ name })) })
const waiting = (name: string, ...names: string[]) => stack(name, 'DependencyNotReady', 'Reconciling', on(...names))
const direct = waiting('direct', 'manual')
const fleet = [manual, failed, canceled, working, drifted, suspended, direct, waiting('a', 'b'), waiting('b', 'a', 'manual')]
const outdated: Stack = { ...direct, metadata: { ...direct.metadata, generation: 3 } }

for (const [name, subject, want] of [
  ['a Stack that is applied is ready', stack('x', 'Applied', undefined), ['ready']],
  ['a Stack with an active Run is working', working, ['working']],
  [
    'a Stack whose plan awaits approval waits for it',
    manual,
    ['waiting', awaitingApproval, 'stack/manual: the plan of run/manual-1 awaits approval: 1 to add, 0 to change, 0 to destroy'],
  ],
  ['a Stack that is Stalled has failed', failed, ['failed', 1, 'stack/failed failed: RetriesExhausted: failed RetriesExhausted']],
  ['a Stack whose Run was canceled has failed', canceled, ['failed', 10, 'stack/canceled failed: RunCanceled: canceled RunCanceled']],
  ['a Stack that has drifted has failed', drifted, ['failed', 11, 'stack/drifted is applied, but differs: drifted Drifted']],
  ['a Stack that is suspended has failed', suspended, ['failed', 1, 'stack/suspended is suspended']],
  [
    'a Stack waits for the approval of the Stack that it depends on',
    direct,
    ['waiting', awaitingApproval, 'stack/direct waits for stack/manual, which awaits approval'],
  ],
  [
    'a Stack waits for the approval of a Stack that it depends on through others',
    waiting('far', 'working', 'direct'),
    ['waiting', awaitingApproval, 'stack/far waits for stack/manual, which awaits approval'],
  ],
  [
    'a Stack that depends on others that wait for each other waits for the approval that one of them needs',
    waiting('of-cycle', 'a'),
    ['waiting', awaitingApproval, 'stack/of-cycle waits for stack/manual, which awaits approval'],
  ],
  [
    'a Stack waits for the failed Stack that it depends on',
    waiting('x', 'canceled'),
    ['waiting', 10, 'stack/x waits for stack/canceled, which failed: RunCanceled: canceled RunCanceled'],
  ],
  ['a Stack that depends on one with an active Run is working', waiting('x', 'working'), ['working']],
  ['a Stack that depends on one that has only drifted is working', waiting('x', 'drifted'), ['working']],
  ['a Stack that depends on one that does not exist is working', waiting('x', 'absent'), ['working']],
  ['a Stack with an active Run does not wait for an approval', stack('x', 'Progressing', 'Reconciling', on('manual')), ['working']],
  ['a Stack whose status is of an earlier generation is working', outdated, ['working']],
] as const)
  test(name, () => {
    const readiness = readinessOf(subject.metadata, subject, other => fleet.find(({ metadata }) => metadata.name === other))
    deepEqual([readiness.kind, ...('error' in readiness ? [readiness.error.exitCode, readiness.error.message] : [])], want)
  })

test('a Stack that was deleted, or created again, has failed', () => {
  const find = () => undefined
  const again = { ...working, metadata: { ...working.metadata, uid: 'other' } }
  for (const now of [undefined, again]) {
    const readiness = readinessOf(working.metadata, now, find)
    deepEqual([readiness.kind, 'error' in readiness && readiness.error.exitCode], ['failed', exitCodes.notFound])
  }
})

test('a Stack that waits for an approval names the command for it', () => {
  const readiness = readinessOf(direct.metadata, direct, () => manual)
  deepEqual('error' in readiness && readiness.error.hint, 'show and approve its plan: oarlock approve manual -n ns')
})
