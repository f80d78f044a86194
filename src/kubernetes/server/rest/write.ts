import {
  alreadyExists,
  conflict,
  forbiddenField,
  invalid,
  invalidOptions,
  invalidValue,
  type JsonObject,
  notFound,
  StatusError,
} from '../../object/index.ts'
import { applyPatch } from './apply-patch.ts'
import { admit, type Call, keyOf, type Services, sendResult } from './call.ts'
import { checkOwned } from './check-size.ts'
import { checkNamespace, decidePut, decideUpdate } from './decide-update.ts'
import { type Decoded, decode, decodeBody, undeterminedName } from './decode.ts'
import { mutate, readEntry, type WriteDecision } from './mutate.ts'
import { patchFunction } from './patch-function.ts'
import { prepareCreate } from './prepare-create.ts'
import { decideLeaseRenewal, readLeaseRenewal } from './renew-lease.ts'
import { readWriteOptions, type WriteOptions } from './write-options.ts'

export async function create(services: Services, call: Call): Promise<void> {
  const { store } = services
  const { kind, table, namespace } = call.target
  const options = readWriteOptions('CreateOptions', call.input.query, call.input.userAgent, store.nowMs)
  call.output.response.warningsOnFailure = options.warnings
  const decoded = decodeBody(call, options)
  // The namespace of the URL, not of the body: for a cluster-scoped kind a sent namespace is dropped, as in Kubernetes, and must not
  // become part of the key.
  checkNamespace(services, call, namespace, decoded.sent.name ?? decoded.sent.generateName)
  const object = prepareCreate(kind, decoded, call.target, 'tracked', options)
  const { name } = object.metadata
  if (call.output.response.audit) call.output.response.audit.name = name
  admit(call, object, undefined, options)
  const result = await mutate(
    store,
    table,
    keyOf({ namespace, name }),
    head => {
      const decision = decidePut(services, call, object, undefined, options)
      if (head) throw alreadyExistsError(call, head.deleting, name)
      return decision
    },
    call.input.createBefore,
  )
  sendResult(call, result, 201, options.warnings, store.nowMs)
}

export async function update(services: Services, call: Call): Promise<void> {
  const { store } = services
  const { kind, table, name, subresource } = call.target
  const options = readWriteOptions('UpdateOptions', call.input.query, call.input.userAgent, store.nowMs)
  call.output.response.warningsOnFailure = options.warnings
  let isCreated = false
  const result = await mutate(
    store,
    table,
    keyOf(call.target),
    head => {
      options.warnings.length = 0
      isCreated = !head && call.caller.checkCreate !== undefined && subresource === ''
      if (!head && !isCreated) throw notFound(kind, name)
      const decoded = decodeBody(call, options)
      if (!decoded.sent.name) throw undeterminedName(name)
      if (!head) return createByUpdate(services, call, decoded, options)
      // An update of a custom resource must name the version that it was computed from.
      if (kind.isCustom && !decoded.sent.resourceVersion) {
        const { group, plural } = kind
        const cause = invalidValue('metadata.resourceVersion', 0, 'must be specified for an update')
        throw invalid({ group, plural, kind: plural }, name, [cause])
      }
      return decideUpdate(services, call, readEntry(kind, head), decoded, 'tracked', options)
    },
    call.input.createBefore,
  )
  sendResult(call, result, isCreated ? 201 : 200, options.warnings, store.nowMs)
}

function createByUpdate(services: Services, call: Call, decoded: Decoded, options: WriteOptions): WriteDecision {
  const { kind, name, namespace } = call.target
  call.caller.checkCreate?.()
  const { uid, resourceVersion: _, ...sent } = decoded.sent
  if (uid) throw conflict(kind, name, `Precondition failed: UID in precondition: ${uid}, UID in object meta: `)
  checkNamespace(services, call, namespace)
  const object = prepareCreate(kind, { ...decoded, sent }, call.target, 'tracked', options)
  admit(call, object, undefined, options)
  return decidePut(services, call, object, undefined, options)
}

export async function patch(services: Services, call: Call): Promise<void> {
  const { store } = services
  const { kind, table, name } = call.target
  const { query, userAgent, contentType } = call.input
  const options = readWriteOptions('PatchOptions', query, userAgent, store.nowMs)
  call.output.response.warningsOnFailure = options.warnings
  if (contentType === 'application/apply-patch+yaml') {
    await applyPatch(services, call, options)
    return
  }
  if (query?.has('force')) throw invalidOptions('PatchOptions', [forbiddenField('force', 'may not be specified for non-apply patch')])
  const renewal = readLeaseRenewal(call)
  let change = renewal ? undefined : patchFunction(call)
  const result = await mutate(store, table, keyOf(call.target), head => {
    options.warnings.length = 0
    if (!head) throw notFound(kind, name)
    const renewed = renewal && decideLeaseRenewal(call, head, renewal, options)
    if (renewed) return renewed
    change ??= patchFunction(call)
    const live = readEntry(kind, head)
    const decoded = decode(kind, change(live as unknown as JsonObject, head.text.length), options, { live })
    checkOwned(kind, decoded.object, head.text.length + call.input.body.length)
    return decideUpdate(services, call, live, { ...decoded, isPatched: true }, 'tracked', options)
  })
  sendResult(call, result, 200, options.warnings, store.nowMs)
}

function alreadyExistsError({ target: { kind } }: Call, isBeingDeleted: boolean, name: string): StatusError {
  const error = alreadyExists(kind, name)
  return isBeingDeleted ? new StatusError('AlreadyExists', `object is being deleted: ${error.message}`, { details: error.details }) : error
}
