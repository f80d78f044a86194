import type { KubeObject, NameRule, StatusCause, StructuralSchema } from '../../../object/index.ts'
import type { Kind, Verb } from '../kind.ts'
import type { ObjectReader } from '../object-reader.ts'
import type { PrinterColumn, SelectableField } from '../printer-columns.ts'
import type { ScaleFields } from '../scale.ts'
import type { Strategy } from '../strategy.ts'

/** The parts of a {@link Strategy} that a declaration may set. Some of its functions may read other objects. */
type DeclaredStrategy = Omit<Strategy, 'default' | 'prepareForWrite' | 'prepareForCreate' | 'validate' | 'validateAdmission'> & {
  prepareForWrite?: (object: KubeObject, oldObject: KubeObject | undefined, reader: ObjectReader) => void
  prepareForCreate?: (object: KubeObject, reader: ObjectReader) => void
  validate?: (object: KubeObject, oldObject: KubeObject | undefined, reader: ObjectReader) => StatusCause[]
  validateAdmission?: (object: KubeObject, oldObject: KubeObject | undefined, reader: ObjectReader) => void
}

/** One built-in kind, as its file in this folder declares it. `built-in-kinds.ts` sets the defaults of what is omitted. */
export type KindDeclaration = DeclaredStrategy & {
  group?: string
  version?: string
  kind: string
  plural: string
  shortNames?: string[]
  categories?: string[]
  cluster?: boolean
  /** The Kubernetes type, such as `io.k8s.api.core.v1.Pod`: `schemas/` has its fields, patch strategies and descriptions. */
  typeName?: string
  /** Only without `typeName`. */
  description?: string
  /** Only without `typeName`: all fields except apiVersion, kind and metadata. */
  fields?: Record<string, StructuralSchema>
  required?: string[]
  nameRule?: NameRule
  verbs?: readonly Verb[]
  hasStatus?: boolean
  scale?: ScaleFields
  hasGeneration?: boolean
  columns?: readonly PrinterColumn[]
  selectableFields?: readonly SelectableField[]
  storageName?: string
  isVirtual?: boolean
  deprecationWarning?: string
  fromStorage?: Kind['fromStorage']
  toStorage?: Kind['toStorage']
}

export const stringField = (description: string): StructuralSchema => ({ type: 'string', description })
