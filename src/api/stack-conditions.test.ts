import { deepEqual, equal } from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import type { Condition } from '../kubernetes/object/index.ts'
import { runFailureReasons } from './run-failure-reasons.ts'
import { approvalReasons, driftedReasons, reportedState, stackStates } from './stack-conditions.ts'

const page = readFileSync(new URL('../../docs/conditions.md', import.meta.url), 'utf8')
const section = (title: string) => page.slice(page.indexOf(`## ${title}\n`)).split(/^#+ /m)[1] ?? ''
const rowsOf = (text: string) => [...text.matchAll(/^\| (`.*) \|$/gm)].map(([, row = '']) => row.split(' | '))
const namesIn = (cell = '') => [...cell.matchAll(/`(\w+)`/g)].map(([, name = '']) => name)

describe('docs/conditions.md', () => {
  test('has exactly the states of the table', () => {
    const documented = rowsOf(section('States')).map(([state, ready, reconciling, stalled, approval, drifted]) => {
      const others = Object.entries({ Reconciling: reconciling, Stalled: stalled, AwaitingApproval: approval })
      const [withCondition] = others.find(([, cell]) => cell !== '-') ?? []
      return [
        namesIn(state)[0],
        { ready: namesIn(ready)[0], withCondition, drifted: drifted?.replaceAll('`', '').replace('-', 'absent').split(', ') },
      ]
    })
    deepEqual(
      documented,
      Object.entries(stackStates).map(([name, state]) => [
        name,
        { ready: state.ready, withCondition: 'withCondition' in state ? state.withCondition : undefined, drifted: [...state.drifted] },
      ]),
    )
  })

  for (const [title, reasons] of [
    [
      'Ready, and what a user decides',
      [
        ...['Ready', 'Drifted', 'ApplyIncomplete', 'AwaitingApproval', 'Suspended'].flatMap(
          name => stackStates[name as keyof typeof stackStates].reasons as readonly string[],
        ),
        ...Object.values(driftedReasons).flat(),
        ...approvalReasons,
      ],
    ],
    ['Reconciling', stackStates.Reconciling.reasons],
    ['Stalled', stackStates.Stalled.reasons],
    ['Failures', runFailureReasons],
  ] as const) {
    test(`describes each reason under "${title}", and no other`, () => {
      const documented = rowsOf(section(title)).flatMap(([reason]) => namesIn(reason))
      equal(documented.length, new Set(documented).size)
      deepEqual([...documented].sort(), [...new Set<string>(reasons)].sort())
    })
  }
})

const condition = (type: string, status: Condition['status'], reason: string): Condition => ({
  ...{ type, status, reason, message: '' },
  lastTransitionTime: '2026-01-01T00:00:00Z',
})
const ready = (status: 'True' | 'False', reason: string) => condition('Ready', status, reason)
const drifted = condition('Drifted', 'True', 'DriftFound')
const approval = condition('AwaitingApproval', 'True', 'Pending')
const deleted = '2026-01-01T00:00:00Z'

for (const [name, conditions, want, deletionTimestamp] of [
  ['nothing', [], undefined],
  ['Ready', [ready('True', 'Applied')], 'Ready'],
  ['Ready and no drift', [ready('True', 'Applied'), condition('Drifted', 'False', 'NoDrift')], 'Ready'],
  ['Ready and drift', [ready('True', 'Applied'), drifted], undefined],
  ['Ready and unknown drift', [ready('True', 'Applied'), condition('Drifted', 'Unknown', 'ApplyIncomplete')], undefined],
  ['Ready and a plan that awaits approval', [ready('True', 'Applied'), approval], undefined],
  ['Ready and Reconciling', [ready('True', 'Applied'), condition('Reconciling', 'True', 'Progressing')], undefined],
  ['drift', [ready('False', 'Drifted'), drifted], 'Drifted'],
  ['drift and a plan that awaits approval', [ready('False', 'AwaitingApproval'), drifted, approval], 'AwaitingApproval'],
  ['a plan that awaits approval without the condition', [ready('False', 'AwaitingApproval')], undefined],
  ['Reconciling with another reason', [ready('False', 'Progressing'), condition('Reconciling', 'True', 'Deleting')], undefined],
  ['Reconciling after a failure', [ready('False', 'ApplyFailed'), condition('Reconciling', 'True', 'ApplyFailed')], 'Reconciling'],
  ['Stalled after a failure', [ready('False', 'ApplyFailed'), condition('Stalled', 'True', 'ApplyFailed')], 'Stalled'],
  ['Stalled with a reason of Reconciling', [ready('False', 'Progressing'), condition('Stalled', 'True', 'Progressing')], undefined],
  ['a reason that is not documented', [ready('False', 'Strange'), condition('Stalled', 'True', 'Strange')], undefined],
  ['both', [ready('False', 'Deleting'), condition('Reconciling', 'True', 'Deleting'), condition('Stalled', 'True', 'Deleting')], undefined],
  ['drift during a deletion', [ready('False', 'Deleting'), condition('Reconciling', 'True', 'Deleting'), drifted], undefined, deleted],
] as const) {
  test(`${name}: ${want ?? 'no state'}`, () =>
    equal(reportedState({ metadata: { deletionTimestamp }, status: { conditions: [...conditions] } }), want))
}
