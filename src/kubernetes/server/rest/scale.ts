import { applyServerSide, conflictError, trackUpdate } from '../../apply/index.ts'
import {
  badRequest,
  conflict,
  invalid,
  invalidOptions,
  invalidValue,
  isJsonObject,
  type JsonObject,
  type KubeObject,
  type ManagedFieldsEntry,
  notFound,
  requiredValue,
  setOwn,
} from '../../object/index.ts'
import { type Kind, type ScaleFields, scaleKindFor, valueAt } from '../registry/index.ts'
import { type StoredEntry, stringifyAsciiJson } from '../storage/index.ts'
import { renderEntry, send } from '../wire/index.ts'
import { parseYaml } from './body.ts'
import { type Call, keyOf, type Services, withKind } from './call.ts'
import { type Decoded, decode, decodeBody, undeterminedName } from './decode.ts'
import { mutate, readEntry, storedForm, type WriteDecision } from './mutate.ts'
import { patchFunction } from './patch-function.ts'
import { prepareUpdate } from './prepare-update.ts'
import { moveToParent, moveToScale } from './scale-managers.ts'
import { readWriteOptions, type WriteOptions } from './write-options.ts'

/**
 * The scale subresource: any scalable object as an `autoscaling/v1` Scale. A write changes the number of replicas of the object and
 * nothing else.
 * @throws {StatusError} like other reads and writes; BadRequest for a custom resource without a number of replicas.
 */
export async function scale(services: Services, call: Call, fields: ScaleFields): Promise<void> {
  if (call.target.verb === 'get') {
    const entry = call.target.table.get(keyOf(call.target))
    if (!entry) throw notFound(call.target.kind, call.target.name)
    const object = readEntry(call.target.kind, entry)
    if (call.target.kind.isCustom && replicasOf(object, fields.specReplicas) === undefined) {
      throw badRequest(`the spec replicas field ".${fields.specReplicas.join('.')}" does not exist: set it before you read the scale`)
    }
    sendScale(call, entry, object, fields, [], services.store.nowMs)
    return
  }
  await write(services, call, fields)
}

async function write({ store }: Services, call: Call, fields: ScaleFields): Promise<void> {
  const isUpdate = call.target.verb === 'update'
  const options = readWriteOptions(isUpdate ? 'UpdateOptions' : 'PatchOptions', call.input.query, call.input.userAgent, store.nowMs)
  const change = isUpdate
    ? replaceScale(call, options)
    : call.input.contentType === 'application/apply-patch+yaml'
      ? applyScale(call, options)
      : patchScale(call, options)
  let result: KubeObject | undefined
  let base: StoredEntry | undefined
  const { entry } = await mutate(store, call.target.table, keyOf(call.target), head => {
    options.warnings.length = 0
    if (!head) throw notFound(call.target.kind, call.target.name)
    base = head
    const before = readEntry(call.target.kind, head)
    const { after, decision } = decideScaleWrite(call, before, change(scaleOf(before, fields, call.target.kind)), fields, options)
    result = after
    return decision
  })
  sendScale(call, entry ?? base!, entry ? readEntry(call.target.kind, entry) : result!, fields, options.warnings, store.nowMs)
}

/** Computes the Scale that the client asks for from the live one, and the new field managers. */
type ScaleChange = (live: KubeObject) => { scale: KubeObject; sent: Decoded['sent']; managers: ManagedFieldsEntry[] }

function replaceScale(call: Call, options: WriteOptions): ScaleChange {
  const kind = scaleKindFor(call.target.kind)
  // As in Kubernetes, an invalid body is reported even when the object does not exist.
  const decoded = decodeBody(withKind(call, kind), options)
  if (!decoded.sent.name) throw undeterminedName(call.target.name)
  checkNamespacedName(call, decoded.sent)
  const warnings = [...options.warnings]
  return live => {
    options.warnings.push(...warnings)
    return trackScale(live, decoded, kind, options)
  }
}

