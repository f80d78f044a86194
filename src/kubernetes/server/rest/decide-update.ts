import { badRequest, type KubeObject, notFound, StatusError } from '../../object/index.ts'
import { admit, type Call, methodNotAllowed, type Services } from './call.ts'
import type { Decoded } from './decode.ts'
import { isDeletionComplete } from './metadata.ts'
import { storedForm, type WriteDecision } from './mutate.ts'
import { prepareFinalize, prepareStatus, prepareUpdate } from './prepare-update.ts'
import type { FieldOwnership } from './track-managed-fields.ts'
import type { WriteOptions } from './write-options.ts'

const namespacesTable = 'namespaces'

/** Decides an update of `before`: of the object itself or of the subresource of the call. */
export function decideUpdate(
  services: Services,
  call: Call,
  before: KubeObject,
  decoded: Decoded,
  ownership: FieldOwnership,
  options: WriteOptions,
): WriteDecision {
  const { kind } = call.target
  const after = prepare(call, before, decoded, ownership, options)
  if (after === before) return { result: undefined }
  admit(call, after, before, options)
  // As in Kubernetes: the version that completes a deletion is returned to the writer but never stored, so no one else sees it.
  if (isDeletionComplete(after) && !options.dryRun) return { remove: storedForm(kind, before), result: after }
  return decidePut(services, call, after, before, options)
}

function prepare({ target }: Call, before: KubeObject, decoded: Decoded, ownership: FieldOwnership, options: WriteOptions): KubeObject {
  const { kind, namespace, name, subresource } = target
  const write = { kind, before, decoded, url: { namespace, name }, ownership, options }
  switch (subresource) {
    case '':
      return prepareUpdate(write)
    case 'status':
      return prepareStatus(write)
    case 'finalize':
      return prepareFinalize(write)
    case 'scale':
    case 'binding':
      throw methodNotAllowed()
  }
}

/**
 * Decides to store a prepared object.
 * @throws {StatusError} Forbidden when other objects or a quota do not admit it.
 */
export function decidePut(
  { quotas }: Services,
  { target: { kind, subresource } }: Call,
  object: KubeObject,
  oldObject: KubeObject | undefined,
  options: WriteOptions,
): WriteDecision {
  if (subresource === '') {
    kind.strategy.validateAdmission?.(object, oldObject)
    if (kind.namespaced) quotas.admit(kind, object, oldObject)
  }
  if (!options.dryRun) {
    const isDeferred = oldObject !== undefined && subresource === '' && kind.strategy.isRenewal?.(object, oldObject)
    return { put: storedForm(kind, object), ...(isDeferred && { isDeferred }) }
  }
  if (!object.metadata.resourceVersion) object.metadata = omitVersion(object.metadata)
  return { result: object }
}

function omitVersion({ resourceVersion: _, ...metadata }: KubeObject['metadata']): KubeObject['metadata'] {
  return metadata as KubeObject['metadata']
}

/** @throws {StatusError} NotFound for a namespace that does not exist, Forbidden for one that is being deleted. */
export function checkNamespace({ store }: Services, call: Call, namespace: string, name = call.target.name): void {
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
