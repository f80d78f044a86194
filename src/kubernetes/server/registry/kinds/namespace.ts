import { finalizerErrors, invalidValue, type KubeObject, type StatusCause } from '../../../object/index.ts'
import { allVerbs } from '../kind.ts'
import { ageColumn, column, nameColumn } from '../printer-columns.ts'
import { type KindDeclaration, stringField } from './kind-declaration.ts'

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
          phase: stringField('Phase is the current lifecycle phase of the namespace: Active or Terminating.'),
          conditions: {
            type: 'array',
            description: "Represents the latest available observations of a namespace's current state.",
            'x-kubernetes-list-type': 'map',
            'x-kubernetes-list-map-keys': ['type'],
            items: {
              type: 'object',
              required: ['type', 'status'],
              properties: {
                type: stringField('Type of namespace controller condition.'),
                status: stringField('Status of the condition, one of True, False, Unknown.'),
                reason: stringField('Why, for machines.'),
                message: stringField('Why, for people.'),
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

function validateNamespace({ spec, status, metadata }: KubeObject, oldNamespace: KubeObject | undefined): StatusCause[] {
  const { phase = 'Active' } = (status ?? {}) as { phase?: string }
  const isTerminating = metadata.deletionTimestamp !== undefined
  if (isTerminating && phase !== 'Terminating') {
    return [invalidValue('status.Phase', phase, "may only be 'Terminating' if `deletionTimestamp` is not empty")]
  }
  if (!isTerminating && phase !== 'Active')
    return [invalidValue('status.Phase', phase, "may only be 'Active' if `deletionTimestamp` is empty")]
  if (oldNamespace) return []
  const { finalizers = [] } = (spec ?? {}) as { finalizers?: string[] }
  return finalizers.flatMap(finalizer =>
    finalizerErrors([finalizer], 'spec.finalizers').map(cause => ({ ...cause, field: 'spec.finalizers' })),
  )
}

function prepareNamespace(namespace: KubeObject, oldNamespace: KubeObject | undefined): void {
  const { metadata } = namespace
  metadata.labels = { ...metadata.labels, 'kubernetes.io/metadata.name': metadata.name }
  if (oldNamespace) {
    // Only the finalize subresource changes it.
    namespace.spec = oldNamespace.spec
    return
  }
  const spec = (namespace.spec ?? {}) as { finalizers?: string[] }
  namespace.spec = { ...spec, finalizers: [...new Set([...(spec.finalizers ?? []), 'kubernetes'])] }
  namespace.status = { phase: 'Active' }
}