function patchScale(call: Call, options: WriteOptions): ScaleChange {
  const kind = scaleKindFor(call.target.kind)
  const change = patchFunction(withKind(call, kind))
  return live => trackScale(live, decode(kind, change(live as unknown as JsonObject, 0), options), kind, options)
}

function trackScale(live: KubeObject, { object, sent }: Decoded, kind: Kind, options: WriteOptions): ReturnType<ScaleChange> {
  const { manager, nowMs } = options
  // A Scale without a number means zero, so zero has no owner.
  const replicas = valueAt(defaultScale(kind, object), ['spec', 'replicas'])
  const after = { ...live, spec: replicas ? { replicas } : {} }
  const managers = trackUpdate({
    before: live,
    after,
    manager,
    schema: kind.schema,
    apiVersion: kind.apiVersion,
    subresource: 'scale',
    nowMs,
  })
  return { scale: after, sent, managers }
}

/** @throws {StatusError} BadRequest in the wording of Go's decoder for a field of the wrong type. */
function defaultScale(kind: Kind, scale: KubeObject): KubeObject {
  return kind.strategy.default?.({ ...scale, spec: scale.spec ?? {} }) ?? scale
}

function applyScale(call: Call, options: WriteOptions): ScaleChange {
  const kind = scaleKindFor(call.target.kind)
  const { manager, isManagerGiven, force, nowMs } = options
  if (!isManagerGiven) throw invalidOptions('PatchOptions', [requiredValue('fieldManager', 'is required for apply patch')])
  const body = parseYaml(call.input.body)
  if (!isJsonObject(body)) throw badRequest('the body of an apply patch must be one object')
  if (body.apiVersion === undefined || body.kind === undefined) throw badRequest('an apply patch must name its apiVersion and kind')
  return live => {
    const { object, sent, unknown } = decode(kind, body, options)
    if (unknown.length > 0) throw badRequest(`failed to create typed patch object: .${unknown[0]}: field not declared in schema`)
    defaultScale(kind, object)
    const { object: result, conflicts } = applyServerSide({
      live: live as unknown as JsonObject,
      applied: {
        apiVersion: kind.apiVersion,
        kind: kind.kind,
        metadata: { name: call.target.name },
        spec: (object.spec ?? {}) as JsonObject,
      },
      manager,
      force,
      schema: kind.schema,
      apiVersion: kind.apiVersion,
      subresource: 'scale',
      resetFields: ['status'],
      nowMs,
    })
    if (conflicts.length > 0) throw conflictError(conflicts)
    const scale = result as unknown as KubeObject
    return { scale, sent, managers: scale.metadata.managedFields ?? [] }
  }
}

function decideScaleWrite(
  call: Call,
  before: KubeObject,
  { scale: wanted, sent, managers }: ReturnType<ScaleChange>,
  fields: ScaleFields,
  options: WriteOptions,
): { after: KubeObject; decision: WriteDecision } {
  const { kind, name, namespace } = call.target
  if (sent.name && sent.name !== name)
    throw badRequest(`the name of the object (${sent.name}) does not match the name on the URL (${name})`)
  if (sent.namespace && kind.namespaced && sent.namespace !== namespace) {
    throw badRequest('the namespace of the provided object does not match the namespace sent on the request')
  }
  const { specReplicas } = fields
  // A patch without a number keeps the current one; a whole Scale without a number means zero.
  const isLeftOut = call.target.verb === 'patch' && valueAt(wanted, ['spec', 'replicas']) === undefined
  if (kind.isCustom && isLeftOut && replicasOf(before, specReplicas) === undefined) {
    throw badRequest(`the spec replicas field ".${specReplicas.join('.')}" cannot be empty`)
  }
  const replicas = checkedReplicas(kind, name, wanted)
  if (sent.uid && sent.uid !== before.metadata.uid) {
    const why = `Precondition failed: UID in precondition: ${sent.uid}, UID in object meta: ${before.metadata.uid}`
    throw conflict(kind, name, why)
  }
  const { labels, annotations, finalizers, ownerReferences } = before.metadata
  const parentManagers = moveToParent(before.metadata.managedFields ?? [], managers, specReplicas, kind.apiVersion)
  const meta: Decoded['sent'] = { name, labels, annotations, finalizers, ownerReferences, managedFields: parentManagers }
  if (sent.resourceVersion) meta.resourceVersion = sent.resourceVersion
  const object = withValue(before, specReplicas, replicas)
  const after = prepareUpdate({
    kind,
    before,
    decoded: { object, sent: meta, unknown: [] },
    url: { namespace, name },
    ownership: 'applied',
    options,
  })
  if (after.metadata.managedFields?.length === 0) delete after.metadata.managedFields
  const isKept = after === before || options.dryRun
  return { after, decision: isKept ? { result: after === before ? undefined : after } : { put: storedForm(kind, after) } }
}

