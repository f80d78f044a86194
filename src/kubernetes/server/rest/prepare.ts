import { randomInt, randomUUID } from 'node:crypto'
import { isManagedFields, trackUpdate } from '../../apply/index.ts'
import {
  annotationErrors,
  badRequest,
  conflict,
  equalJson,
  finalizerErrors,
  finalizerWarnings,
  forbiddenField,
  invalid,
  invalidValue,
  type KubeObject,
  labelErrors,
  nameErrors,
  type ObjectMeta,
  ownerReferenceErrors,
  requiredValue,
  rfc3339,
  type StatusCause,
  type StatusError,
} from '../../object/index.ts'
import { applyDefaults, checkRules, validateSchema } from '../../schema/index.ts'
import type { Kind, Strategy } from '../registry/index.ts'
import type { Decoded } from './decode.ts'
import { goTypeError } from './go-type-error.ts'
import type { WriteOptions } from './write-options.ts'

export type NamespacedName = { namespace: string; name: string }

/** Who decides `metadata.managedFields`: us by comparing, or server-side apply, which already did. */
export type FieldOwnership = 'tracked' | 'applied'

/**
 * What a create stores: the sent object with the server's metadata, defaults, and a clean status.
 * @param place `name` is empty when the name comes from the body.
 * @throws {StatusError} BadRequest or Invalid.
 */
export function prepareCreate(
  kind: Kind,
  { object: decoded, sent }: Decoded,
  place: NamespacedName,
  ownership: FieldOwnership,
  options: WriteOptions,
): KubeObject {
  if (sent.resourceVersion) throw badRequest('resourceVersion should not be set on objects to be created')
  checkNamespacedName(kind, sent, place)
  const { generateName } = sent
  const name = sent.name ?? (place.name || (generateName ? randomName(generateName) : ''))
  const metadata: ObjectMeta = {
    name,
    ...(generateName && { generateName }),
    ...(kind.namespaced && { namespace: place.namespace }),
    uid: randomUUID(),
    resourceVersion: '',
    ...(kind.hasGeneration ? { generation: 1 } : sent.generation && { generation: sent.generation }),
    creationTimestamp: rfc3339(options.nowMs),
    ...userMetadata(sent),
  }
  if (ownership === 'applied' && sent.managedFields) metadata.managedFields = sent.managedFields
  let object: KubeObject = { ...decoded, metadata }
  if (kind.hasStatus) delete object.status
  object = withDefaults(kind, object)
  object.metadata = metadata
  kind.strategy.prepareForWrite?.(object, undefined)
  // Nobody owns what is generated.
  const owned = kind.strategy.prepareForCreate ? { ...object, metadata: { ...object.metadata } } : object
  kind.strategy.prepareForCreate?.(object)
  const causes = generateName ? prefixCauses(kind, generateName) : []
  causes.push(...nameCauses(kind, metadata))
  causes.push(...causesOf(kind, object, undefined, options))
  if (causes.length > 0) throw validationError(kind, name || generateName || '', causes)
  addFinalizerWarnings(kind, object, undefined, options)
  if (ownership === 'tracked') {
    trackManagedFields(kind, undefined, owned, '', options)
    if (owned !== object) object.metadata.managedFields = owned.metadata.managedFields
  }
  if (kind.strategy.warnings) options.warnings.push(...kind.strategy.warnings(object, undefined))
  return object
}

/**
 * What an update stores over `before`: the sent object, with identity and status of the old one.
 * Returns `before` itself when nothing would change, so that it gets no new resource version.
 * @throws {StatusError} BadRequest, Conflict or Invalid.
 */
