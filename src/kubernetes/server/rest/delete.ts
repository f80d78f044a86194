import {
  badRequest,
  conflict,
  invalidOptions,
  invalidValue,
  isJsonObject,
  type KubeObject,
  notFound,
  rfc3339,
  StatusError,
  unsupportedValue,
} from '../../object/index.ts'
import { yieldEvery } from '../fairness/index.ts'
import { type Kind, markTerminating, selectFrom } from '../registry/index.ts'
import type { Store, StoredEntry, Table } from '../storage/index.ts'
import { listFrame, listItem, send } from '../wire/index.ts'
import { parseBody } from './body.ts'
import { admitDeletion, type Call, keyOf, type Services, sendObject, sendResult } from './call.ts'
import { isDeletionComplete } from './metadata.ts'
import { mutate, readEntry, storedForm, type WriteDecision } from './mutate.ts'
import { mustStream, selectionOf } from './read.ts'
import { streamList } from './stream-list.ts'

export type Propagation = 'Background' | 'Foreground' | 'Orphan'

export type DeleteOptions = {
  propagation: Propagation | undefined
  dryRun: boolean
  /** The grace period that the client asks for; undefined leaves it to the object's kind. */
  graceSeconds?: number
  uid?: string
  resourceVersion?: string
}

/** Deletes one object: immediately, or when its finalizers are removed. */
export async function remove(services: Services, call: Call): Promise<void> {
  const { store } = services
  const { kind, table } = call.target
  const options = readDeleteOptions(call)
  let last: KubeObject | undefined
  const outcome = await mutate(store, table, keyOf(call.target), head => {
    if (!head) throw notFound(kind, call.target.name)
    const object = readEntry(kind, head)
    last = object
    return decideDelete(kind, object, options, store.nowMs, admitDeletion(call, object, options))
  })
  const warnings = defaultWarnings(call, options)
  if (outcome.isRemoved && kind.strategy.returnDeletedObject) {
    sendResult(call, outcome, 200, warnings, store.nowMs)
    return
  }
  if (outcome.isRemoved || (options.dryRun && outcome.object === undefined)) {
    const { name, uid } = last!.metadata
    const details = { name, ...(kind.group && { group: kind.group }), kind: kind.plural, uid }
    sendObject(call, { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', details }, 200, warnings)
    return
  }
  sendResult(call, outcome, 200, warnings, store.nowMs)
}

/** Deletes every selected object and responds with their list. */
export async function removeCollection(services: Services, call: Call): Promise<void> {
  const { store } = services
  const { kind, table } = call.target
  const options = readDeleteOptions(call)
  const selection = selectionOf(call)
  const entries = selectFrom(table, selection)
  const done: Promise<unknown>[] = []
  const admit = (object: KubeObject) => admitDeletion(call, object, options)
  await yieldEvery(entries, entry => done.push(ignoreUnhandledRejection(deleteEntry(store, kind, table, entry, options, admit))))
  await Promise.all(done)
  const { shard } = selection
  const shardInfo = shard && call.output.as.form === 'object' ? { shardInfo: { selector: shard.text } } : {}
  const frame = listFrame(kind, call.output.as, { resourceVersion: String(store.revision), ...shardInfo })
  if (mustStream(entries, 0, entries.length)) {
    await streamList(call, frame, { entries, from: 0, to: entries.length, nowMs: store.nowMs })
    return
  }
  const items = entries.map(entry => listItem(kind, entry, call.output.as, store.nowMs)).join(',')
  send(call.output.response, 200, 'application/json', frame.head + items + frame.end, defaultWarnings(call, options))
}

/** A rejection is handled when all promises are awaited together, and must not count as unhandled before. */
function ignoreUnhandledRejection<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {})
  return promise
}

/**
 * Deletes the object that `entry` is a version of, unless another object has the same name by now.
 * @param admit throws if the user may not delete the object, and returns it with what is recorded of the user. Default: the server itself deletes it.
 */
