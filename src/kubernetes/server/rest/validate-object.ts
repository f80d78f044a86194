import {
  annotationErrors,
  finalizerErrors,
  finalizerWarnings,
  invalid,
  invalidValue,
  type KubeObject,
  labelErrors,
  ownerReferenceErrors,
  type StatusCause,
  type StatusError,
} from '../../object/index.ts'
import { applyDefaults, validateRules, validateSchema } from '../../schema/index.ts'
import type { Kind } from '../registry/index.ts'
import { goTypeError } from './go-type-error.ts'
import type { WriteOptions } from './write-options.ts'

/** An object with the defaults of its kind. */
export function withDefaults(kind: Kind, object: KubeObject): KubeObject {
  return kind.strategy.default ? kind.strategy.default(object) : (applyDefaults(kind.schema, object) as KubeObject)
}

/** Every cause to reject an object: schema, metadata, the rules of its kind. */
export function validateObject(kind: Kind, object: KubeObject, oldObject: KubeObject | undefined, options: WriteOptions): StatusCause[] {
  const { metadata } = object
  const { labels, annotations, finalizers } = metadata
  // A patch shares what it does not change with the stored object, which is valid.
  const old = oldObject?.metadata
  const causes = schemaCauses(kind, object, oldObject)
  if (labels && labels !== old?.labels) causes.push(...labelErrors(labels, 'metadata.labels'))
  if (annotations && annotations !== old?.annotations) causes.push(...annotationErrors(annotations, 'metadata.annotations'))
  if (finalizers) causes.push(...finalizerErrors(finalizers, 'metadata.finalizers', { mayBeUnqualified: kind.isCustom }))
  if (metadata.ownerReferences) causes.push(...ownerReferenceErrors(metadata.ownerReferences, 'metadata.ownerReferences'))
  // The rules of a kind rely on fields that match the schema.
  if (kind.strategy.validate && (!causes.some(isOutsideMetadata) || causes.length === 0))
    causes.push(...kind.strategy.validate(object, oldObject))
  if (kind.hasValidationRules) addRuleCauses(kind, object, oldObject, options, causes)
  return causes
}

const blockingReasons = new Set([
  'FieldValueNotSupported',
  'FieldValueRequired',
  'FieldValueTooLong',
  'FieldValueTooMany',
  'FieldValueTypeInvalid',
])

/** Adds the causes of the CEL validation rules of a custom resource. They rely on values of the right types. */
export function addRuleCauses(
  kind: Kind,
  object: KubeObject,
  oldObject: KubeObject | undefined,
  options: WriteOptions,
  causes: StatusCause[],
): void {
  if (causes.some(({ reason }) => blockingReasons.has(reason))) {
    const why = 'some validation rules were not checked because the object was invalid; correct the existing errors to complete validation'
    causes.push(invalidValue('<nil>', null, why))
    return
  }
  const { causes: broken, warnings } = validateRules(kind.schema, object, oldObject)
  causes.push(...broken)
  options.warnings.push(...warnings)
}

export function addFinalizerWarnings(kind: Kind, object: KubeObject, oldObject: KubeObject | undefined, options: WriteOptions): void {
  const { finalizers } = object.metadata
  if (!kind.isCustom || !finalizers) return
  options.warnings.push(...finalizerWarnings(finalizers, oldObject?.metadata.finalizers ?? [], 'metadata.finalizers'))
}

// A kind with a default function has checked the types in it.
export function schemaCauses(kind: Kind, object: KubeObject, oldObject: KubeObject | undefined): StatusCause[] {
  return kind.strategy.default ? [] : validateSchema(kind.schema, object, '', { oldValue: oldObject })
}

export function validationError(kind: Kind, name: string, causes: StatusCause[]): StatusError {
  return (kind.isCustom ? undefined : goTypeError(kind, causes)) ?? invalid(kind, name, causes)
}

const isOutsideMetadata = ({ field }: StatusCause) => !field.startsWith('metadata.')
