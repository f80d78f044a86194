import type { KubeObject, NameRule, StatusCause, StructuralSchema } from '../../../object/index.ts'
import type { Column, Kind, SelectableField, Verb } from '../kind.ts'
import type { ScaleFields } from '../scale.ts'
import type { Stored } from '../stored.ts'

/** One built-in kind as its file in this folder declares it. What a row does not say is the plain case. */
export type Row = {
  group?: string
  version?: string
  kind: string
  plural: string
  shortNames?: string[]
  categories?: string[]
  cluster?: boolean
  /** Kubernetes' name of its type, such as `io.k8s.api.core.v1.Pod`: fields, patch strategies and descriptions come from `schemas/`. */
  schema?: string
  /** Of kinds without `schema`. */
  description?: string
  /** Of kinds without `schema`: what there is beside apiVersion, kind and metadata. */
  fields?: Record<string, StructuralSchema>
  required?: string[]
  nameRule?: NameRule
  verbs?: readonly Verb[]
  hasStatus?: boolean
  scale?: ScaleFields
  hasGeneration?: boolean
  blank?: Record<string, unknown>
  columns?: readonly Column[]
  selectableFields?: readonly SelectableField[]
  storageName?: string
  isVirtual?: boolean
  createsOnUpdate?: boolean
  /** As in `Kind`, and may look at other objects. */
  prepare?: (object: KubeObject, before: KubeObject | undefined, stored: Stored) => void
  check?: (object: KubeObject, before: KubeObject | undefined, stored: Stored) => StatusCause[]
  generate?: (object: KubeObject, stored: Stored) => void
  admit?: (object: KubeObject, before: KubeObject | undefined, stored: Stored) => void
  deprecation?: string
  checkStatus?: Kind['checkStatus']
  warnings?: Kind['warnings']
  raisesGeneration?: Kind['raisesGeneration']
  orphansByDefault?: string
  answersDeleted?: boolean
  graceSeconds?: Kind['graceSeconds']
  refuseDelete?: Kind['refuseDelete']
  fromStorage?: Kind['fromStorage']
  toStorage?: Kind['toStorage']
}

export const text = (description: string): StructuralSchema => ({ type: 'string', description })
