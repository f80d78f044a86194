/** What a Stack of a managed resource carries besides its spec, and who may take it. */
import type { Stack, StackSpec } from '../../../api/index.ts'
import { equalJson, isJsonObject, type KubeObject, stableJson } from '../../../kubernetes/object/index.ts'
import { sha256 } from '../../../kubernetes/util/index.ts'

export const stackAnnotations = {
  /** Digest of the spec that the resource wanted when it was written: shows the removal of a field, which a comparison of fields does not. */
  wanted: 'oarlock.dev/wanted-spec',
  /** Why the controller of the resource has suspended the Stack: `Paused` or `Orphaned`. It resumes only such a Stack. */
  suspended: 'oarlock.dev/suspended-because',
  /** On a Stack that has survived its resource: `Kind.group/name` of the resource, which may take it again. */
  orphanedFrom: 'oarlock.dev/orphaned-from',
} as const

/** `AnsibleRun.ansible.example/web`. */
export function resourceId({ apiVersion, kind, metadata }: KubeObject<unknown>): string {
  return `${kind}.${apiVersion.replace(/\/[^/]*$/, '')}/${metadata.name}`
}

export type Ownership = 'own' | 'orphaned' | 'foreign'

/** Whose Stack it is. One without a controller that a resource of this name left behind is `orphaned`. */
export function ownershipOf({ metadata }: Stack, object: KubeObject<unknown>): Ownership {
  const owner = metadata.ownerReferences?.find(({ controller }) => controller)
  if (owner) return owner.uid === object.metadata.uid ? 'own' : 'foreign'
  return metadata.annotations?.[stackAnnotations.orphanedFrom] === resourceId(object) ? 'orphaned' : 'foreign'
}

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
