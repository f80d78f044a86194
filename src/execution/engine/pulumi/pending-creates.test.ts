import { deepEqual, doesNotThrow, equal, throws } from 'node:assert/strict'
import { test } from 'node:test'
import type { StackSpec } from '../../../api/index.ts'
import { formatPending, pendingImport, rejectPendingCreates, withImported, withoutPendingCreates } from './pending-creates.ts'

const urnOf = (name: string) => `urn:pulumi:dev::shop::aws:s3/bucket:Bucket::${name}`
const resource = (name: string) => ({ urn: urnOf(name), custom: true, type: 'aws:s3/bucket:Bucket', inputs: { bucket: name } })
const creating = (name: string) => ({ type: 'creating', resource: resource(name) })
const provider = { type: 'creating', resource: { urn: 'urn:pulumi:dev::shop::pulumi:providers:aws::default', custom: true } }
const component = { type: 'creating', resource: { urn: 'urn:pulumi:dev::shop::web:Group::group', custom: false } }
const updating = { type: 'updating', resource: resource('a') }
const deployment = { resources: [resource('a')], pending_operations: [creating('b'), updating, provider, creating('c'), component] }
const state = { version: 3, features: ['x'], deployment }

const spec = (pulumi?: StackSpec['pulumi']) => ({ spec: { engine: 'pulumi' as const, ...(pulumi && { pulumi }) } })
const imports = (...names: string[]) => names.map(name => ({ urn: urnOf(name), id: `id-${name}` }))

test('a Stack does not continue while it is unknown whether resources exist', () => {
  throws(() => rejectPendingCreates(spec(), deployment), {
    ...{ reason: 'PendingCreates', retryable: false },
    message:
      'the creation of 2 resources was interrupted, and it is unknown whether the provider finished: aws:s3/bucket:Bucket b, aws:s3/bucket:Bucket c; delete what exists there, then set spec.pulumi.pendingCreates to Clear, which creates them again, or name their IDs in spec.pulumi.importPendingCreates and set it to Import',
  })
  doesNotThrow(() => rejectPendingCreates(spec({ pendingCreates: 'Clear' }), deployment))
  doesNotThrow(() => rejectPendingCreates(spec(), { pending_operations: [updating, provider, component] }))
})

test('with Import it continues when all of them have an ID, and names the others with their URNs', () => {
  throws(() => rejectPendingCreates(spec({ pendingCreates: 'Import', importPendingCreates: imports('b') }), deployment), {
    ...{ reason: 'PendingCreates', retryable: false },
    message: `the creation of 1 resource was interrupted, and it is unknown whether the provider finished: aws:s3/bucket:Bucket c; add their IDs to spec.pulumi.importPendingCreates, for ${urnOf('c')}; or, if none of them exists, set spec.pulumi.pendingCreates to Clear`,
  })
  doesNotThrow(() => rejectPendingCreates(spec({ pendingCreates: 'Import', importPendingCreates: imports('c', 'b', 'x') }), deployment))
})

test('clearing removes interrupted creations and nothing else', () => {
  deepEqual(withoutPendingCreates(spec({ pendingCreates: 'Clear' }), state), {
    ...state,
    deployment: { ...deployment, pending_operations: [updating] },
  })
  for (const empty of [{ pending_operations: [] }, null])
    equal(withoutPendingCreates(spec({ pendingCreates: 'Clear' }), { version: 3, deployment: empty }), undefined)
})

test('creations of components and providers, which are in the state only, are cleared without a decision', () => {
  deepEqual(withoutPendingCreates(spec(), state)?.deployment?.pending_operations, [creating('b'), updating, creating('c')])
  equal(withoutPendingCreates(spec(), { version: 3, deployment: { pending_operations: [creating('b')] } }), undefined)
})

test('what is imported is read as a resource with an ID, and is pending until it is read', () => {
  const context = spec({ pendingCreates: 'Import', importPendingCreates: imports('b', 'c', 'unused') })
  const found = pendingImport(context, state)!
  deepEqual(found.urns, [urnOf('b'), urnOf('c')])
  const imported = [
    { ...resource('b'), id: 'id-b' },
    { ...resource('c'), id: 'id-c' },
  ]
  deepEqual(found.state, { ...state, deployment: { ...deployment, resources: [resource('a'), ...imported] } })
  deepEqual(withImported(context, found, found.state).deployment?.pending_operations, [updating, provider, component])
})

test('with Clear those that have an ID are imported, and the others forgotten', () => {
  const context = spec({ pendingCreates: 'Clear', importPendingCreates: imports('c') })
  const found = pendingImport(context, state)!
  const after = withImported(context, found, found.state)
  deepEqual(after.deployment?.pending_operations, [creating('b'), updating, provider, component])
  deepEqual(withoutPendingCreates(context, after)?.deployment?.pending_operations, [updating])
})

test('nothing is imported without a list, with Stop, and without an interrupted creation', () => {
  equal(pendingImport(spec({ pendingCreates: 'Clear' }), state), undefined)
  equal(pendingImport(spec({ importPendingCreates: imports('b') }), state), undefined)
  equal(pendingImport(spec({ pendingCreates: 'Import', importPendingCreates: imports('x') }), state), undefined)
  equal(pendingImport(spec({ pendingCreates: 'Import', importPendingCreates: imports('b') }), undefined), undefined)
})

test('an ID that the provider does not have is rejected, and the message names it', () => {
  const context = spec({ pendingCreates: 'Import', importPendingCreates: imports('b', 'c') })
  const found = pendingImport(context, state)!
  const read = { ...state, deployment: { ...deployment, resources: found.state.deployment?.resources?.slice(0, 2) ?? [] } }
  throws(() => withImported(context, found, read), {
    ...{ reason: 'PendingCreates', retryable: false },
    message:
      'the provider does not have aws:s3/bucket:Bucket c with ID "id-c"; correct it in spec.pulumi.importPendingCreates, or remove the entry and set spec.pulumi.pendingCreates to Clear',
  })
})

test('an interrupted replacement is not imported', () => {
  const replaced = { ...state, deployment: { resources: [resource('b')], pending_operations: [creating('b')] } }
  throws(() => pendingImport(spec({ pendingCreates: 'Import', importPendingCreates: imports('b') }), replaced), /interrupted replacement/)
})

test('at most 10 resources are listed', () => {
  const urns = Array.from({ length: 12 }, (_, index) => urnOf(`${index}`))
  equal(formatPending(urns).endsWith('aws:s3/bucket:Bucket 9 and 2 more'), true)
})