export function prepareUpdate(
  kind: Kind,
  before: KubeObject,
  { object: decoded, sent, isPatched }: Decoded,
  place: NamespacedName,
  ownership: FieldOwnership,
  options: WriteOptions,
  subresource = '',
): KubeObject {
  checkNamespacedName(kind, sent, place)
  checkPreconditions(kind, before, sent, isPatched)
  const metadata: ObjectMeta = { ...serverMetadata(before.metadata), ...userMetadata(sent) }
  // Clients echo what they read; kept as the very same list, it need not be read again.
  const stored = before.metadata.managedFields
  // What makes no sense is as if it had not been sent.
  const isNews = sent.managedFields && !equalJson(sent.managedFields, stored) && isManagedFields(sent.managedFields)
  const managed = isNews ? sent.managedFields : stored
  if (managed) metadata.managedFields = managed
  let object: KubeObject = { ...decoded, metadata }
  if (kind.hasStatus) {
    if (before.status === undefined) delete object.status
    else object.status = before.status
  }
  object = withDefaults(kind, object)
  object.metadata = metadata
  kind.strategy.prepareForWrite?.(object, before)
  const causes = causesOf(kind, object, before, options)
  causes.push(...newFinalizerCauses(before, object))
  if (isPatched) causes.push(...uidCauses(before, sent))
  if (causes.length > 0) throw validationError(kind, metadata.name, causes)
  addFinalizerWarnings(kind, object, before, options)
  if (kind.strategy.warnings) options.warnings.push(...kind.strategy.warnings(object, before))
  return finishUpdate(kind, before, object, subresource, ownership, options)
}

/** What a write through the finalize subresource of a namespace stores: an update that also takes the finalizers of the spec. */
export function prepareFinalize(
  kind: Kind,
  before: KubeObject,
  decoded: Decoded,
  place: NamespacedName,
  options: WriteOptions,
): KubeObject {
  const strategy: Strategy = {
    ...kind.strategy,
    prepareForWrite: (object, live) => {
      const { spec } = object
      kind.strategy.prepareForWrite?.(object, live)
      object.spec = spec
    },
    validate: ({ spec }) => {
      const { finalizers = [] } = (spec ?? {}) as { finalizers?: string[] }
      return finalizers.flatMap((finalizer, index) => finalizerErrors([finalizer], `spec.finalizers[${index}]`).map(atItem))
    },
  }
  const finalizing: Kind = { ...kind, strategy }
  return prepareUpdate(finalizing, before, decoded, place, 'tracked', options, 'finalize')
}

const atItem = (cause: StatusCause): StatusCause => ({ ...cause, field: cause.field.replace(/\[0\]$/, '') })

/** What a write through the status subresource stores: the old object with the sent status. */
export function prepareStatus(
  kind: Kind,
  before: KubeObject,
  { object: decoded, sent, isPatched }: Decoded,
  place: NamespacedName,
  ownership: FieldOwnership,
  options: WriteOptions,
): KubeObject {
  checkNamespacedName(kind, sent, place)
  checkPreconditions(kind, before, sent, isPatched)
  const metadata: ObjectMeta = { ...before.metadata }
  if (ownership === 'applied' && sent.managedFields) metadata.managedFields = sent.managedFields
  const object: KubeObject = { ...before, metadata }
  if (decoded.status === undefined) delete object.status
  else {
    // The rest is stored as it is already, and need not be walked for every status.
    const { apiVersion, kind: name } = before
    object.status = withDefaults(kind, { apiVersion, kind: name, metadata, status: decoded.status }).status
  }
  kind.strategy.prepareForStatusUpdate?.(object, before)
  const causes = schemaCauses(kind, object, before)
  const check = kind.strategy.validateStatusUpdate ?? kind.strategy.validate
  if (causes.length === 0 && check) causes.push(...check(object, before))
  if (kind.hasValidationRules) addRuleCauses(kind, object, before, options, causes)
  if (causes.length > 0) throw invalid(kind, metadata.name, causes)
  return finishUpdate(kind, before, object, 'status', ownership, options)
}

/** True when an object that is being deleted has nothing left to wait for. */
export function isDeletionComplete(object: KubeObject): boolean {
  const { deletionTimestamp, finalizers, deletionGracePeriodSeconds } = object.metadata
  if (!deletionTimestamp || finalizers?.length || (deletionGracePeriodSeconds ?? 0) > 0) return false
  const spec = object.spec as { finalizers?: string[] } | undefined
  return !(object.kind === 'Namespace' && object.apiVersion === 'v1' && spec?.finalizers?.length)
}

