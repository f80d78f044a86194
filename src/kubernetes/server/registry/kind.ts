import type { KubeObject, NameRule, StructuralSchema } from '../../object/index.ts'
import type { PrinterColumn, SelectableField } from './printer-columns.ts'
import type { ScaleFields } from './scale.ts'
import type { Strategy } from './strategy.ts'

export type Verb = 'create' | 'delete' | 'deletecollection' | 'get' | 'list' | 'patch' | 'update' | 'watch'

export const allVerbs: readonly Verb[] = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch']

/** The names of a kind and its resource, as discovery publishes them. */
export type KindNames = {
  readonly group: string
  readonly version: string
  /** `group/version`, or only the version in the core group. */
  readonly apiVersion: string
  readonly kind: string
  readonly listKind: string
  readonly plural: string
  readonly singular: string
  readonly shortNames: readonly string[]
  readonly categories: readonly string[]
}

/** Which requests for the kind are served. */
export type KindScope = {
  readonly namespaced: boolean
  readonly verbs: readonly Verb[]
  readonly isCustom: boolean
  /** Objects are evaluated when they are created and never stored, as those of SubjectAccessReview. */
  readonly isVirtual?: boolean
  /** Sent in a Warning header with every response. */
  readonly deprecationWarning?: string
  /** The CustomResourceDefinition is being deleted: creates are rejected. */
  readonly isTerminating?: boolean
}

/** What an object of the kind looks like. */
export type KindSchema = {
  readonly schema: StructuralSchema
  /** The Kubernetes type that `schema` describes, if any. `schemas/` has it with descriptions and references. */
  readonly typeName?: string
  readonly description: string
  readonly nameRule: NameRule
  /** `schema` contains `x-kubernetes-validations`. */
  readonly hasValidationRules?: boolean
  /** `metadata.generation` counts changes outside metadata and status. */
  readonly hasGeneration: boolean
}

export type KindSubresources = {
  /** `status` is written only through its own subresource. */
  readonly hasStatus: boolean
  /** The fields that the scale subresource reads and writes; absent if the kind has none. */
  readonly scale?: ScaleFields
}

/** How objects of the kind are stored. */
export type KindStorage = {
  /** Table of the store: `plural.group`, the same for all versions of a resource. */
  readonly storageName: string
  /** Converts stored JSON, written at `revision`, to this version; absent if both are the same. */
  readonly fromStorage?: (text: string, revision: number) => string
  /** Converts an object of this version to the stored version; absent if both are the same. */
  readonly toStorage?: (object: KubeObject) => KubeObject
}

/** How objects of the kind are printed and selected. */
export type KindPrinting = {
  readonly columns: readonly PrinterColumn[]
  readonly selectableFields: readonly SelectableField[]
}

/**
 * One version of a kind, as served. Built-in kinds are declared in `kinds/`; custom kinds are compiled from their
 * CustomResourceDefinition. Modules above the registry distinguish the two only by the fields of this type.
 */
export type Kind = KindNames &
  KindScope &
  KindSchema &
  KindSubresources &
  KindStorage &
  KindPrinting & {
    readonly strategy: Strategy
  }

/** `pods` or `stacks.oarlock.dev`. */
export function storageNameOf(group: string, plural: string): string {
  return group ? `${plural}.${group}` : plural
}
