import type { KubeObject, NameRule, StatusCause, StructuralSchema } from '../../object/index.ts'
import type { ScaleFields } from './scale.ts'

/** A column of `kubectl get` after Name. `read` gives the cell; undefined and null print as `<none>`. */
export type Column = {
  name: string
  type: 'string' | 'integer' | 'number' | 'boolean' | 'date'
  format?: string
  description: string
  priority: number
  read(object: KubeObject, nowMs: number): unknown
}

/** A field that field selectors may name beside metadata.name and metadata.namespace. */
export type SelectableField = { field: string; read(object: KubeObject): string }

export type Verb = 'create' | 'delete' | 'deletecollection' | 'get' | 'list' | 'patch' | 'update' | 'watch'

export const allVerbs: readonly Verb[] = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch']

/**
 * One kind at one version, as served: built-in kinds are rows of `kinds/`, custom ones are compiled from
 * their CustomResourceDefinition; nothing after the registry knows the difference except by the fields here.
 */
export type Kind = {
  readonly group: string
  readonly version: string
  /** `group/version`, or the version alone in the core group. */
  readonly apiVersion: string
  readonly kind: string
  readonly listKind: string
  readonly plural: string
  readonly singular: string
  readonly shortNames: readonly string[]
  readonly categories: readonly string[]
  readonly namespaced: boolean
  readonly verbs: readonly Verb[]
  /** Table of the store: `plural.group`, the same for all versions of a resource. */
  readonly storageName: string
  readonly schema: StructuralSchema
  /** Kubernetes' name of its type, when `schema` is of one: schemas/ has it with its descriptions and references. */
  readonly typeName?: string
  readonly description: string
  readonly nameRule: NameRule
  /** `status` is written through its own subresource only. */
  readonly hasStatus: boolean
  /** Where the scale subresource reads and writes; absent without one. */
  readonly scale?: ScaleFields
  /** `metadata.generation` counts changes outside metadata and status. */
  readonly hasGeneration: boolean
  /** The schema has `x-kubernetes-validations`. */
  readonly hasRules?: boolean
  readonly columns: readonly Column[]
  readonly selectableFields: readonly SelectableField[]
  readonly isCustom: boolean
  /** A question: answered when it is created, and never stored. */
  readonly isVirtual?: boolean
  /** What an object has that says nothing: the structs that Kubernetes' Go types always have, and what they are given. */
  readonly blank?: { [field: string]: unknown }
  /** Told in a Warning header with every answer. */
  readonly deprecation?: string
  /** Its definition is going: nothing new is accepted. */
  readonly isTerminating?: boolean
  /**
   * Of kinds with a type of Kubernetes' instead of checking `schema` and filling in its defaults: the object in the form its
   * Go type has, with all defaults. The argument is not changed.
   * @throws {StatusError} BadRequest for a field of the wrong type.
   */
  readonly complete?: (object: KubeObject) => KubeObject
  /** Fills in what this kind's server side decides, on a copy that may be changed. */
  readonly prepare?: (object: KubeObject, before: KubeObject | undefined) => void
  /** The same for a write through the status subresource. */
  readonly prepareStatus?: (object: KubeObject, before: KubeObject) => void
  /** Seconds of grace that deleting `object` gives it; `wanted` is what the client asked for. Default: none. */
  readonly graceSeconds?: (object: KubeObject, wanted: number | undefined) => number
  /** What the schema cannot say. */
  readonly check?: (object: KubeObject, before: KubeObject | undefined) => StatusCause[]
  /**
   * What the server adds to a new object after `prepare`, on a copy whose parts must not be changed: unlike the rest of the
   * object it belongs to nobody in `metadata.managedFields`.
   */
  readonly generate?: (object: KubeObject) => void
  /** What a write of the status subresource is checked for; `check` when absent. */
  readonly checkStatus?: Kind['check']
  /** What the writer is told in Warning headers. */
  readonly warnings?: (object: KubeObject, before: KubeObject | undefined) => string[]
  /** Whether a change raises `metadata.generation`, when it is not simply every change outside metadata and status. */
  readonly raisesGeneration?: (object: KubeObject, before: KubeObject) => boolean
  /** Dependents stay when a delete does not say what becomes of them; this is told in a Warning header. */
  readonly orphansByDefault?: string
  /** A delete is answered with the object that is gone instead of a Status. */
  readonly answersDeleted?: boolean
  /**
   * Has a last look at an object that is valid, with what else is stored in mind.
   * @throws {StatusError} Forbidden.
   */
  readonly admit?: (object: KubeObject, before: KubeObject | undefined) => void
  /** An update of an object that is not there makes it, for who may create it. */
  readonly createsOnUpdate?: boolean
  /** Why this object may not be deleted, if so. */
  readonly refuseDelete?: (object: KubeObject) => string | undefined
  /** Stored JSON, written at `revision`, to this version's; absent when what is stored is what is served. */
  readonly fromStorage?: (text: string, revision: number) => string
  /** An object of this version as it is stored; absent when the same. */
  readonly toStorage?: (object: KubeObject) => KubeObject
}

/** `pods` or `stacks.oarlock.dev`. */
export function storageNameOf(group: string, plural: string): string {
  return group ? `${plural}.${group}` : plural
}
