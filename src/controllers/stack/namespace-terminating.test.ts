import { deepEqual, equal, match } from 'node:assert/strict'
import { test } from 'node:test'
import type { Stack } from '../../api/index.ts'
import { StatusError } from '../../kubernetes/object/index.ts'
import { isNamespaceTerminating, namespaceTerminating } from './namespace-terminating.ts'

const forbidden = (reason: string) =>
  new StatusError('Forbidden', 'no', {
    details: { causes: [{ reason: reason as 'FieldValueForbidden', message: 'm', field: 'metadata.namespace' }] },
  })

for (const [name, error, want] of [
  ['a create in a namespace that is being deleted', forbidden('NamespaceTerminating'), true],
  ['another Forbidden error', forbidden('Other'), false],
  ['a Forbidden error without causes', new StatusError('Forbidden', 'no'), false],
  ['any other error', new Error('NamespaceTerminating'), false],
] as const) {
  test(`isNamespaceTerminating is ${want} for ${name}`, () => equal(isNamespaceTerminating(error), want))
}

test('namespaceTerminating sets Stalled with a remedy and records one event', () => {
  const stack = { metadata: { name: 'a', namespace: 'team', generation: 2 }, spec: {}, status: { lastRunNumber: 3 } } as Stack
  const first = namespaceTerminating(stack, 0)
  equal(first.status.lastRunNumber, 3)
  deepEqual(first.status.conditions?.map(({ type, status, reason }) => [type, status, reason]).sort(), [
    ['Ready', 'False', 'NamespaceTerminating'],
    ['Stalled', 'True', 'NamespaceTerminating'],
  ])
  match(first.status.conditions?.[0]?.message ?? '', /Namespace team is being deleted.*Set spec\.deletion to Orphan/)
  equal(first.events.length, 1)
  const second = namespaceTerminating({ ...stack, status: first.status }, 5_000)
  deepEqual(second, { status: first.status, events: [] })
})
