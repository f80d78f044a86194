import { deepEqual, equal, match } from 'node:assert/strict'
import { test } from 'node:test'
import type { RequestType } from './run-request.ts'
import type { Stack } from './stack.ts'
import {
  decisionBlocker,
  deletionRunEffect,
  destroyBlocker,
  destructionBlockers,
  formatBlocker,
  isConfirmedDeletion,
  type KnownState,
  runBlocker,
} from './stack-blockers.ts'

type Conditions = Readonly<Record<string, string>>

/** @param conditions reasons of those that are True, and of Ready. */
function stackOf({
  spec = {},
  status = {},
  conditions = {},
  metadata = {},
}: {
  spec?: Partial<Stack['spec']>
  status?: Partial<NonNullable<Stack['status']>>
  conditions?: Conditions
  metadata?: Partial<Stack['metadata']>
} = {}): Stack {
  const all = Object.entries(conditions).map(([type, reason]) => {
    const lastTransitionTime = '2026-06-01T10:00:00Z'
    return {
      type,
      reason,
      status: type === 'Ready' ? ('False' as const) : ('True' as const),
      message: `because of ${reason}`,
      lastTransitionTime,
    }
  })
  return {
    metadata: { name: 'app', namespace: 'shop', uid: 'u', generation: 2, ...metadata },
    spec: { engine: 'command', source: {}, ...spec },
    status: { observedGeneration: 2, conditions: all, ...status },
  } as unknown as Stack
}
const deleting = (given: Parameters<typeof stackOf>[0] = {}) =>
  stackOf({ ...given, metadata: { deletionTimestamp: '2026-06-01T10:00:00Z', ...given.metadata } })
const confirmed = { annotations: { 'oarlock.dev/destroy-plan': 'sha256:1@2026-06-01T10:00:00Z' } }
const plan = { digest: 'sha256:1', runName: 'app-1', generation: 2, revision: 'r', inputsDigest: 'i', add: 0, change: 0, destroy: 2 }
const restored = { at: '2026-06-01T09:00:00Z' } as NonNullable<NonNullable<Stack['status']>['restored']>

const canceled = { Ready: 'RunCanceled', Stalled: 'RunCanceled' }
const confirmation = { Ready: 'AwaitingApproval', AwaitingApproval: 'ConfirmationRequired' }

const possible = (stack: Stack) =>
  (['apply', 'plan', 'refresh', 'plan-destroy'] as const satisfies RequestType[]).filter(type => !runBlocker(stack, { type }, undefined))

for (const [what, stack, types] of [
  ['any Stack', stackOf(), ['apply', 'plan', 'refresh', 'plan-destroy']],
  ['a suspended one', stackOf({ spec: { suspend: true } }), []],
  [
    'one whose deletion waits for the next attempt after a lost Run',
    deleting({
      conditions: { Ready: 'Deleting' },
      status: { lastRun: { name: 'app-2', type: 'Destroy', phase: 'Lost' } } as Partial<NonNullable<Stack['status']>>,
    }),
    ['apply'],
  ],
  ['a restored one', stackOf({ status: { restored } }), ['plan', 'plan-destroy']],
  ['one that is being destroyed', deleting({ conditions: { Ready: 'Deleting', Reconciling: 'Deleting' } }), []],
  ['one that is deleted alone', deleting({ spec: { deletion: 'Orphan' }, conditions: canceled }), []],
  ['one whose canceled Run was before its deletion', deleting({ conditions: canceled, status: { observedGeneration: 1 } }), []],
  ['one whose destruction was canceled', deleting({ conditions: canceled }), ['apply']],
  ['one whose destruction fails', deleting({ conditions: { Ready: 'DestroyFailed', Reconciling: 'DestroyFailed' } }), ['apply']],
  [
    'one whose confirmed destruction was canceled',
    deleting({ conditions: canceled, metadata: confirmed }),
    ['apply', 'plan', 'plan-destroy'],
  ],
  [
    'one whose approved destruction was canceled',
    deleting({ conditions: canceled, spec: { approval: 'Manual' } }),
    ['apply', 'plan', 'plan-destroy'],
  ],
  ['one whose destruction awaits a confirmation', deleting({ conditions: confirmation }), ['apply', 'plan', 'plan-destroy']],
  [
    'one whose plan of destruction was rejected',
    deleting({ conditions: { Ready: 'PlanRejected', Stalled: 'PlanRejected' } }),
    ['apply', 'plan', 'plan-destroy'],
  ],
  [
    'one whose deletion waits for the review of a restore',
    deleting({ conditions: { Ready: 'RestoredFromBackup', Stalled: 'RestoredFromBackup' } }),
    [],
  ],
  ['one whose deletion waits for its state', deleting({ conditions: { Ready: 'StateMissing', Stalled: 'StateMissing' } }), []],
  ['one whose deletion waits for the lock of a user', deleting({ conditions: { Ready: 'StateLocked', Reconciling: 'StateLocked' } }), []],
] as const)
  test(`of ${what} can be requested: ${types.join(', ') || 'no Run'}`, () => deepEqual(possible(stack), types))

test('a Run of a Stack that is being deleted has no options: it would destroy all of its resources', () => {
  const stack = deleting({ conditions: canceled, metadata: confirmed })
  match(runBlocker(stack, { type: 'apply', options: { targets: ['a'] } }, undefined)?.remedy ?? '', /destroys all of its resources/)
})

test('what a Run does during a deletion is stated: a plan is made first where the Stack shows that', () => {
  equal(deletionRunEffect(stackOf()), undefined)
  match(deletionRunEffect(deleting({ conditions: canceled })) ?? '', /this destroys its real resources/)
  match(deletionRunEffect(deleting({ conditions: canceled, metadata: confirmed })) ?? '', /this plans its destruction again/)
})

