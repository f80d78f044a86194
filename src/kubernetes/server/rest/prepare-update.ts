import { isManagedFields } from '../../apply/index.ts'
import {
  equalJson,
  finalizerErrors,
  forbiddenField,
  invalid,
  invalidValue,
  type KubeObject,
  type ObjectMeta,
  type StatusCause,
} from '../../object/index.ts'
import type { Kind, Strategy } from '../registry/index.ts'
import type { Decoded } from './decode.ts'
import { checkNamespacedName, checkPreconditions, type NamespacedName, serverMetadata, userMetadata } from './metadata.ts'
import { type FieldOwnership, trackManagedFields } from './track-managed-fields.ts'
import { addFinalizerWarnings, addRuleCauses, schemaCauses, validateObject, validationError, withDefaults } from './validate-object.ts'
import type { WriteOptions } from './write-options.ts'

/** A write over an existing object. */
export type Update = {
  readonly kind: Kind
  readonly before: KubeObject
  readonly decoded: Decoded
  /** Namespace and name on the URL. */
  readonly url: NamespacedName
  readonly ownership: FieldOwnership
  readonly options: WriteOptions
}

/**
 * The object that an update stores: the sent object, with the identity and the status of the old one.
 * Returns `before` itself when nothing would change, so that it gets no new resource version.
 * @throws {StatusError} BadRequest, Conflict or Invalid.
 */
export function prepareUpdate(update: Update, subresource = ''): KubeObject {
  checkUpdate(update)
  const {
    kind,
    before,
    decoded: { object: decoded, sent, isPatched },
    options,
  } = update
  const metadata: ObjectMeta = { ...serverMetadata(before.metadata), ...userMetadata(sent) }
  // Clients send back what they read. The stored list is reused then, so that it need not be parsed again.
  const stored = before.metadata.managedFields
  // An invalid list is ignored.
  const isChanged = sent.managedFields && !equalJson(sent.managedFields, stored) && isManagedFields(sent.managedFields)
  const managedFields = isChanged ? sent.managedFields : stored
  if (managedFields) metadata.managedFields = managedFields
  let object: KubeObject = { ...decoded, metadata }
  if (kind.hasStatus) {
    if (before.status === undefined) delete object.status
    else object.status = before.status
  }
  object = withDefaults(kind, object)
  object.metadata = metadata
  kind.strategy.prepareForWrite?.(object, before)
  const causes = validateObject(kind, object, before, options)
  causes.push(...newFinalizerCauses(before, object))
  if (isPatched) causes.push(...uidCauses(before, sent))
  if (causes.length > 0) throw validationError(kind, metadata.name, causes)
  addFinalizerWarnings(kind, object, before, options)
  if (kind.strategy.warnings) options.warnings.push(...kind.strategy.warnings(object, before))
  return finishUpdate(update, object, subresource)
}

/** The object that a write through the `finalize` subresource of a Namespace stores: an update that may change `spec.finalizers` too. */
export function prepareFinalize(update: Update): KubeObject {
  const { kind } = update
  const strategy: Strategy = {
    ...kind.strategy,
    prepareForWrite: (object, live) => {
      const { spec } = object
      kind.strategy.prepareForWrite?.(object, live)
      object.spec = spec
    },
    validate: ({ spec }) => {
      const { finalizers = [] } = (spec ?? {}) as { finalizers?: string[] }
      return finalizers.flatMap((finalizer, index) => finalizerErrors([finalizer], `spec.finalizers[${index}]`).map(withoutItemIndex))
    },
  }
  return prepareUpdate({ ...update, kind: { ...kind, strategy }, ownership: 'tracked' }, 'finalize')
}

const withoutItemIndex = (cause: StatusCause): StatusCause => ({ ...cause, field: cause.field.replace(/\[0\]$/, '') })

