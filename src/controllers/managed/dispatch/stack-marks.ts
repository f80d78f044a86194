/** What a Stack of a managed resource carries besides its spec, and whether it has what is wanted. */
import type { Stack, StackSpec } from '../../../api/index.ts'
import { equalJson, isJsonObject, stableJson } from '../../../kubernetes/object/index.ts'
import { sha256 } from '../../../kubernetes/util/index.ts'

export const stackAnnotations = {
  /** Digest of the spec that the resource wanted when it was written: shows the removal of a field, which a comparison of fields does not. */
  wanted: 'oarlock.dev/wanted-spec',
  /** Why the controller of the resource has suspended the Stack: `Paused` or `Orphaned`. It resumes only such a Stack. */
  suspended: 'oarlock.dev/suspended-because',
  /** On a Stack that has survived its resource: `Kind.group/name` of the resource, which may take it again. */
  orphanedFrom: 'oarlock.dev/orphaned-from',
  /** Number of the last operation whose result the controller has acted on. */
  handledOperation: 'oarlock.dev/handled-operation',
} as const

/** As it is sent, without fields that are undefined. */
export function plainSpec(spec: StackSpec): StackSpec {
  return JSON.parse(JSON.stringify(spec)) as StackSpec
}

export const digestOf = (spec: StackSpec): string => `sha256:${sha256(stableJson(spec))}`

/** Whether the Stack has what is wanted. What the API server added by default, and what people set that the resource leaves open, is no difference. */
export function hasWanted({ metadata, spec }: Stack, wanted: StackSpec): boolean {
  return metadata.annotations?.[stackAnnotations.wanted] === digestOf(wanted) && includes(spec, wanted)
}

function includes(actual: unknown, wanted: unknown): boolean {
  if (!isJsonObject(wanted)) return equalJson(actual, wanted)
  return isJsonObject(actual) && Object.entries(wanted).every(([field, value]) => includes(actual[field], value))
}

/** The spec to write over an existing one: people may suspend or protect a Stack whose resource says nothing about it. */
export function specOver({ spec }: Stack, wanted: StackSpec): StackSpec {
  const { suspend, deletionProtection } = spec
  return { ...(suspend && { suspend }), ...(deletionProtection && { deletionProtection }), ...wanted }
}
