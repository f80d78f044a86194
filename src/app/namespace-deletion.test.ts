import { equal, match } from 'node:assert/strict'
import { test } from 'node:test'
import { annotations, type Stack } from '../api/index.ts'
import { namespaceProblem } from './namespace-deletion.ts'

const stack = (change: object, spec: object = {}): Stack => ({ metadata: { name: 'app' }, spec, status: change }) as unknown as Stack
const namespace = (values: Record<string, string> = {}) => ({ metadata: { name: 'shop', annotations: values } }) as never
const lastRun = (type: string, phase: string) => ({ lastRun: { name: 'app-1', type, phase, reason: 'Deleted' } })

for (const [name, rejected, ...stacks] of [
  ['no Stack', false],
  ['a Stack that is applied', true, stack({ applied: {} })],
  ['a Stack with deletion Orphan', false, stack({ applied: {} }, { deletion: 'Orphan' })],
  ['a protected Stack', true, stack({}, { deletion: 'Orphan', deletionProtection: true })],
  ['a Stack without a Run', false, stack({})],
  ['a Stack that was only planned', false, stack(lastRun('Plan', 'Succeeded'))],
  ['a Stack whose first Apply failed', true, stack(lastRun('Apply', 'Failed'))],
  ['a Stack with a state', true, stack({ stateVersion: 2, ...lastRun('Plan', 'Succeeded') })],
  ['a Stack whose resources are destroyed', false, stack({ ...lastRun('Destroy', 'Succeeded') })],
] as const)
  test(`the deletion of a namespace with ${name} is ${rejected ? 'rejected' : 'admitted'}`, () =>
    equal(namespaceProblem(namespace(), stacks) !== undefined, rejected))

test('the message has both ways, and the annotation admits the deletion', () => {
  const stacks = [stack({ applied: {} })]
  match(namespaceProblem(namespace(), stacks) ?? '', /: app\. Destroy them first .*, or .* oarlock\.dev\/force-delete: "true"/)
  equal(namespaceProblem(namespace({ [annotations.forceDelete]: 'true' }), stacks), undefined)
})