function finishUpdate(
  kind: Kind,
  before: KubeObject,
  object: KubeObject,
  subresource: string,
  ownership: FieldOwnership,
  options: WriteOptions,
): KubeObject {
  if (isUnchanged(before, object)) return before
  if (kind.hasGeneration && subresource !== 'status' && isSpecChanged(kind, before, object)) {
    object.metadata.generation = (before.metadata.generation ?? 0) + 1
  }
  if (ownership === 'tracked') trackManagedFields(kind, before, object, subresource, options)
  return object
}

function trackManagedFields(
  kind: Kind,
  before: KubeObject | undefined,
  after: KubeObject,
  subresource: string,
  options: WriteOptions,
): void {
  const { manager, nowMs } = options
  const entries = trackUpdate({
    before,
    // What a new object's status begins with is nobody's.
    after: before === undefined && kind.hasStatus ? { ...after, status: kind.strategy.zeroValue?.status } : after,
    zeroValue: kind.strategy.zeroValue,
    manager,
    schema: kind.schema,
    apiVersion: kind.apiVersion,
    subresource,
    nowMs,
  })
  if (entries?.length) after.metadata.managedFields = entries
  else delete after.metadata.managedFields
}

/** What a client may write freely. */
function userMetadata({ labels, annotations, ownerReferences, finalizers }: Partial<ObjectMeta>): Partial<ObjectMeta> {
  const meta: Partial<ObjectMeta> = {}
  if (labels) meta.labels = labels
  if (annotations) meta.annotations = annotations
  if (ownerReferences) meta.ownerReferences = ownerReferences
  if (finalizers) meta.finalizers = finalizers
  return meta
}

/** What stays for the life of the object, whatever is sent. */
function serverMetadata(before: ObjectMeta): ObjectMeta {
  const { labels: _, annotations: __, ownerReferences: ___, finalizers: ____, managedFields: _____, ...identity } = before
  return identity
}

function checkNamespacedName(kind: Kind, sent: Partial<ObjectMeta>, place: NamespacedName): void {
  if (place.name && sent.name !== undefined && sent.name !== place.name) {
    throw badRequest(`the name of the object (${sent.name}) does not match the name on the URL (${place.name})`)
  }
  if (kind.namespaced && sent.namespace !== undefined && sent.namespace !== place.namespace) {
    throw badRequest(`the namespace of the provided object does not match the namespace sent on the request`)
  }
}

function checkPreconditions(kind: Kind, { metadata: is }: KubeObject, sent: Partial<ObjectMeta>, isPatched?: boolean): void {
  if (sent.uid && sent.uid !== is.uid && !isPatched) {
    throw conflict(kind, is.name, `Precondition failed: UID in precondition: ${sent.uid}, UID in object meta: ${is.uid}`)
  }
  if (sent.resourceVersion && sent.resourceVersion !== '0' && sent.resourceVersion !== is.resourceVersion) {
    throw conflict(kind, is.name, 'the object has been modified; please apply your changes to the latest version and try again')
  }
}

function causesOf(kind: Kind, object: KubeObject, before: KubeObject | undefined, options: WriteOptions): StatusCause[] {
  const { metadata } = object
  const causes = schemaCauses(kind, object, before)
  if (metadata.labels) causes.push(...labelErrors(metadata.labels, 'metadata.labels'))
  if (metadata.annotations) causes.push(...annotationErrors(metadata.annotations, 'metadata.annotations'))
  const { finalizers } = metadata
  if (finalizers) causes.push(...finalizerErrors(finalizers, 'metadata.finalizers', { mayBeUnqualified: kind.isCustom }))
  if (metadata.ownerReferences) causes.push(...ownerReferenceErrors(metadata.ownerReferences, 'metadata.ownerReferences'))
  // A check reads fields as the schema promises them.
  if (kind.strategy.validate && (!causes.some(isOutsideMetadata) || causes.length === 0))
    causes.push(...kind.strategy.validate(object, before))
  if (kind.hasValidationRules) addRuleCauses(kind, object, before, options, causes)
  return causes
}

