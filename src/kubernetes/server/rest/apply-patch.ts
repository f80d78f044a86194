import { applyServerSide, conflictError } from '../../apply/index.ts'
import { badRequest, invalidOptions, isJsonObject, type JsonObject, type KubeObject, notFound, requiredValue } from '../../object/index.ts'
import type { Kind } from '../registry/index.ts'
import { parseYaml } from './body.ts'
import { admit, type Call, keyOf, type Services, sendResult, type Target } from './call.ts'
import { checkOwned, checkSize } from './check-size.ts'
import { checkNamespace, decidePut, decideUpdate } from './decide-update.ts'
import { type Decoded, decode, undeterminedName } from './decode.ts'
import { checkNamespacedName } from './metadata.ts'
import { mutate, readEntry, type WriteDecision } from './mutate.ts'
import { prepareCreate } from './prepare-create.ts'
import type { WriteOptions } from './write-options.ts'

/** What an apply patch asks for, checked as far as the live object does not matter. */
type Applied = {
  /** The body as it came: fields set to null are visible here only. */
  readonly body: JsonObject
  /** The part of the object that the manager may own. */
  readonly object: JsonObject
  readonly uid: string | undefined
  readonly resourceVersion: string | undefined
}

/** Server-side apply: merges the fields of `manager` with those of other managers. Creates the object when it does not exist. */
export async function applyPatch(services: Services, call: Call, options: WriteOptions): Promise<void> {
  const { store } = services
  const { target } = call
  const applied = readApplied(call, options)
  let isCreated = false
  const result = await mutate(
    store,
    target.table,
    keyOf(target),
    head => {
      isCreated = head === undefined
      if (!head) checkMayCreate(services, call, applied)
      const live = head && readEntry(target.kind, head)
      return decideApply(services, call, live, applied, options)
    },
    call.input.createBefore,
  )
  sendResult(call, result, isCreated ? 201 : 200, options.warnings, store.nowMs)
}

/** @throws {StatusError} BadRequest or Invalid. */
function readApplied({ target, input }: Call, options: WriteOptions): Applied {
  const { kind } = target
  if (!options.isManagerGiven) throw invalidOptions('PatchOptions', [requiredValue('fieldManager', 'is required for apply patch')])
  const body = parseYaml(input.body, input.json)
  if (!isJsonObject(body)) throw badRequest('the body of an apply patch must be one object')
  checkType(kind, body)
  const { object, sent, unknown } = decode(kind, body, options)
  checkOwned(kind, object, input.body.length)
  const what = `(${sent.namespace ?? ''}/${sent.name ?? ''}; ${kind.group ? kind.apiVersion : `/${kind.version}`}, Kind=${kind.kind})`
  // A field that is not in the schema cannot be owned, so it is rejected for every value of fieldValidation.
  if (unknown.length > 0) throw badRequest(`failed to create typed patch object ${what}: .${unknown[0]}: field not declared in schema`)
  if (!sent.name) throw undeterminedName(target.name)
  if (sent.managedFields?.length) throw badRequest('metadata.managedFields must be nil')
  // Read-only metadata has no owner, and the status is owned through its subresource only.
  const { labels, annotations, finalizers, ownerReferences, uid, resourceVersion } = sent
  object.metadata = {
    name: target.name,
    ...(kind.namespaced && { namespace: target.namespace }),
    ...definedFields({ labels, annotations, finalizers, ownerReferences }),
    ...emptyFields(body.metadata),
  } as KubeObject['metadata']
  checkNamespacedName(kind, sent, target)
  return { body: body as JsonObject, object: toJson(object), uid, resourceVersion }
}

/** @throws {StatusError} BadRequest for a body of another kind. */
function checkType(kind: Kind, { apiVersion, kind: name }: Record<string, unknown>): void {
  if (apiVersion === undefined || name === undefined) throw badRequest('an apply patch must name its apiVersion and kind')
  if (apiVersion === kind.apiVersion && name === kind.kind) return
  throw badRequest(`invalid object type: ${String(apiVersion).includes('/') ? '' : '/'}${String(apiVersion)}, Kind=${String(name)}`)
}

/** @throws {StatusError} NotFound for a subresource or a precondition without an object, Forbidden without the right to create. */
function checkMayCreate(services: Services, call: Call, { uid, resourceVersion }: Applied): void {
  const { kind, name, namespace, subresource } = call.target
  if (subresource !== '' || resourceVersion || uid) throw notFound(kind, name)
  call.caller.checkCreate?.()
  checkNamespace(services, call, namespace)
}

function decideApply(services: Services, call: Call, live: KubeObject | undefined, applied: Applied, options: WriteOptions): WriteDecision {
  const { kind, subresource } = call.target
  const { manager, force, nowMs } = options
  const { object: merged, conflicts } = applyServerSide({
    live: live && toJson(live),
    applied: applied.object,
    sent: applied.body,
    manager,
    force,
    schema: kind.schema,
    apiVersion: kind.apiVersion,
    subresource,
    resetFields: resetFieldsOf(call.target, applied),
    nowMs,
  })
  if (conflicts.length > 0) throw conflictError(conflicts)
  checkSize(merged)
  const object = merged as unknown as KubeObject
  if (live) checkOwned(kind, object, Number.POSITIVE_INFINITY)
  const meta = { ...object.metadata }
  if (applied.resourceVersion) meta.resourceVersion = applied.resourceVersion
  else if (live) meta.resourceVersion = live.metadata.resourceVersion
  if (applied.uid) meta.uid = applied.uid
  if (live) return decideUpdate(services, call, live, { object, sent: meta, unknown: [] }, 'applied', options)
  const { resourceVersion: _, uid: __, ...sent } = meta
  const decoded: Decoded = { object, sent, unknown: [] }
  const created = prepareCreate(kind, decoded, call.target, 'applied', options)
  admit(call, created, undefined, options)
  return decidePut(services, call, created, undefined, options)
}

/** Fields that belong to the other endpoint, status or main resource: they are neither changed nor owned through this one. */
function resetFieldsOf({ kind, subresource }: Target, { object }: Applied): string[] {
  if (subresource === 'status') return Object.keys(object).filter(field => !typeFields.has(field) && field !== 'status')
  return kind.hasStatus ? ['status'] : []
}

const typeFields = new Set(['apiVersion', 'kind'])
const toJson = (object: KubeObject) => object as unknown as JsonObject

/** Fields of metadata that an apply sets to null or to an empty map: the manager owns them although they have no value. */
function emptyFields(metadata: unknown): Record<string, unknown> {
  if (!isJsonObject(metadata)) return {}
  const isEmpty = (value: unknown) => value === null || (isJsonObject(value) && Object.keys(value).length === 0)
  return Object.fromEntries(Object.entries(metadata).filter(([name, value]) => userMetadataFields.has(name) && isEmpty(value)))
}

const userMetadataFields = new Set(['labels', 'annotations', 'finalizers', 'ownerReferences'])

function definedFields<T extends object>(fields: T): Partial<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Partial<T>
}