function checkNamespacedName({ target: { kind, name, namespace } }: Call, sent: Decoded['sent']): void {
  if (sent.name && sent.name !== name)
    throw badRequest(`the name of the object (${sent.name}) does not match the name on the URL (${name})`)
  if (sent.namespace && kind.namespaced && sent.namespace !== namespace) {
    throw badRequest('the namespace of the provided object does not match the namespace sent on the request')
  }
}

function checkedReplicas(kind: Kind, name: string, wanted: KubeObject): number {
  const scaleKind = scaleKindFor(kind)
  const replicas = valueAt(wanted, ['spec', 'replicas'])
  const count = typeof replicas === 'number' ? replicas : 0
  // For a custom resource, validation of the whole object reports its own field.
  if (count < 0 && !kind.isCustom) {
    throw invalid(scaleKind, name, [invalidValue('spec.replicas', count, 'must be greater than or equal to 0')])
  }
  return count
}

function scaleOf(object: KubeObject, fields: ScaleFields, kind: Kind): KubeObject {
  const { name, namespace, uid, resourceVersion, creationTimestamp, managedFields } = object.metadata
  const selector = fields.selector(object)
  const replicas = replicasOf(object, fields.specReplicas)
  const owners = moveToScale(managedFields ?? [], fields.specReplicas, kind.apiVersion)
  return {
    apiVersion: 'autoscaling/v1',
    kind: 'Scale',
    metadata: {
      name,
      ...(namespace !== undefined && { namespace }),
      uid,
      resourceVersion,
      creationTimestamp,
      ...(owners.length > 0 && { managedFields: owners }),
    },
    // Zero is omitted, like every optional number in Kubernetes.
    spec: replicas ? { replicas } : {},
    status: { replicas: replicasOf(object, fields.statusReplicas) ?? 0, ...(selector && { selector }) },
  }
}

function sendScale(
  call: Call,
  entry: StoredEntry,
  object: KubeObject,
  fields: ScaleFields,
  warnings: readonly string[],
  nowMs: number,
): void {
  const { kind } = call.target
  const { response, as } = call.output
  const scale = scaleOf(object, fields, kind)
  delete scale.metadata.managedFields
  send(response, 200, as.contentType, renderEntry(scaleKindFor(kind), { ...entry, text: stringifyAsciiJson(scale) }, as, nowMs), warnings)
}

function replicasOf(object: KubeObject, path: readonly string[]): number | undefined {
  const value = valueAt(object, path)
  return typeof value === 'number' ? value : undefined
}

/** A copy with `value` at `path`; missing parents are created. */
function withValue<T extends object>(object: T, [name, ...rest]: readonly string[], value: unknown): T {
  const copy = { ...object }
  const child = (copy as Record<string, unknown>)[name!]
  setOwn(copy as Record<string, unknown>, name!, rest.length === 0 ? value : withValue(isJsonObject(child) ? child : {}, rest, value))
  return copy
}