const blockingReasons = new Set([
  'FieldValueNotSupported',
  'FieldValueRequired',
  'FieldValueTooLong',
  'FieldValueTooMany',
  'FieldValueTypeInvalid',
])

/** Adds what the validation rules of a custom kind say; they expect values of the right types. */
function addRuleCauses(kind: Kind, object: KubeObject, before: KubeObject | undefined, options: WriteOptions, causes: StatusCause[]): void {
  if (causes.some(({ reason }) => blockingReasons.has(reason))) {
    const why = 'some validation rules were not checked because the object was invalid; correct the existing errors to complete validation'
    causes.push(invalidValue('<nil>', null, why))
    return
  }
  const { causes: broken, warnings } = checkRules(kind.schema, object, before)
  causes.push(...broken)
  options.warnings.push(...warnings)
}

function addFinalizerWarnings(kind: Kind, object: KubeObject, before: KubeObject | undefined, options: WriteOptions): void {
  const { finalizers } = object.metadata
  if (!kind.isCustom || !finalizers) return
  options.warnings.push(...finalizerWarnings(finalizers, before?.metadata.finalizers ?? [], 'metadata.finalizers'))
}

function withDefaults(kind: Kind, object: KubeObject): KubeObject {
  return kind.strategy.default ? kind.strategy.default(object) : (applyDefaults(kind.schema, object) as KubeObject)
}

// What was completed has the right types already.
function schemaCauses(kind: Kind, object: KubeObject, before: KubeObject | undefined): StatusCause[] {
  return kind.strategy.default ? [] : validateSchema(kind.schema, object, '', { oldValue: before })
}

function validationError(kind: Kind, name: string, causes: StatusCause[]): StatusError {
  return (kind.isCustom ? undefined : goTypeError(kind, causes)) ?? invalid(kind, name, causes)
}

const isOutsideMetadata = ({ field }: StatusCause) => !field.startsWith('metadata.')

function nameCauses(kind: Kind, metadata: ObjectMeta): StatusCause[] {
  if (!metadata.name) return [requiredValue('metadata.name', 'name or generateName is required')]
  return nameErrors(metadata.name, kind.nameRule).map(why => invalidValue('metadata.name', metadata.name, why))
}

// What is generated goes on behind it, so it may end in what a name may not end in.
function prefixCauses(kind: Kind, generateName: string): StatusCause[] {
  const prefix = generateName.endsWith('-') ? `${generateName.slice(0, -1)}a` : generateName
  return nameErrors(prefix, kind.nameRule).map(why => invalidValue('metadata.generateName', generateName, why))
}

// Twice, as Kubernetes has it.
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

// resourceVersion and the times in managedFields are ours; everything else counts.
function isUnchanged(before: KubeObject, after: KubeObject): boolean {
  const { metadata: beforeMeta, ...beforeRest } = before
  const { metadata: afterMeta, ...afterRest } = after
  if (!equalJson(beforeRest, afterRest)) return false
  const { managedFields: beforeManaged, resourceVersion: _, ...beforeFree } = beforeMeta
  const { managedFields: afterManaged, resourceVersion: __, ...afterFree } = afterMeta
  if (!equalJson(beforeFree, afterFree)) return false
  const timeless = (entries: ObjectMeta['managedFields']) => entries?.map(({ time: ___, ...entry }) => entry)
  return equalJson(timeless(beforeManaged) ?? [], timeless(afterManaged) ?? [])
}

function isSpecChanged(kind: Kind, before: KubeObject, after: KubeObject): boolean {
  if (kind.strategy.incrementsGeneration) return kind.strategy.incrementsGeneration(after, before)
  const { metadata: _, status: beforeStatus, ...beforeRest } = before
  const { metadata: __, status: afterStatus, ...afterRest } = after
  return !equalJson(beforeRest, afterRest) || (!kind.hasStatus && !equalJson(beforeStatus, afterStatus))
}

const nameAlphabet = 'bcdfghjklmnpqrstvwxz2456789'

function randomName(prefix: string): string {
  let suffix = ''
  for (let i = 0; i < 5; i++) suffix += nameAlphabet[randomInt(nameAlphabet.length)]
  return prefix.slice(0, 58) + suffix
}
