import {
  type Blocker,
  decisionBlocker,
  deletionRunEffect,
  destroyBlocker,
  formatBlocker,
  isConfirmedDeletion,
  isEnded,
  type KnownState,
  oarlockCommand,
  type RequestType,
  type Run,
  runBlocker,
  type Stack,
  type Worker,
} from '../../api/index.ts'
import type { Action, ActionName } from '../protocol/index.ts'

/** A right that an action needs. */
export type NeededRight = {
  readonly verb: string
  readonly resource: 'stacks' | 'runs' | 'workers'
  readonly subresource?: string
}

export type Rights = { has(right: NeededRight): Promise<boolean>; readonly readOnly: boolean }

type Candidate = {
  readonly name: ActionName
  readonly label: string
  readonly needs: readonly NeededRight[]
  readonly command: string
  /** Why the state of the object does not allow it. */
  readonly why?: string | undefined
  readonly effect?: string | undefined
}

const updateStack: NeededRight = { verb: 'patch', resource: 'stacks' }
/** As an admission policy and `patch` need. */
const decidePlan: readonly NeededRight[] = [{ verb: 'update', resource: 'stacks', subresource: 'approval' }, updateStack]
const cancelRun: readonly NeededRight[] = [
  { verb: 'patch', resource: 'runs' },
  { verb: 'update', resource: 'runs', subresource: 'cancel' },
]

const suspendedApproval =
  'The Stack is suspended: this plan is executed when the Stack is resumed, and until then the real infrastructure stays as it is.'

/** Of a Stack that is being deleted and whose resources are destroyed then. */
const deletionEffects = {
  suspend:
    'The Stack is being deleted. An active Run continues and may still destroy resources; no other Run starts until the Stack is resumed.',
  resume: 'The Stack is being deleted: this continues, and its real resources are destroyed, after an approval where one is required.',
} as const

/**
 * What can be done with a Stack.
 * @param state what the stores have of a state whose error the status reports.
 */
export async function stackActions(stack: Stack, rights: Rights, state?: KnownState): Promise<Action[]> {
  const { metadata, spec } = stack
  const isDeleting = metadata.deletionTimestamp !== undefined
  const toggle = spec.suspend ? ({ name: 'resume', label: 'Resume' } as const) : ({ name: 'suspend', label: 'Suspend' } as const)
  const destroys = isDeleting && spec.deletion !== 'Orphan'
  const undecidable = decisionBlocker(stack)
  const command = (words: string) => oarlockCommand(words, metadata)
  const runWith = (type: RequestType) => ({
    needs: [updateStack],
    why: whyNot(runBlocker(stack, { type }, state)),
    effect: deletionRunEffect(stack),
  })
  const candidates: Candidate[] = [
    { name: 'run', label: 'Run', command: command('run'), ...runWith('apply') },
    { name: 'plan', label: 'Plan', command: command('plan'), ...runWith('plan') },
    { name: 'refresh', label: 'Refresh the state', command: `${command('run')} --refresh-only`, ...runWith('refresh') },
    {
      name: 'approve',
      label: 'Approve the plan',
      needs: decidePlan,
      command: command('approve'),
      // That none awaits it is usual, and no reason to do something.
      why: isConfirmedDeletion(stack) ? whyNot(undecidable) : undecidable?.text,
      effect: spec.suspend ? suspendedApproval : undefined,
    },
    ...(undecidable ? [] : [{ name: 'reject' as const, label: 'Reject the plan', needs: decidePlan, command: command('reject') }]),
    // Also while it is being deleted: a deletion waits while the Stack is suspended.
    { ...toggle, needs: [updateStack], command: command(toggle.name), effect: destroys ? deletionEffects[toggle.name] : undefined },
    {
      name: 'destroy',
      label: 'Destroy',
      needs: [
        // Of a Stack that is being deleted, another plan is confirmed.
        ...(isDeleting ? [] : [{ verb: 'delete', resource: 'stacks' } as const]),
        { verb: 'delete', resource: 'stacks', subresource: 'destroy' },
        updateStack,
        // Its resources are destroyed only by a change of spec.deletion.
        ...(spec.deletion === 'Orphan' && !isDeleting ? [{ verb: 'update', resource: 'stacks' } as const] : []),
      ],
      command: command('destroy'),
      why: whyNot(destroyBlocker(stack)),
    },
  ]
  return await decide(candidates, rights)
}

const whyNot = (blocker: Blocker | undefined): string | undefined => blocker && formatBlocker(blocker)

/** What can be done with a Run. */
export async function runActions(run: Run, rights: Rights): Promise<Action[]> {
  const why = isEnded(run) ? `the Run has ended (${run.status?.phase})` : run.spec.cancel ? 'its cancellation is requested' : undefined
  return await decide(
    [
      {
        name: 'cancel',
        label: 'Cancel',
        needs: cancelRun,
        command: oarlockCommand('cancel run', run.metadata).replace('run ', 'run/'),
        why,
      },
    ],
    rights,
  )
}

/** What can be done with a Worker. */
export async function workerActions({ metadata: { name }, spec }: Worker, rights: Rights): Promise<Action[]> {
  const needs: readonly NeededRight[] = [{ verb: 'patch', resource: 'workers' }]
  return await decide(
    [
      { name: 'drain', label: 'Drain', needs, command: `oarlock drain ${name}`, why: spec.drain ? 'the worker is draining' : undefined },
      spec.cordon
        ? { name: 'uncordon', label: 'Uncordon', needs, command: `oarlock uncordon ${name}` }
        : { name: 'cordon', label: 'Cordon', needs, command: `oarlock cordon ${name}` },
    ],
    rights,
  )
}

async function decide(candidates: readonly Candidate[], rights: Rights): Promise<Action[]> {
  return await Promise.all(
    candidates.map(async ({ name, label, needs, command, why, effect }) => {
      const reason = (rights.readOnly ? undefined : why) ?? (await whyNotAllowed(needs, rights))
      return {
        ...{ name, label, command, enabled: reason === undefined },
        ...(reason !== undefined && { why: reason }),
        ...(effect !== undefined && { effect }),
      }
    }),
  )
}

/** Why the user may not do what needs these rights. */
export async function whyNotAllowed(needs: readonly NeededRight[], rights: Rights): Promise<string | undefined> {
  return rights.readOnly ? 'the console is read-only' : await missingRight(needs, rights)
}

async function missingRight(needs: readonly NeededRight[], rights: Rights): Promise<string | undefined> {
  for (const right of needs) {
    if (await rights.has(right)) continue
    const resource = right.subresource === undefined ? right.resource : `${right.resource}/${right.subresource}`
    return `you need the permission to ${right.verb} ${resource}`
  }
  return undefined
}
