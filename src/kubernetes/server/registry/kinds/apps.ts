import { equalJson, invalidValue, isJsonObject, type KubeObject, requiredValue, type StatusCause } from '../../../object/index.ts'
import { ageColumn, column, nameColumn } from '../printer-columns.ts'
import { builtInScale } from '../scale.ts'
import { type Fields, fieldsOf, itemsOf, negativeErrors, numberOf, selectorChangeErrors } from '../type-rules/index.ts'
import { claimSpecWarnings, templateWarnings, workloadNameWarnings } from '../warnings/index.ts'
import { containerColumns, formatLabels, numberAt, numberColumn, selectorAt, valueAtPath } from './column-values.ts'
import type { KindDeclaration } from './kind-declaration.ts'

export const appKinds: readonly KindDeclaration[] = [
  {
    group: 'apps',
    kind: 'Deployment',
    plural: 'deployments',
    shortNames: ['deploy'],
    categories: ['all'],
    typeName: 'io.k8s.api.apps.v1.Deployment',
    hasStatus: true,
    hasGeneration: true,
    scale: builtInScale,
    columns: [
      nameColumn,
      column('Ready', 'Number of the pod with ready state', readyOfWanted),
      column(
        'Up-to-date',
        'Total number of non-terminating pods targeted by this deployment that have the desired template spec.',
        object => numberAt(object, 'status.updatedReplicas'),
      ),
      column(
        'Available',
        'Total number of available non-terminating pods (ready for at least minReadySeconds) targeted by this deployment.',
        object => numberAt(object, 'status.availableReplicas'),
      ),
      ageColumn,
      ...containerColumns('spec.template'),
      column(
        'Selector',
        "Label selector for pods. Existing ReplicaSets whose pods are selected by this will be the ones affected by this deployment. It must match the pod template's labels.",
        object => selectorAt(object, 'spec.selector'),
        1,
      ),
    ],
    validate: validateSelectorUnchanged,
    warnings: (object, oldObject) => [...workloadNameWarnings(object, oldObject), ...templateWarnings('spec.template', object, oldObject)],
    validateStatusUpdate: ({ status }, oldObject) => {
      const counts = (status ?? {}) as Fields
      return [
        ...negativeErrors(counts, 'status', deploymentCounts),
        ...tooManyErrors(counts, ['updatedReplicas', 'readyReplicas', 'availableReplicas'], 'readyReplicas'),
        ...collisionErrors(counts, oldObject),
      ]
    },
  },
  {
    group: 'apps',
    kind: 'StatefulSet',
    plural: 'statefulsets',
    shortNames: ['sts'],
    categories: ['all'],
    typeName: 'io.k8s.api.apps.v1.StatefulSet',
    // Its name is part of the host names of its Pods.
    nameRule: 'dns1123Label',
    hasStatus: true,
    hasGeneration: true,
    scale: builtInScale,
    columns: [
      nameColumn,
      column('Ready', 'Number of the pod with ready state', readyOfWanted),
      ageColumn,
      ...containerColumns('spec.template'),
    ],
    validate: validateStatefulSet,
    warnings: statefulSetWarnings,
    validateStatusUpdate: ({ status }, oldObject) => {
      const counts = (status ?? {}) as Fields
      return [
        ...negativeErrors(counts, 'status', statefulCounts),
        ...tooManyErrors(counts, ['readyReplicas', 'currentReplicas', 'updatedReplicas', 'availableReplicas'], 'status.readyReplicas'),
        ...collisionErrors(counts, oldObject),
      ]
    },
  },
  {
    group: 'apps',
    kind: 'DaemonSet',
    plural: 'daemonsets',
    shortNames: ['ds'],
    categories: ['all'],
    typeName: 'io.k8s.api.apps.v1.DaemonSet',
    hasStatus: true,
    hasGeneration: true,
    columns: [
      nameColumn,
      numberColumn(
        'Desired',
        'The total number of nodes that should be running the daemon pod (including nodes correctly running the daemon pod). More info: https://kubernetes.io/docs/concepts/workloads/controllers/daemonset/',
        'status.desiredNumberScheduled',
      ),
      numberColumn(
        'Current',
        'The number of nodes that are running at least 1 daemon pod and are supposed to run the daemon pod. More info: https://kubernetes.io/docs/concepts/workloads/controllers/daemonset/',
        'status.currentNumberScheduled',
      ),
      numberColumn(
        'Ready',
        'numberReady is the number of nodes that should be running the daemon pod and have one or more of the daemon pod running with a Ready Condition.',
        'status.numberReady',
      ),
      numberColumn('Up-to-date', 'The total number of nodes that are running updated daemon pod', 'status.updatedNumberScheduled'),
      numberColumn(
        'Available',
        'The number of nodes that should be running the daemon pod and have one or more of the daemon pod running and available (ready for at least spec.minReadySeconds)',
        'status.numberAvailable',
      ),
      column(
        'Node Selector',
        "NodeSelector is a selector which must be true for the pod to fit on a node. Selector which must match a node's labels for the pod to be scheduled on that node. More info: https://kubernetes.io/docs/concepts/configuration/assign-pod-node/",
        object => formatLabels(valueAtPath(object, 'spec.template.spec.nodeSelector')),
      ),
      ageColumn,
      ...containerColumns('spec.template'),
      column(
        'Selector',
        "A label query over pods that are managed by the daemon set. Must match in order to be controlled. It must match the pod template's labels. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors",
        object => selectorAt(object, 'spec.selector'),
        1,
      ),
    ],
    prepareForWrite: updateTemplateGeneration,
    warnings: (object, oldObject) => templateWarnings('spec.template', object, oldObject),
    validate: validateSelectorUnchanged,
    validateStatusUpdate: ({ status }, oldObject) => {
      const counts = (status ?? {}) as Fields
      return [...negativeErrors(counts, 'status', daemonCounts), ...collisionErrors(counts, oldObject)]
    },
  },
  {
    group: 'apps',
    kind: 'ReplicaSet',
    plural: 'replicasets',
    shortNames: ['rs'],
    categories: ['all'],
    typeName: 'io.k8s.api.apps.v1.ReplicaSet',
    hasStatus: true,
    hasGeneration: true,
    scale: builtInScale,
    columns: [
      nameColumn,
      numberColumn(
        'Desired',
        'Replicas is the number of desired pods. This is a pointer to distinguish between explicit zero and unspecified. Defaults to 1. More info: https://kubernetes.io/docs/concepts/workloads/controllers/replicaset',
        'spec.replicas',
      ),
      numberColumn(
        'Current',
        'Replicas is the most recently observed number of non-terminating pods. More info: https://kubernetes.io/docs/concepts/workloads/controllers/replicaset',
        'status.replicas',
      ),
      numberColumn(
        'Ready',
        'The number of non-terminating pods targeted by this ReplicaSet with a Ready Condition.',
        'status.readyReplicas',
      ),
      ageColumn,
      ...containerColumns('spec.template'),
      column(
        'Selector',
        "Selector is a label query over pods that should match the replica count. Label keys and values that must match in order to be controlled by this replica set. It must match the pod template's labels. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors",
        object => selectorAt(object, 'spec.selector'),
        1,
      ),
    ],
    validate: validateSelectorUnchanged,
    warnings: (object, oldObject) => [...workloadNameWarnings(object, oldObject), ...templateWarnings('spec.template', object, oldObject)],
    validateStatusUpdate: ({ status }) => {
      const counts = (status ?? {}) as Fields
      return [
        ...negativeErrors(counts, 'status', replicaCounts),
        ...tooManyErrors(counts, ['fullyLabeledReplicas', 'readyReplicas', 'availableReplicas'], 'readyReplicas'),
      ]
    },
  },
  {
    group: 'apps',
    kind: 'ControllerRevision',
    plural: 'controllerrevisions',
    typeName: 'io.k8s.api.apps.v1.ControllerRevision',
    columns: [
      nameColumn,
      column('Controller', 'Controller of the object', ({ metadata }) => {
        const owner = metadata.ownerReferences?.find(({ controller }) => controller)
        if (!owner) return '<none>'
        const group = owner.apiVersion.includes('/') ? `.${owner.apiVersion.split('/')[0]}` : ''
        return `${owner.kind.toLowerCase()}${group}/${owner.name}`
      }),
      column('Revision', 'Revision indicates the revision of the state represented by Data.', object => numberAt(object, 'revision')),
      ageColumn,
    ],
    validate: ({ data, revision }, oldObject) => {
      const causes = negativeErrors({ revision }, '', ['revision']).map(cause => ({ ...cause, field: 'revision' }))
      if (oldObject) return equalJson(oldObject.data, data) ? causes : [...causes, invalidValue('data', data ?? null, 'field is immutable')]
      if (data === undefined || data === null) causes.push(requiredValue('data', 'data is mandatory'))
      else if (!isJsonObject(data)) causes.push(requiredValue('data', 'data must be a valid JSON object'))
      return causes
    },
  },
]

