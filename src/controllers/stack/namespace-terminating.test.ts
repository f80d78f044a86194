import { deepEqual, equal, match } from 'node:assert/strict'
import { test } from 'node:test'
import type { Stack } from '../../api/index.ts'
import { StatusError } from '../../kubernetes/object/index.ts'
import { isNamespaceTerminating, namespaceTerminating } from './namespace-terminating.ts'

const because = (reason: string) =>
  new StatusError('Forbidden', 'no', {
    details: { causes: [{ reason: reason as 'FieldValueForbidden', message: 'm', field: 'metadata.namespace' }] },
  })

for (const [name, error, want] of [
  ['a create in a namespace that is being deleted', because('NamespaceTerminating'), true],
  ['another refusal', because('Other'), false],
  ['a refusal without causes', new StatusError('Forbidden', 'no'), false],
  ['anything else', new Error('NamespaceTerminating'), false],
] as const) {
  test(`${name}: ${want}`, () => equal(isNamespaceTerminating(error), want))
}

test('the Stack says what to do, once', () => {
  const stack = { metadata: { name: 'a', namespace: 'crew', generation: 2 }, spec: {}, status: { lastRunNumber: 3 } } as Stack
  const first = namespaceTerminating(stack, 0)
  equal(first.status.lastRunNumber, 3)
  deepEqual(first.status.conditions?.map(({ type, status, reason }) => [type, status, reason]).sort(), [
    ['Ready', 'False', 'NamespaceTerminating'],
    ['Stalled', 'True', 'NamespaceTerminating'],
  ])
  match(first.status.conditions?.[0]?.message ?? '', /Namespace crew is being deleted.*Set spec\.deletion to Orphan/)
  equal(first.events.length, 1)
  const second = namespaceTerminating({ ...stack, status: first.status }, 5_000)
  deepEqual(second, { status: first.status, events: [] })
})
