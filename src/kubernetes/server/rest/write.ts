import { applyServerSide, conflictError } from '../../apply/index.ts'
import {
  alreadyExists,
  applyJsonPatch,
  applyMergePatch,
  badRequest,
  conflict,
  forbiddenField,
  invalid,
  invalidOptions,
  invalidValue,
  isJsonObject,
  type Json,
  type JsonObject,
  type KubeObject,
  notFound,
  requiredValue,
  StatusError,
} from '../../object/index.ts'
import { warnOnFailure } from '../wire/index.ts'
import { isJson, parseBody, parseBodyStrict, parseJson, parseYaml, unsupportedMediaType } from './body.ts'
import { admit, type Call, keyOf, methodNotAllowed, type Services, sendResult } from './call.ts'
import { checkSize } from './check-size.ts'
import { type Decoded, decode } from './decode.ts'
import { mutate, readEntry, storedForm, type WriteDecision } from './mutate.ts'
import {
  type FieldOwnership,
  isDeletionComplete,
  type NamespacedName,
  prepareCreate,
  prepareFinalize,
  prepareStatus,
  prepareUpdate,
} from './prepare.ts'
import { applyStrategicPatch } from './strategic-merge.ts'
import { readWriteOptions, type WriteOptions } from './write-options.ts'

const namespacesTable = 'namespaces'

export async function create(services: Services, call: Call): Promise<void> {
  const { store } = services
  const options = readWriteOptions('CreateOptions', call.input.query, call.input.userAgent, store.nowMs)
  warnOnFailure(call.output.response, options.warnings)
  const decoded = decodeBody(call, options)
  // Of the request alone: one that is sent for a kind without namespaces is left out, as in Kubernetes, and must not become part of the key.
  const place = { namespace: call.target.namespace, name: call.target.name }
  checkNamespace(services, call, place.namespace, decoded.sent.name ?? decoded.sent.generateName)
  const object = prepareCreate(call.target.kind, decoded, place, 'tracked', options)
  admit(call, object, undefined)
  const outcome = await mutate(store, call.target.table, keyOf({ namespace: place.namespace, name: object.metadata.name }), head => {
    const decision = decidePut(services, call, object, undefined, options)
    if (head) throw alreadyExistsError(call, head.deleting, object.metadata.name)
    return decision
  })
  sendResult(call, outcome, 201, options.warnings, store.nowMs)
}

export async function update(services: Services, call: Call): Promise<void> {
  const { store } = services
  const options = readWriteOptions('UpdateOptions', call.input.query, call.input.userAgent, store.nowMs)
  warnOnFailure(call.output.response, options.warnings)
  let isCreated = false
  const outcome = await mutate(store, call.target.table, keyOf(call.target), head => {
    options.warnings.length = 0
    isCreated = !head && call.caller.checkCreate !== undefined && call.target.subresource === ''
    if (!head && !isCreated) throw notFound(call.target.kind, call.target.name)
    const decoded = decodeBody(call, options)
    if (!decoded.sent.name) throw undeterminedName(call.target.name)
    if (!head) return createByUpdate(services, call, decoded, options)
    // Custom kinds allow no update that does not say what it was computed from.
    if (call.target.kind.isCustom && !decoded.sent.resourceVersion) {
      const { group, plural } = call.target.kind
      const cause = invalidValue('metadata.resourceVersion', 0, 'must be specified for an update')
      throw invalid({ group, plural, kind: plural }, call.target.name, [cause])
    }
    return decideUpdate(services, call, readEntry(call.target.kind, head), decoded, 'tracked', options)
  })
  sendResult(call, outcome, isCreated ? 201 : 200, options.warnings, store.nowMs)
}