/** The object that a write through the `status` subresource stores: the old object with the sent status. */
export function prepareStatus(update: Update): KubeObject {
  checkUpdate(update)
  const {
    kind,
    before,
    decoded: { object: decoded, sent },
    ownership,
    options,
  } = update
  const metadata: ObjectMeta = { ...before.metadata }
  if (ownership === 'applied' && sent.managedFields) metadata.managedFields = sent.managedFields
  const object: KubeObject = { ...before, metadata }
  // The rest is stored already and has its defaults. A status that was removed may have one, too.
  const { apiVersion, kind: name } = before
  const { status } = withDefaults(kind, { apiVersion, kind: name, metadata, status: decoded.status })
  if (status === undefined) delete object.status
  else object.status = status
  kind.strategy.prepareForStatusUpdate?.(object, before)
  const causes = schemaCauses(kind, object, before)
  const validate = kind.strategy.validateStatusUpdate ?? kind.strategy.validate
  if (causes.length === 0 && validate) causes.push(...validate(object, before))
  if (kind.hasValidationRules) addRuleCauses(kind, object, before, options, causes)
  if (causes.length > 0) throw invalid(kind, metadata.name, causes)
  return finishUpdate(update, object, 'status')
}

/** What every update starts with. */
function checkUpdate({ kind, before, decoded: { sent, isPatched }, url }: Update): void {
  checkNamespacedName(kind, sent, url)
  checkPreconditions(kind, before, sent, isPatched)
}

/** What every update ends with: detection of no-ops, generation, managedFields. */
function finishUpdate({ kind, before, ownership, options }: Update, object: KubeObject, subresource: string): KubeObject {
  if (isUnchanged(before, object)) return before
  if (kind.hasGeneration && subresource !== 'status' && isSpecChanged(kind, before, object)) {
    object.metadata.generation = (before.metadata.generation ?? 0) + 1
  }
  if (ownership === 'tracked') trackManagedFields(kind, before, object, subresource, options)
  return object
}

// kube-apiserver reports this cause twice.
function uidCauses({ metadata: is }: KubeObject, { uid }: Partial<ObjectMeta>): StatusCause[] {
  if (!uid || uid === is.uid) return []
  const cause = invalidValue('metadata.uid', uid, 'field is immutable')
  return [cause, cause]
}

function newFinalizerCauses(before: KubeObject, after: KubeObject): StatusCause[] {
  if (!before.metadata.deletionTimestamp) return []
  const old = new Set(before.metadata.finalizers)
  const added = (after.metadata.finalizers ?? []).filter(finalizer => !old.has(finalizer))
  if (added.length === 0) return []
  const list = added.map(finalizer => JSON.stringify(finalizer)).join(', ')
  const why = `no new finalizers can be added if the object is being deleted, found new finalizers []string{${list}}`
  return [forbiddenField('metadata.finalizers', why)]
}

// Ignores resourceVersion and the times in managedFields, which the server sets.
function isUnchanged(before: KubeObject, after: KubeObject): boolean {
  const { metadata: beforeMeta, ...beforeRest } = before
  const { metadata: afterMeta, ...afterRest } = after
  if (!equalJson(beforeRest, afterRest)) return false
  const { managedFields: beforeManaged, resourceVersion: _, ...beforeFree } = beforeMeta
  const { managedFields: afterManaged, resourceVersion: __, ...afterFree } = afterMeta
  if (!equalJson(beforeFree, afterFree)) return false
  if (beforeManaged === afterManaged) return true
  const timeless = (entries: ObjectMeta['managedFields']) => entries?.map(({ time: ___, ...entry }) => entry)
  return equalJson(timeless(beforeManaged) ?? [], timeless(afterManaged) ?? [])
}

function isSpecChanged(kind: Kind, before: KubeObject, after: KubeObject): boolean {
  if (kind.strategy.incrementsGeneration) return kind.strategy.incrementsGeneration(after, before)
  const { metadata: _, status: beforeStatus, ...beforeRest } = before
  const { metadata: __, status: afterStatus, ...afterRest } = after
  return !equalJson(beforeRest, afterRest) || (!kind.hasStatus && !equalJson(beforeStatus, afterStatus))
}
