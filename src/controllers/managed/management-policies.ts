/** What a managed resource permits its controller to do, as `spec.managementPolicies` (and `spec.deletionPolicy` of older kinds) say. */

export const managementActions = ['Observe', 'Create', 'Update', 'Delete', 'LateInitialize', '*'] as const
export type ManagementAction = (typeof managementActions)[number]

export type Permissions = { readonly create: boolean; readonly update: boolean; readonly delete: boolean; readonly lateInitialize: boolean }

export type PolicyDecision =
  | { kind: 'permitted'; permissions: Permissions; isObserveOnly: boolean }
  /** The list is empty: nothing is done, not even an observation. */
  | { kind: 'paused' }
  | { kind: 'invalid'; message: string }

/** The sets that have a meaning; initials of the actions other than Observe, which all but `*` and the empty set contain. */
const supported = new Set(['', 'CUD', 'CUL', 'CU', 'CDL', 'CL', 'CD', 'C', 'D', 'U', 'L', 'UL', 'CUDL'])
const initials = { Create: 'C', Update: 'U', Delete: 'D', LateInitialize: 'L' } as const

const all: Permissions = { create: true, update: true, delete: true, lateInitialize: true }

/**
 * Decides what a resource permits. `policies` undefined means `['*']`. `deletionPolicy: Orphan` forbids the deletion unless the policies
 * are set and contain Delete: of two settings that contradict each other, the one that is not the default holds.
 */
export function decidePolicy(policies: readonly string[] | undefined, deletionPolicy?: string | undefined): PolicyDecision {
  const isOrphaned = deletionPolicy === 'Orphan'
  const set = new Set(policies ?? ['*'])
  if (set.size === 0) return { kind: 'paused' }
  if (set.size === 1 && set.has('*')) return { kind: 'permitted', permissions: { ...all, delete: !isOrphaned }, isObserveOnly: false }
  const key = Object.entries(initials)
    .filter(([action]) => set.has(action))
    .map(([, initial]) => initial)
    .join('')
  const known = set.has('Observe') && [...set].every(action => action === 'Observe' || action in initials)
  if (!known || !supported.has(key)) {
    return {
      kind: 'invalid',
      message: `spec.managementPolicies [${[...set].join(', ')}] is not supported: use ['*'], [] to pause, or Observe alone or together with ${[...supported].filter(Boolean).map(spellOut).join('; ')}`,
    }
  }
  const permissions = {
    create: set.has('Create'),
    update: set.has('Update'),
    delete: set.has('Delete'),
    lateInitialize: set.has('LateInitialize'),
  }
  return { kind: 'permitted', permissions, isObserveOnly: set.size === 1 }
}

function spellOut(key: string): string {
  return Object.entries(initials)
    .filter(([, initial]) => key.includes(initial))
    .map(([action]) => action)
    .join(' + ')
}
