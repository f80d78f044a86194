import { deepEqual, match } from 'node:assert/strict'
import { test } from 'node:test'
import type { Stack } from '../../api/index.ts'
import { type NeededRight, stackActions } from './available-actions.ts'

const stackOf = (spec: Partial<Stack['spec']> = {}) =>
  ({
    metadata: { namespace: 'a', name: 'one' },
    spec: { engine: 'command', ...spec },
    status: { conditions: [{ type: 'AwaitingApproval', status: 'True' }], plan: { digest: 'sha256:1' } },
  }) as unknown as Stack
const textOf = ({ verb, subresource }: NeededRight) => (subresource ? `${verb} ${subresource}` : verb)

const actionOf = async (action: string, stack: Stack) =>
  (await stackActions(stack, { has: async () => true, readOnly: false })).find(({ name }) => name === action)

/** Why these actions are disabled for a user with these rights on Stacks. */
async function disabled(rights: readonly string[], stack = stackOf()): Promise<Record<string, string | undefined>> {
  const actions = await stackActions(stack, { has: async right => rights.includes(textOf(right)), readOnly: false })
  const shown = actions.filter(({ name }) => ['approve', 'reject', 'destroy'].includes(name))
  return Object.fromEntries(shown.map(({ name, why }) => [name, why]))
}

const decides = ['update approval', 'delete', 'delete destroy']

test('an action asks for every right that its requests need: the plan is approved, rejected or confirmed by a patch', async () => {
  const why = 'you need the permission to patch stacks'
  deepEqual(await disabled(decides), { approve: why, reject: why, destroy: why })
  deepEqual(await disabled([...decides, 'patch']), { approve: undefined, reject: undefined, destroy: undefined })
})

test('destroying the resources of a Stack that would keep them needs the right to update it, as in the command line', async () => {
  const keeps = stackOf({ deletion: 'Orphan' })
  deepEqual((await disabled([...decides, 'patch'], keeps)).destroy, 'you need the permission to update stacks')
  deepEqual((await disabled([...decides, 'patch', 'update'], keeps)).destroy, undefined)
})

test('the approval of a suspended Stack states that the plan is executed when the Stack is resumed', async () => {
  deepEqual((await actionOf('approve', stackOf()))?.effect, undefined)
  match((await actionOf('approve', stackOf({ suspend: true })))?.effect ?? '', /executed when the Stack is resumed/)
})

test('a Stack that is being deleted can be suspended, which stops its destruction, and resumed, which continues it', async () => {
  const deleting = (stack: Stack) => ({ ...stack, metadata: { ...stack.metadata, deletionTimestamp: '2026-06-01T10:00:00Z' } }) as Stack
  const suspend = await actionOf('suspend', deleting(stackOf()))
  deepEqual([suspend?.enabled, /An active Run continues and may still destroy resources/.test(suspend?.effect ?? '')], [true, true])
  const resume = await actionOf('resume', deleting(stackOf({ suspend: true })))
  deepEqual([resume?.enabled, /its real resources are destroyed/.test(resume?.effect ?? '')], [true, true])
  deepEqual((await actionOf('resume', stackOf({ suspend: true })))?.effect, undefined)
  deepEqual((await actionOf('resume', deleting(stackOf({ suspend: true, deletion: 'Orphan' }))))?.effect, undefined)
  deepEqual((await actionOf('run', deleting(stackOf())))?.enabled, false)
})

test('a deletion that waits for a confirmation needs no approval: the plan is confirmed with Destroy', async () => {
  const lastTransitionTime = '2026-06-01T10:00:00Z'
  const condition = { type: 'AwaitingApproval', status: 'True' as const, reason: 'ConfirmationRequired', message: '', lastTransitionTime }
  const waiting = stackOf()
  Object.assign(waiting.metadata, { deletionTimestamp: lastTransitionTime })
  waiting.status = { ...waiting.status, conditions: [condition] }
  const rights = ['patch', 'update approval', 'delete destroy']
  deepEqual(await disabled(rights, waiting), {
    approve:
      'the deletion of the Stack needs no approval, but the confirmation of the user who destroys it: show and confirm its plan: oarlock destroy one -n a',
    destroy: undefined,
  })
})

test('a canceled destruction is continued by the Run that its condition names, and the action states what that does', async () => {
  const lastTransitionTime = '2026-06-01T10:00:00Z'
  const conditions = ['Ready', 'Stalled'].map(type => {
    const status = type === 'Ready' ? ('False' as const) : ('True' as const)
    return { type, status, reason: 'RunCanceled', message: '', lastTransitionTime }
  })
  const canceled = stackOf()
  Object.assign(canceled.metadata, { deletionTimestamp: lastTransitionTime })
  canceled.status = { conditions }
  const run = await actionOf('run', canceled)
  deepEqual([run?.enabled, /this destroys its real resources/.test(run?.effect ?? '')], [true, true])
  match((await actionOf('plan', canceled))?.why ?? '', /a Run may destroy its resources without an approval/)
  match((await actionOf('refresh', canceled))?.why ?? '', /the Stack is being deleted: a Run destroys all of its resources/)
})

test('a Stack that was restored, or whose state is missing, gets no Run, with the reason of the command line', async () => {
  const restored = { ...stackOf(), status: { restored: { at: '2026-06-01T10:00:00Z' } } } as Stack
  const why = /^the Stack was restored from a backup and waits for its review: show what differs with "oarlock plan one -n a"/
  for (const name of ['run', 'refresh', 'destroy']) match((await actionOf(name, restored))?.why ?? '', why)
  deepEqual((await actionOf('plan', restored))?.enabled, true)
  const stalled = { type: 'Stalled', status: 'True' as const, reason: 'StateMissing', message: 'upload it', lastTransitionTime: '' }
  const missing = { ...stackOf(), status: { conditions: [stalled] } } as Stack
  const known = { error: { reason: 'StateMissing', message: 'version 1 is required' }, hasJournal: false }
  const actions = await stackActions(missing, { has: async () => true, readOnly: false }, known)
  deepEqual(
    actions.filter(({ why }) => why === 'upload it').map(({ name }) => name),
    ['run', 'plan', 'refresh'],
  )
})