function createByUpdate(services: Services, call: Call, decoded: Decoded, options: WriteOptions): WriteDecision {
  call.caller.checkCreate?.()
  const { uid, resourceVersion: _, ...sent } = decoded.sent
  if (uid) throw conflict(call.target.kind, call.target.name, `Precondition failed: UID in precondition: ${uid}, UID in object meta: `)
  checkNamespace(services, call, call.target.namespace)
  const place = { namespace: call.target.namespace, name: call.target.name }
  const object = prepareCreate(call.target.kind, { ...decoded, sent }, place, 'tracked', options)
  admit(call, object, undefined)
  return decidePut(services, call, object, undefined, options)
}

const patchTypes = [
  'application/json-patch+json',
  'application/merge-patch+json',
  'application/strategic-merge-patch+json',
  'application/apply-patch+yaml',
]

export async function patch(services: Services, call: Call): Promise<void> {
  const { store } = services
  const options = readWriteOptions('PatchOptions', call.input.query, call.input.userAgent, store.nowMs)
  warnOnFailure(call.output.response, options.warnings)
  if (call.input.contentType === 'application/apply-patch+yaml') {
    await applyPatch(services, call, options)
    return
  }
  if (call.input.query?.has('force'))
    throw invalidOptions('PatchOptions', [forbiddenField('force', 'may not be specified for non-apply patch')])
  const change = patchFunction(call)
  const outcome = await mutate(store, call.target.table, keyOf(call.target), head => {
    options.warnings.length = 0
    if (!head) throw notFound(call.target.kind, call.target.name)
    const live = readEntry(call.target.kind, head)
    const decoded = decode(call.target.kind, change(toJson(live)), options)
    return decideUpdate(services, call, live, { ...decoded, isPatched: true }, 'tracked', options)
  })
  sendResult(call, outcome, 200, options.warnings, store.nowMs)
}

function alreadyExistsError({ target: { kind } }: Call, isGoing: boolean, name: string): StatusError {
  const error = alreadyExists(kind, name)
  return isGoing ? new StatusError('AlreadyExists', `object is being deleted: ${error.message}`, { details: error.details }) : error
}

export function patchFunction(call: Call): (live: Json) => Json {
  switch (call.input.contentType) {
    case 'application/json-patch+json': {
      const operations = parseJson(call.input.body)
      return live => checkSize(applyJsonPatch(live, operations))
    }
    case 'application/merge-patch+json': {
      const merge = parsePatchObject(call)
      return live => checkSize(applyMergePatch(live, merge))
    }
    case 'application/strategic-merge-patch+json': {
      const { schema, isCustom } = call.target.kind
      // Nobody says how the lists of custom kinds merge.
      if (isCustom) throw unsupportedMediaType(patchTypes.filter(type => !type.includes('strategic')))
      const merge = parsePatchObject(call)
      return live => checkSize(applyStrategicPatch(live, merge, schema))
    }
    default:
      throw unsupportedMediaType(patchTypes)
  }
}

function parsePatchObject(call: Call): Json {
  const patch = parseJson(call.input.body)
  if (!isJsonObject(patch)) throw badRequest('the patch must be a JSON object')
  return patch as Json
}

