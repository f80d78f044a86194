import { type StatusCause, StatusError } from '../object/status-error.ts'

/**
 * A field that an apply would change and another manager owns. `manager` is worded as in Kubernetes:
 * `"kubectl" using apps/v1`, with `with subresource "status"` if it was written through one.
 */
export type FieldConflict = { manager: string; field: string }

/** More conflicts than this are of no use. */
const maxConflicts = 1_000

/** The 409 for an apply with conflicts; each cause has the reason FieldManagerConflict. */
export function conflictError(conflicts: readonly FieldConflict[]): StatusError {
  const causes: StatusCause[] = conflicts.slice(0, maxConflicts).map(({ manager, field }) => ({
    reason: 'FieldManagerConflict',
    message: `conflict with ${manager}`,
    field,
  }))
  return new StatusError('Conflict', `Apply failed with ${formatConflicts(conflicts)}`, {
    details: { causes },
  })
}

function formatConflicts(conflicts: readonly FieldConflict[]): string {
  const [first] = conflicts
  if (first !== undefined && conflicts.length === 1) return `1 conflict: conflict with ${first.manager}: ${first.field}`
  const byManager = Map.groupBy(conflicts.slice(0, maxConflicts), ({ manager }) => manager)
  const lines = [...byManager].flatMap(([manager, list]) => [`conflicts with ${manager}:`, ...list.map(({ field }) => `- ${field}`)])
  if (conflicts.length > maxConflicts) lines.push(`and ${conflicts.length - maxConflicts} more`)
  return `${conflicts.length} conflicts: ${lines.join('\n')}`
}