const collision = 'collisionCount'
const deploymentCounts = [
  'observedGeneration',
  'replicas',
  'updatedReplicas',
  'readyReplicas',
  'availableReplicas',
  'unavailableReplicas',
  'terminatingReplicas',
  collision,
]
const statefulCounts = [
  'replicas',
  'readyReplicas',
  'currentReplicas',
  'updatedReplicas',
  'availableReplicas',
  'observedGeneration',
  collision,
]
const daemonCounts = [
  'currentNumberScheduled',
  'numberMisscheduled',
  'desiredNumberScheduled',
  'numberReady',
  'observedGeneration',
  'updatedNumberScheduled',
  'numberAvailable',
  'numberUnavailable',
  collision,
]
const replicaCounts = [
  'replicas',
  'fullyLabeledReplicas',
  'readyReplicas',
  'availableReplicas',
  'observedGeneration',
  'terminatingReplicas',
]

function readyOfWanted(object: KubeObject): string {
  return `${numberAt(object, 'status.readyReplicas')}/${numberAt(object, 'spec.replicas')}`
}

function validateSelectorUnchanged({ spec }: KubeObject, oldObject: KubeObject | undefined): StatusCause[] {
  return oldObject ? selectorChangeErrors((spec ?? {}) as Fields, (oldObject.spec ?? {}) as Fields) : []
}