/** Server-side apply: what `manager` wants, merged with what others own; creates the object when there is none. */
async function applyPatch(services: Services, call: Call, options: WriteOptions): Promise<void> {
  const { store } = services
  const { kind, subresource } = call.target
  if (!options.isManagerGiven) throw invalidOptions('PatchOptions', [requiredValue('fieldManager', 'is required for apply patch')])
  const body = parseYaml(call.input.body)
  if (!isJsonObject(body)) throw badRequest('the body of an apply patch must be one object')
  if (body.apiVersion === undefined || body.kind === undefined) throw badRequest('an apply patch must name its apiVersion and kind')
  if (body.apiVersion !== kind.apiVersion || body.kind !== kind.kind) {
    const { apiVersion, kind: name } = body
    throw badRequest(`invalid object type: ${String(apiVersion).includes('/') ? '' : '/'}${String(apiVersion)}, Kind=${String(name)}`)
  }
  const { object: applied, sent, unknown } = decode(kind, body, options)
  const what = `(${sent.namespace ?? ''}/${sent.name ?? ''}; ${kind.group ? kind.apiVersion : `/${kind.version}`}, Kind=${kind.kind})`
  // What is not in the schema can be owned by nobody, so it is refused here whatever fieldValidation says.
  if (unknown.length > 0) throw badRequest(`failed to create typed patch object ${what}: .${unknown[0]}: field not declared in schema`)
  if (!sent.name) throw undeterminedName(call.target.name)
  if (sent.managedFields?.length) throw badRequest('metadata.managedFields must be nil')
  const place: NamespacedName = { namespace: call.target.namespace, name: call.target.name }
  const { resourceVersion, uid } = sent
  // Read-only metadata belongs to nobody, and the status only to its subresource.
  const { labels, annotations, finalizers, ownerReferences } = sent
  applied.metadata = {
    name: call.target.name,
    ...(kind.namespaced && { namespace: call.target.namespace }),
    ...definedFields({ labels, annotations, finalizers, ownerReferences }),
    ...emptyFields(body.metadata),
  } as KubeObject['metadata']
  if (sent.name !== undefined && sent.name !== call.target.name) {
    throw badRequest(`the name of the object (${sent.name}) does not match the name on the URL (${call.target.name})`)
  }
  if (sent.namespace !== undefined && kind.namespaced && sent.namespace !== call.target.namespace) {
    throw badRequest('the namespace of the provided object does not match the namespace sent on the request')
  }
  const isOfStatus = subresource === 'status'
  // Fields that belong to the other endpoint are neither changed nor owned through this one.
  const resetFields = isOfStatus
    ? Object.keys(applied).filter(field => !typeFields.has(field) && field !== 'status')
    : kind.hasStatus
      ? ['status']
      : []

  let isCreated = false
  const outcome = await mutate(store, call.target.table, keyOf(call.target), head => {
    isCreated = head === undefined
    if (!head && subresource !== '') throw notFound(kind, call.target.name)
    if (!head && (resourceVersion || uid)) throw notFound(kind, call.target.name)
    if (!head) call.caller.checkCreate?.()
    if (!head) checkNamespace(services, call, call.target.namespace)
    const live = head && readEntry(kind, head)
    const { manager, force, nowMs } = options
    const { object: result, conflicts } = applyServerSide({
      live: live && toJson(live),
      applied: toJson(applied),
      sent: body as JsonObject,
      manager,
      force,
      schema: kind.schema,
      apiVersion: kind.apiVersion,
      subresource,
      resetFields,
      nowMs,
    })
    const object = result as unknown as KubeObject
    if (conflicts.length > 0) throw conflictError(conflicts)
    checkSize(result)
    const meta = { ...object.metadata }
    if (resourceVersion) meta.resourceVersion = resourceVersion
    else if (live) meta.resourceVersion = live.metadata.resourceVersion
    if (uid) meta.uid = uid
    const decoded: Decoded = { object, sent: meta, unknown: [] }
    if (live) return decideUpdate(services, call, live, decoded, 'applied', options)
    const { resourceVersion: _, uid: __, ...fresh } = meta
    const created = prepareCreate(kind, { object, sent: fresh, unknown: [] }, place, 'applied', options)
    admit(call, created, undefined)
    return decidePut(services, call, created, undefined, options)
  })
  sendResult(call, outcome, isCreated ? 201 : 200, options.warnings, store.nowMs)
}

/** The body as an object of the call's kind; keys that stand twice are told as `fieldValidation` asks. */
export function decodeBody({ target: { kind }, input: { body, contentType } }: Call, options: WriteOptions): Decoded {
  if (options.fieldValidation === 'Ignore' || !isJson(contentType)) return decode(kind, parseBody(body, contentType), options)
  const { value, duplicates } = parseBodyStrict(body)
  return decode(kind, value, options, duplicates)
}

export function undeterminedName(name: string): StatusError {
  return badRequest(`the name of the object (${name} based on URL) was undeterminable: name must be provided`)
}