export async function deleteEntry(
  store: Store,
  kind: Kind,
  table: Table,
  entry: StoredEntry,
  options: DeleteOptions,
  admit?: (object: KubeObject) => KubeObject,
): Promise<void> {
  await mutate(store, table, entry.key, head => {
    if (head?.uid !== entry.uid) return { result: undefined }
    const object = readEntry(kind, head)
    return decideDelete(kind, object, options, store.nowMs, admit?.(object))
  })
}

/** Decides how to delete `object`: remove it, or mark it and wait for its finalizers. `admitted`: it, with what a plugin has recorded. */
function decideDelete(kind: Kind, object: KubeObject, options: DeleteOptions, nowMs: number, admitted = object): WriteDecision {
  const { metadata } = admitted
  const isNamespace = kind.storageName === 'namespaces'
  if (options.uid !== undefined && options.uid !== metadata.uid) {
    if (isNamespace) throw namespacePrecondition(kind, metadata.name, 'UID', options.uid, metadata.uid)
    throw preconditionFailed(
      kind,
      metadata.name,
      `the UID in the precondition (${options.uid}) does not match the UID in record (${metadata.uid}). The object might have been deleted and then recreated`,
    )
  }
  if (options.resourceVersion !== undefined && options.resourceVersion !== metadata.resourceVersion) {
    if (isNamespace) throw namespacePrecondition(kind, metadata.name, 'ResourceVersion', options.resourceVersion, metadata.resourceVersion)
    throw preconditionFailed(
      kind,
      metadata.name,
      `the ResourceVersion in the precondition (${options.resourceVersion}) does not match the ResourceVersion in record (${metadata.resourceVersion}). The object might have been modified`,
    )
  }
  const rejection = kind.strategy.validateDelete?.(object)
  if (rejection) {
    const what = kind.group ? `${kind.plural}.${kind.group}` : kind.plural
    throw new StatusError('Forbidden', `${what} "${metadata.name}" is forbidden: ${rejection}`, {
      details: { name: metadata.name, group: kind.group || undefined, kind: kind.plural },
    })
  }
  const finalizers = finalizersFor(metadata.finalizers ?? [], options.propagation ?? defaultPropagation(kind, metadata.finalizers))
  const isMarked = metadata.deletionTimestamp !== undefined
  const isUnchanged =
    finalizers.length === (metadata.finalizers ?? []).length && finalizers.every(name => metadata.finalizers!.includes(name))
  const graceBefore = metadata.deletionGracePeriodSeconds ?? 0
  // A grace period can be shortened, but not extended.
  const graceWanted = kind.strategy.gracePeriodSeconds?.(object, options.graceSeconds) ?? 0
  const grace = isMarked ? Math.min(graceBefore, graceWanted) : graceWanted
  const isRecorded = metadata !== object.metadata
  if (isMarked && isUnchanged && !isRecorded && grace === graceBefore && !isDeletionComplete(object)) return { result: undefined }
  // Kubernetes marks Namespaces and CustomResourceDefinitions differently, without grace period and generation.
  const isPlainMark = isNamespace || kind.storageName === 'customresourcedefinitions.apiextensions.k8s.io'
  const marked: KubeObject = {
    ...object,
    metadata: {
      ...metadata,
      deletionTimestamp: rfc3339((isMarked ? Date.parse(metadata.deletionTimestamp!) - graceBefore * 1_000 : nowMs) + grace * 1_000),
      ...(!isPlainMark && { deletionGracePeriodSeconds: grace }),
      finalizers: finalizers.length > 0 ? finalizers : undefined,
    },
  }
  // Also for kinds without generations, when one was sent on create.
  if (metadata.generation && !isMarked && !isPlainMark) marked.metadata.generation = metadata.generation + 1
  if (isPlainMark && !isNamespace) marked.status = markTerminating(marked, nowMs).status
  if (isNamespace) marked.status = { ...(object.status as object), phase: 'Terminating' }
  if (isDeletionComplete(marked))
    return options.dryRun ? { result: undefined } : { remove: storedForm(kind, kind.strategy.gracePeriodSeconds ? marked : object) }
  return options.dryRun ? { result: marked } : { put: storedForm(kind, marked) }
}