/** The fields of a StatefulSet that may be updated, as the message lists them. */
const updatableFields = [
  'replicas',
  'ordinals',
  'template',
  'updateStrategy',
  'revisionHistoryLimit',
  'persistentVolumeClaimRetentionPolicy',
  'minReadySeconds',
]

function validateStatefulSet({ spec }: KubeObject, oldObject: KubeObject | undefined): StatusCause[] {
  if (!oldObject) return []
  const withoutUpdatableFields = (value: unknown) =>
    Object.fromEntries(Object.entries((value ?? {}) as Fields).filter(([field]) => !updatableFields.includes(field)))
  if (equalJson(withoutUpdatableFields(spec), withoutUpdatableFields(oldObject.spec))) return []
  const reason =
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
  return [{ reason: 'FieldValueForbidden', message: `Forbidden: ${reason}`, field: 'spec' }]
}

const templateGeneration = 'deprecated.daemonset.template.generation'

/** Increments the template generation of a DaemonSet in the annotation that clients older than ControllerRevisions read. */
function updateTemplateGeneration(object: KubeObject, oldObject: KubeObject | undefined): void {
  const oldGeneration = oldObject ? Number(oldObject.metadata.annotations?.[templateGeneration] ?? 0) : 0
  const isSame = oldObject && equalJson(valueAtPath(object, 'spec.template'), valueAtPath(oldObject, 'spec.template'))
  object.metadata.annotations = { ...object.metadata.annotations, [templateGeneration]: String(isSame ? oldGeneration : oldGeneration + 1) }
}

/** A subset of the Pods must not be larger than their number. */
function tooManyErrors(counts: Fields, parts: readonly string[], ready: string): StatusCause[] {
  const causes = parts
    .filter(part => numberOf(counts[part]) > numberOf(counts.replicas))
    .map(part => invalidValue(`status.${part}`, numberOf(counts[part]), 'cannot be greater than status.replicas'))
  if (numberOf(counts.availableReplicas) > numberOf(counts.readyReplicas)) {
    causes.push(invalidValue('status.availableReplicas', numberOf(counts.availableReplicas), `cannot be greater than ${ready}`))
  }
  return causes
}

function collisionErrors(counts: Fields, oldObject: KubeObject | undefined): StatusCause[] {
  const oldCount = oldObject ? numberAt(oldObject, `status.${collision}`) : 0
  const count = numberOf(counts[collision])
  return count < oldCount ? [invalidValue(`status.${collision}`, count, 'cannot be decremented')] : []
}

function statefulSetWarnings(object: KubeObject, oldObject: KubeObject | undefined): string[] {
  const warnings = templateWarnings('spec.template', object, oldObject)
  // The message of Kubernetes for updates.
  const end = oldObject ? '.Spec' : ''
  itemsOf(valueAtPath(object, 'spec.volumeClaimTemplates')).forEach(({ spec }, i) => {
    warnings.push(...claimSpecWarnings(`spec.volumeClaimTemplates[${i}]${end}`, fieldsOf(spec)))
  })
  if (numberAt(object, 'spec.revisionHistoryLimit') < 0) {
    warnings.push('spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended')
  }
  return warnings
}
