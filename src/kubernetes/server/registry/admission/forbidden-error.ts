import { StatusError } from '../../../object/index.ts'

/** The 403 of an admission plugin: `pods "a" is forbidden: …`. */
export function forbiddenError({ group, plural }: { group: string; plural: string }, name: string, reason: string): StatusError {
  return new StatusError('Forbidden', `${group ? `${plural}.${group}` : plural} ${JSON.stringify(name)} is forbidden: ${reason}`, {
    details: { name, group: group || undefined, kind: plural },
  })
}
