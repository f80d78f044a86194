import { isEnded, oarlockCommand, type Run, type Stack, type Worker } from '../../api/index.ts'
import { isConditionTrue } from '../../kubernetes/object/index.ts'
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

/** What can be done with a Stack. */
export async function stackActions({ metadata, spec, status }: Stack, rights: Rights): Promise<Action[]> {
  const suspended = spec.suspend ? 'the Stack is suspended: resume it first' : undefined
  const deleting = metadata.deletionTimestamp === undefined ? undefined : 'the Stack is being deleted'
  const restored = status?.restored ? 'the Stack was restored from a backup and waits for its review' : undefined
  const toggle = spec.suspend ? ({ name: 'resume', label: 'Resume' } as const) : ({ name: 'suspend', label: 'Suspend' } as const)
  const destroys = deleting !== undefined && spec.deletion !== 'Orphan'
  const plan = isConditionTrue(status?.conditions, 'AwaitingApproval') ? status?.plan : undefined
  const command = (words: string) => oarlockCommand(words, metadata)
  const candidates: Candidate[] = [
    { name: 'run', label: 'Run', needs: [updateStack], command: command('run'), why: deleting ?? suspended ?? restored },
    { name: 'plan', label: 'Plan', needs: [updateStack], command: command('plan'), why: deleting ?? suspended },
    {
      name: 'refresh',
      label: 'Refresh the state',
      needs: [updateStack],
      command: `${command('run')} --refresh-only`,
      why: deleting ?? suspended ?? restored,
    },
    {
      name: 'approve',
      label: 'Approve the plan',
      needs: decidePlan,
      command: command('approve'),
      why: plan ? undefined : 'no plan awaits approval',
      effect: spec.suspend ? suspendedApproval : undefined,
    },
    ...(plan ? [{ name: 'reject' as const, label: 'Reject the plan', needs: decidePlan, command: command('reject') }] : []),
    // Also while it is being deleted: a deletion waits while the Stack is suspended.
    { ...toggle, needs: [updateStack], command: command(toggle.name), effect: destroys ? deletionEffects[toggle.name] : undefined },
    {
      name: 'destroy',
      label: 'Destroy',
      needs: [
        { verb: 'delete', resource: 'stacks' },
        { verb: 'delete', resource: 'stacks', subresource: 'destroy' },
        updateStack,
        // Its resources are destroyed only by a change of spec.deletion.
        ...(spec.deletion === 'Orphan' ? [{ verb: 'update', resource: 'stacks' } as const] : []),
      ],
      command: command('destroy'),
      why: deleting ?? suspended ?? (spec.deletionProtection ? 'spec.deletionProtection of the Stack is true' : undefined),
    },
  ]
  return await decide(candidates, rights)
}

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
