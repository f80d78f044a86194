import { finalizerErrors, invalidValue, type KubeObject, type StatusCause } from '../../../object/index.ts'
import { allVerbs } from '../kind.ts'
import { ageColumn, column, nameColumn } from '../printer-columns.ts'
import { type KindDeclaration, text } from './kind-declaration.ts'

export const namespaceKinds: readonly KindDeclaration[] = [
  {
    kind: 'Namespace',
    plural: 'namespaces',
    shortNames: ['ns'],
    cluster: true,
    description: 'Namespace provides a scope for Names. Use of multiple namespaces is optional.',
    nameRule: 'dns1123Label',
    zeroValue: { spec: { finalizers: ['kubernetes'] }, status: { phase: 'Active' } },
    // Deleting it by mistake would delete everything.
    verbs: allVerbs.filter(verb => verb !== 'deletecollection'),
    hasStatus: true,
    fields: {
      spec: {
        type: 'object',
        default: {},
        description: 'Spec defines the behavior of the Namespace.',
        properties: {
          finalizers: {
            type: 'array',
            description: 'Finalizers is an opaque list of values that must be empty to permanently remove object from storage.',
            items: { type: 'string' },
            'x-kubernetes-list-type': 'atomic',
          },
        },
      },
      status: {
        type: 'object',
        default: {},
        description: 'Status describes the current status of a Namespace.',
        properties: {
          phase: text('Phase is the current lifecycle phase of the namespace: Active or Terminating.'),
          conditions: {
            type: 'array',
            description: "Represents the latest available observations of a namespace's current state.",
            'x-kubernetes-list-type': 'map',
            'x-kubernetes-list-map-keys': ['type'],
            items: {
              type: 'object',
              required: ['type', 'status'],
              properties: {
                type: text('Type of namespace controller condition.'),
                status: text('Status of the condition, one of True, False, Unknown.'),
                reason: text('Why, for machines.'),
                message: text('Why, for people.'),
                lastTransitionTime: { type: 'string', format: 'date-time', description: 'When status last changed.' },
              },
            },
          },
        },
      },
    },
    columns: [nameColumn, column('Status', 'The status of the namespace', namespacePhase), ageColumn],
    selectableFields: [{ field: 'status.phase', read: namespacePhase }],
    prepareForWrite: prepareNamespace,
    validate: validateNamespace,
    validateDelete: ({ metadata: { name } }) =>
      name === 'default' || name === 'kube-system' || name === 'kube-public' ? 'this namespace may not be deleted' : undefined,
  },
]

function namespacePhase(object: KubeObject): string {
  return (object.status as { phase?: string } | undefined)?.phase ?? 'Active'
}

function validateNamespace({ spec, status, metadata }: KubeObject, before: KubeObject | undefined): StatusCause[] {
  const { phase = 'Active' } = (status ?? {}) as { phase?: string }
  const isGoing = metadata.deletionTimestamp !== undefined
  if (isGoing && phase !== 'Terminating') {
    return [invalidValue('status.Phase', phase, "may only be 'Terminating' if `deletionTimestamp` is not empty")]
  }
  if (!isGoing && phase !== 'Active') return [invalidValue('status.Phase', phase, "may only be 'Active' if `deletionTimestamp` is empty")]
  if (before) return []
  const { finalizers = [] } = (spec ?? {}) as { finalizers?: string[] }
  return finalizers.flatMap(finalizer =>
    finalizerErrors([finalizer], 'spec.finalizers').map(cause => ({ ...cause, field: 'spec.finalizers' })),
  )
}

function prepareNamespace(namespace: KubeObject, before: KubeObject | undefined): void {
  const { metadata } = namespace
  metadata.labels = { ...metadata.labels, 'kubernetes.io/metadata.name': metadata.name }
  if (before) {
    // Only the finalize subresource changes it.
    namespace.spec = before.spec
    return
  }
  const spec = (namespace.spec ?? {}) as { finalizers?: string[] }
  namespace.spec = { ...spec, finalizers: [...new Set([...(spec.finalizers ?? []), 'kubernetes'])] }
  namespace.status = { phase: 'Active' }
}
