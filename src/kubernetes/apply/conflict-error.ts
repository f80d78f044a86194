import { type StatusCause, StatusError } from '../object/status-error.ts'

/**
 * A field that an apply would change and somebody else owns. `manager` is worded as Kubernetes words it:
 * `"kubectl" using apps/v1`, with `with subresource "status"` where it was written through one.
 */
export type FieldConflict = { manager: string; field: string }

/** Nobody reads more conflicts than this. */
const maxTold = 1_000

/** The 409 for an apply with conflicts; each cause has the reason FieldManagerConflict. */
export function conflictError(conflicts: readonly FieldConflict[]): StatusError {
  const causes: StatusCause[] = conflicts.slice(0, maxTold).map(({ manager, field }) => ({
    reason: 'FieldManagerConflict',
    message: `conflict with ${manager}`,
    field,
  }))
  return new StatusError('Conflict', `Apply failed with ${say(conflicts)}`, {
    details: { causes },
  })
}

function say(conflicts: readonly FieldConflict[]): string {
  const [first] = conflicts
  if (first !== undefined && conflicts.length === 1) return `1 conflict: conflict with ${first.manager}: ${first.field}`
  const byManager = Map.groupBy(conflicts.slice(0, maxTold), ({ manager }) => manager)
  const lines = [...byManager].flatMap(([manager, list]) => [`conflicts with ${manager}:`, ...list.map(({ field }) => `- ${field}`)])
  if (conflicts.length > maxTold) lines.push(`and ${conflicts.length - maxTold} more`)
  return `${conflicts.length} conflicts: ${lines.join('\n')}`
}
