import type { Rights } from './available-actions.ts'
import type { Call } from './route.ts'

/** What the user may do with an object, without its kind. */
export function rightsOf(
  { session, options: { isAllowed, readOnly = false } }: Call,
  object: { namespace?: string; name: string },
): Rights {
  return { readOnly, has: async right => await isAllowed(session.user, { ...right, group: 'oarlock.dev', ...object }) }
}