// kube-apiserver's message has the kind here, not the resource.
function preconditionFailed({ group, kind }: Kind, name: string, why: string): StatusError {
  return conflict({ group, plural: kind }, name, why)
}

// kube-apiserver checks the preconditions of Namespaces elsewhere, with another wording.
function namespacePrecondition(kind: Kind, name: string, what: string, wanted: string, is: string | undefined): StatusError {
  return conflict(kind, name, `Precondition failed: ${what} in precondition: ${wanted}, ${what} in object meta: ${is}`)
}

/** The propagation policy when the request has none: a finalizer on the object takes precedence over the default of its kind. */
function defaultPropagation(kind: Kind, finalizers: readonly string[] = []): Propagation | undefined {
  const hasFinalizer = finalizers.includes('foregroundDeletion') || finalizers.includes('orphan')
  return kind.strategy.orphanByDefaultWarning && !hasFinalizer ? 'Orphan' : undefined
}

/** The warning for a request without a propagation policy, when the kind orphans its dependents by default. */
function defaultWarnings({ target: { kind } }: Call, { propagation }: DeleteOptions): string[] {
  return kind.strategy.orphanByDefaultWarning && propagation === undefined ? [kind.strategy.orphanByDefaultWarning] : []
}

function finalizersFor(finalizers: readonly string[], propagation: Propagation | undefined): string[] {
  if (propagation === undefined) return [...finalizers]
  const others = finalizers.filter(name => name !== 'orphan' && name !== 'foregroundDeletion')
  if (propagation === 'Orphan') return [...others, 'orphan']
  if (propagation === 'Foreground') return [...others, 'foregroundDeletion']
  return others
}

function readDeleteOptions(call: Call): DeleteOptions {
  const { query } = call.input
  const body = call.input.body ? parseBody(call.input.body, call.input.contentType) : {}
  if (!isJsonObject(body)) throw badRequest('the body of a delete request must be one DeleteOptions object')
  if (body.kind !== undefined && body.kind !== 'DeleteOptions') {
    throw badRequest(`the body of a delete request must be one DeleteOptions object, got a ${String(body.kind).slice(0, 80)}`)
  }
  const preconditions = isJsonObject(body.preconditions) ? body.preconditions : {}
  const propagation = body.propagationPolicy ?? query?.get('propagationPolicy') ?? undefined
  const orphan = body.orphanDependents ?? query?.get('orphanDependents') ?? undefined
  if (propagation !== undefined && propagation !== 'Background' && propagation !== 'Foreground' && propagation !== 'Orphan') {
    const cause = unsupportedValue('propagationPolicy', propagation, ['Foreground', 'Background', 'Orphan', 'nil'])
    throw invalidOptions('DeleteOptions', [cause])
  }
  if (propagation !== undefined && orphan !== undefined) {
    const why = 'orphanDependents and deletionPropagation cannot be both set'
    throw invalidOptions('DeleteOptions', [invalidValue('propagationPolicy', propagation, why)])
  }
  const graceText = query?.get('gracePeriodSeconds')
  const grace = typeof body.gracePeriodSeconds === 'number' ? body.gracePeriodSeconds : graceText ? Number(graceText) : undefined
  const dryRun = [...(Array.isArray(body.dryRun) ? body.dryRun : []), ...(query?.getAll('dryRun') ?? [])]
  if (dryRun.some(value => value !== 'All')) throw invalidOptions('DeleteOptions', [unsupportedValue('dryRun', dryRun, ['All'])])
  const isOrphan = orphan === true || orphan === 'true'
  return {
    propagation: propagation ?? (orphan === undefined ? undefined : isOrphan ? 'Orphan' : 'Background'),
    dryRun: dryRun.length > 0,
    ...(Number.isSafeInteger(grace) && { graceSeconds: grace }),
    ...(typeof preconditions.uid === 'string' && { uid: preconditions.uid }),
    ...(typeof preconditions.resourceVersion === 'string' && { resourceVersion: preconditions.resourceVersion }),
  }
}
