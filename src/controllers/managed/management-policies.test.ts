import { deepEqual, equal, match } from 'node:assert/strict'
import { test } from 'node:test'
import { decidePolicy } from './management-policies.ts'

/** The 15 sets that crossplane-runtime v2.5 supports; the second column is what they permit: C, U, D, L; `-` nothing but to observe. */
const supported: [readonly string[], string][] = [
  [['*'], 'CUDL'],
  [['Observe', 'Create', 'Update', 'LateInitialize', 'Delete'], 'CUDL'],
  [['Observe'], '-'],
  [[], 'paused'],
  [['Observe', 'Create', 'Update', 'Delete'], 'CUD'],
  [['Observe', 'Create', 'Update', 'LateInitialize'], 'CUL'],
  [['Observe', 'Create', 'Update'], 'CU'],
  [['Observe', 'Create', 'Delete', 'LateInitialize'], 'CDL'],
  [['Observe', 'Create', 'LateInitialize'], 'CL'],
  [['Observe', 'Create', 'Delete'], 'CD'],
  [['Observe', 'Create'], 'C'],
  [['Observe', 'Delete'], 'D'],
  [['Observe', 'Update'], 'U'],
  [['Observe', 'LateInitialize'], 'L'],
  [['Observe', 'Update', 'LateInitialize'], 'UL'],
]

const permitted = (policies: readonly string[] | undefined, deletionPolicy?: string): string => {
  const decision = decidePolicy(policies, deletionPolicy)
  if (decision.kind !== 'permitted') return decision.kind
  const { create, update, delete: mayDelete, lateInitialize } = decision.permissions
  const text = `${create ? 'C' : ''}${update ? 'U' : ''}${mayDelete ? 'D' : ''}${lateInitialize ? 'L' : ''}`
  return text || '-'
}

for (const [policies, expected] of supported) {
  test(`policies [${policies.join(', ')}] permit ${expected}, in any order`, () => {
    equal(permitted(policies), expected)
    equal(permitted(policies.toReversed()), expected)
  })
}

test('of the 64 sets of actions exactly these 15 are supported', () => {
  const actions = ['Observe', 'Create', 'Update', 'Delete', 'LateInitialize', '*']
  const valid = Array.from({ length: 64 }, (_, bits) => actions.filter((_action, index) => bits & (1 << index))).filter(
    set => decidePolicy(set).kind !== 'invalid',
  )
  const sorted = (sets: readonly (readonly string[])[]) => sets.map(set => set.toSorted().join()).sort()
  deepEqual(sorted(valid), sorted(supported.map(([set]) => set)))
})

test('without policies everything is permitted', () => equal(permitted(undefined), 'CUDL'))

test('only Observe is observe-only', () => {
  const observeOnly = supported.filter(([set]) => {
    const decision = decidePolicy(set)
    return decision.kind === 'permitted' && decision.isObserveOnly
  })
  deepEqual(
    observeOnly.map(([set]) => set),
    [['Observe']],
  )
})

test('an unsupported set is refused with the sets that are', () => {
  const decision = decidePolicy(['Create', 'Delete'])
  equal(decision.kind, 'invalid')
  if (decision.kind === 'invalid') {
    match(
      decision.message,
      /^spec\.managementPolicies \[Create, Delete\] is not supported: use \['\*'\], \[\] to pause, or Observe alone or together with/,
    )
    match(decision.message, /Create \+ Update \+ Delete;/)
  }
})

test('deletionPolicy Orphan forbids the deletion, unless policies that are not the default contain Delete', () => {
  equal(permitted(undefined, 'Orphan'), 'CUL')
  equal(permitted(['*'], 'Orphan'), 'CUL')
  equal(permitted(['Observe', 'Create', 'Update', 'Delete'], 'Orphan'), 'CUD')
  equal(permitted(['Observe', 'Create', 'Update'], 'Delete'), 'CU')
})