const intact: KnownState = { hasJournal: false }
const missing: KnownState = { error: { reason: 'StateMissing', message: 'version 3 is required' }, hasJournal: false }

for (const [what, reason, state, isBlocked] of [
  ['still missing', 'StateMissing', missing, true],
  ['that was uploaded since', 'StateMissing', intact, false],
  ['that the user may not read', 'StateMissing', undefined, false],
  ['with a journal that cannot be read', 'JournalUnreadable', { hasJournal: true }, true],
  ['whose journal was replaced since', 'JournalUnreadable', intact, false],
  ['whose error is not reported', 'RunCanceled', missing, false],
] as const)
  test(`a Run from a state ${what} is ${isBlocked ? 'not ' : ''}requested`, () =>
    equal(
      runBlocker(stackOf({ conditions: { Stalled: reason } }), { type: 'plan' }, state)?.text,
      isBlocked ? `because of ${reason}` : undefined,
    ))

const free = { dependents: [], isNamespaceTerminating: false, state: intact }
const textsOf = (stack: Stack, facts: Partial<Parameters<typeof destructionBlockers>[1]> = {}) =>
  destructionBlockers(stack, { ...free, ...facts }).map(formatBlocker)

test('what blocks a destruction is listed as a whole, each with what to do', () => {
  deepEqual(textsOf(stackOf()), [])
  deepEqual(
    textsOf(stackOf({ spec: { deletionProtection: true, suspend: true }, status: { restored } }), {
      dependents: ['web', 'api'],
      isNamespaceTerminating: true,
      state: missing,
      lockedBy: 'anna@host',
    }),
    [
      'spec.deletionProtection of the Stack is true: set it to false to delete the Stack',
      'Stacks depend on it: web, api; destroy them first, or all Stacks of the namespace with: oarlock destroy --all -n shop',
      'the Stack is suspended: resume it first: oarlock resume app -n shop',
      'the Stack was restored from a backup and waits for its review: show what differs with "oarlock plan app -n shop", then use "oarlock restore accept app -n shop"',
      'namespace shop is being deleted and accepts no new Run: set spec.deletion to Orphan to keep the resources',
      'StateMissing: version 3 is required; "oarlock delete stack/app -n shop --force" deletes the Stack and leaves its resources',
      'the state is locked by anna@host: wait for the holder, or release the lock: oarlock state unlock app -n shop',
    ],
  )
})

test('an error of the state that only the status reports blocks a destruction, unless the stores show that it was repaired', () => {
  const stack = stackOf({ conditions: { Stalled: 'StateMissing' } })
  match(textsOf(stack, { state: undefined })[0] ?? '', /^StateMissing: because of StateMissing; /)
  deepEqual(textsOf(stack), [])
  const unreadable = stackOf({ conditions: { Stalled: 'JournalUnreadable' } })
  match(textsOf(unreadable, { state: { hasJournal: true } })[0] ?? '', /^JournalUnreadable: /)
  deepEqual(textsOf(unreadable), [])
})

for (const [what, stack, isPossible] of [
  ['a Stack', stackOf(), true],
  ['a suspended Stack', stackOf({ spec: { suspend: true } }), false],
  ['a restored Stack', stackOf({ status: { restored } }), false],
  ['a Stack that is being destroyed', deleting({ conditions: { Ready: 'Deleting' } }), false],
  ['a Stack whose deletion awaits a confirmation', deleting({ conditions: confirmation, status: { plan }, metadata: confirmed }), true],
  ['a Stack whose confirmed destruction was canceled', deleting({ conditions: canceled, metadata: confirmed }), true],
  ['a Stack whose destruction was canceled, without a confirmed plan,', deleting({ conditions: canceled }), false],
  [
    'a Stack whose deletion awaits an approval',
    deleting({ conditions: { Ready: 'AwaitingApproval', AwaitingApproval: 'Pending' }, status: { plan }, metadata: confirmed }),
    false,
  ],
] as const)
  test(`${what} ${isPossible ? 'can' : 'cannot'} be destroyed by a user`, () => equal(destroyBlocker(stack) === undefined, isPossible))

test('a plan is decided about while it awaits an approval, and not while it awaits the confirmation of a deletion', () => {
  const awaiting = (reason: string) => deleting({ conditions: { AwaitingApproval: reason }, status: { plan } })
  equal(decisionBlocker(awaiting('Pending')), undefined)
  deepEqual(decisionBlocker(awaiting('ConfirmationRequired')), {
    text: 'the deletion of the Stack needs no approval, but the confirmation of the user who destroys it',
    remedy: 'show and confirm its plan: oarlock destroy app -n shop',
  })
  equal(decisionBlocker(stackOf({ conditions: { AwaitingApproval: 'Pending' } }))?.text, 'the Stack has no plan awaiting approval')
  match(decisionBlocker(stackOf())?.remedy ?? '', /only a Stack with spec.approval Manual/)
  match(decisionBlocker(stackOf({ spec: { approval: 'Manual' } }))?.remedy ?? '', /oarlock describe stack app -n shop/)
})

test('a deletion waits for a confirmation by the reason of the condition, whatever its message', () => {
  const deletion = (reason: string, status: 'True' | 'False' = 'True') => {
    const message = 'Approve it with: oarlock approve app -n default; the destruction was requested by oarlock destroy app'
    return isConfirmedDeletion({ status: { conditions: [{ type: 'AwaitingApproval', status, reason, message, lastTransitionTime: '' }] } })
  }
  equal(deletion('ConfirmationRequired'), true)
  equal(deletion('ConfirmationRequired', 'False'), false)
  equal(deletion('Void'), false)
})