const typeFields = new Set(['apiVersion', 'kind'])
const toJson = (object: KubeObject) => object as unknown as JsonObject

function decideUpdate(
  services: Services,
  call: Call,
  before: KubeObject,
  decoded: Decoded,
  ownership: FieldOwnership,
  options: WriteOptions,
): WriteDecision {
  const { kind, subresource } = call.target
  const place: NamespacedName = { namespace: call.target.namespace, name: call.target.name }
  let after: KubeObject
  switch (subresource) {
    case '':
      after = prepareUpdate(kind, before, decoded, place, ownership, options)
      break
    case 'status':
      after = prepareStatus(kind, before, decoded, place, ownership, options)
      break
    case 'scale':
      throw methodNotAllowed()
    case 'finalize':
      after = prepareFinalize(kind, before, decoded, place, options)
  }
  if (after === before) return { answer: undefined }
  admit(call, after, before)
  // As in Kubernetes: what ends an object is answered, but never stored, so nobody else gets to see it.
  if (isDeletionComplete(after) && !options.dryRun) return { remove: storedForm(kind, before), answer: after }
  return decidePut(services, call, after, before, options)
}

/** @throws {StatusError} Forbidden for what other objects, or a quota, leave no place for. */
function decidePut(
  { quotas }: Services,
  { target: { kind, subresource } }: Call,
  object: KubeObject,
  before: KubeObject | undefined,
  options: WriteOptions,
): WriteDecision {
  if (subresource === '') {
    kind.strategy.validateAdmission?.(object, before)
    if (kind.namespaced) quotas.admit(kind, object, before)
  }
  if (!options.dryRun) return { put: storedForm(kind, object) }
  if (!object.metadata.resourceVersion) object.metadata = omitVersion(object.metadata)
  return { answer: object }
}

function omitVersion({ resourceVersion: _, ...metadata }: KubeObject['metadata']): KubeObject['metadata'] {
  return metadata as KubeObject['metadata']
}

/** Fields of metadata that an apply sets to null or to nothing: owned, though there is nothing to see of them. */
function emptyFields(metadata: unknown): Record<string, unknown> {
  if (!isJsonObject(metadata)) return {}
  const isEmpty = (value: unknown) => value === null || (isJsonObject(value) && Object.keys(value).length === 0)
  return Object.fromEntries(Object.entries(metadata).filter(([name, value]) => userMetadataFields.has(name) && isEmpty(value)))
}

const userMetadataFields = new Set(['labels', 'annotations', 'finalizers', 'ownerReferences'])

function definedFields<T extends object>(fields: T): Partial<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Partial<T>
}

/** @throws {StatusError} NotFound for a namespace that does not exist, Forbidden for one that is going away. */
function checkNamespace({ store }: Services, call: Call, namespace: string, name = call.target.name): void {
  if (call.target.kind.isTerminating) {
    throw new StatusError('MethodNotAllowed', 'create not allowed while custom resource definition is terminating')
  }
  if (!call.target.kind.namespaced) return
  if (!namespace) throw badRequest(`an empty namespace may not be set during creation`)
  const head = store.head(store.table(namespacesTable), namespace)
  if (!head) throw notFound({ group: '', plural: namespacesTable }, namespace)
  if (!head.deleting) return
  const because = 'because it is being terminated'
  const what = call.target.kind.group ? `${call.target.kind.plural}.${call.target.kind.group}` : call.target.kind.plural
  throw new StatusError('Forbidden', `${what} "${name}" is forbidden: unable to create new content in namespace ${namespace} ${because}`, {
    details: {
      name: name || undefined,
      group: call.target.kind.group || undefined,
      kind: call.target.kind.plural,
      causes: [
        {
          reason: 'NamespaceTerminating' as 'FieldValueForbidden',
          message: `namespace ${namespace} is being terminated`,
          field: 'metadata.namespace',
        },
      ],
    },
  })
}
