import {
  equalJson,
  forbiddenField,
  invalidValue,
  type KubeObject,
  parseQuantity,
  requiredValue,
  type StatusCause,
} from '../../../object/index.ts'
import { applyLimitRangeDefaults, forbiddenError, validatePodLimits } from '../admission/index.ts'
import type { ObjectReader } from '../object-reader.ts'
import { ageColumn, column, nameColumn } from '../printer-columns.ts'
import { plainSelectorScale } from '../scale.ts'
import { type Fields, fieldsOf, intOf, itemsOf, textOf } from '../type-rules/index.ts'
import { podWarnings, templateWarnings, workloadNameWarnings } from '../warnings/index.ts'
import type { KindDeclaration } from './kind-declaration.ts'
import { podColumns } from './pod-columns.ts'

export const podKinds: readonly KindDeclaration[] = [
  {
    kind: 'Pod',
    plural: 'pods',
    shortNames: ['po'],
    categories: ['all'],
    typeName: 'io.k8s.api.core.v1.Pod',
    hasStatus: true,
    hasGeneration: true,
    columns: podColumns,
    selectableFields: [
      ...['nodeName', 'restartPolicy', 'schedulerName', 'serviceAccountName'].map(name => ({
        field: `spec.${name}`,
        read: ({ spec }: KubeObject) => textOf(fieldsOf(spec)[name]),
      })),
      { field: 'spec.hostNetwork', read: ({ spec }) => String(fieldsOf(spec).hostNetwork === true) },
      ...['phase', 'podIP', 'nominatedNodeName'].map(name => ({
        field: `status.${name}`,
        read: ({ status }: KubeObject) => textOf(fieldsOf(status)[name]),
      })),
    ],
    prepareForWrite: preparePod,
    prepareForCreate: (pod, reader) => {
      const spec = applyLimitRangeDefaults(pod, fieldsOf(pod.spec), reader)
      pod.spec = withPriority(pod, withAdmissionDefaults(spec), reader)
      // No kubelet runs the Pod: its phase is Pending.
      pod.status = { phase: 'Pending', qosClass: qosClass(fieldsOf(pod.spec)) }
    },
    validateAdmission: (pod, oldObject, reader) => {
      if (!oldObject) validatePodLimits(pod, reader)
    },
    validate: validatePod,
    warnings: podWarnings,
    gracePeriodSeconds: podGraceSeconds,
    returnDeletedObject: true,
  },
  {
    kind: 'PodTemplate',
    plural: 'podtemplates',
    returnDeletedObject: true,
    typeName: 'io.k8s.api.core.v1.PodTemplate',
    warnings: (object, oldObject) => templateWarnings('template', object, oldObject),
    hasGeneration: true,
    columns: [
      nameColumn,
      column('Containers', 'Names of each container in the template.', ({ template }) => containerTexts(template, 'name')),
      column('Images', 'Images referenced by each container in the template.', ({ template }) => containerTexts(template, 'image')),
      column('Pod Labels', 'The labels for the pod template.', ({ template }) => labelText(fieldsOf(fieldsOf(template).metadata).labels)),
    ],
  },
  {
    kind: 'ReplicationController',
    plural: 'replicationcontrollers',
    shortNames: ['rc'],
    categories: ['all'],
    typeName: 'io.k8s.api.core.v1.ReplicationController',
    hasStatus: true,
    hasGeneration: true,
    scale: plainSelectorScale,
    zeroValue: { spec: { minReadySeconds: 0 }, status: { replicas: 0 } },
    columns: [
      nameColumn,
      count(
        'Desired',
        'Replicas is the number of desired replicas. This is a pointer to distinguish between explicit zero and unspecified. Defaults to 1. More info: https://kubernetes.io/docs/concepts/workloads/controllers/replicationcontroller#what-is-a-replicationcontroller',
        ({ spec }) => fieldsOf(spec).replicas,
      ),
      count(
        'Current',
        'Replicas is the most recently observed number of replicas. More info: https://kubernetes.io/docs/concepts/workloads/controllers/replicationcontroller#what-is-a-replicationcontroller',
        ({ status }) => fieldsOf(status).replicas,
      ),
      count('Ready', 'The number of ready replicas for this replication controller.', ({ status }) => fieldsOf(status).readyReplicas),
      ageColumn,
      column('Containers', 'Names of each container in the template.', ({ spec }) => containerTexts(fieldsOf(spec).template, 'name'), 1),
      column(
        'Images',
        'Images referenced by each container in the template.',
        ({ spec }) => containerTexts(fieldsOf(spec).template, 'image'),
        1,
      ),
      column(
        'Selector',
        'Selector is a label query over pods that should match the Replicas count. If Selector is empty, it is defaulted to the labels present on the Pod template. Label keys and values that must match in order to be controlled by this replication controller, if empty defaulted to labels on Pod template. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors',
        ({ spec }) => labelText(fieldsOf(spec).selector),
        1,
      ),
    ],
    prepareForWrite: controller => {
      const spec = fieldsOf(controller.spec)
      const { labels } = fieldsOf(fieldsOf(spec.template).metadata)
      if (labels === undefined) return
      if (spec.selector === undefined) controller.spec = { ...spec, selector: labels }
      controller.metadata.labels ??= labels as Record<string, string>
    },
    validate: validateReplicationController,
    warnings: (object, oldObject) => [...workloadNameWarnings(object, oldObject), ...templateWarnings('spec.template', object, oldObject)],
  },
]

function count(name: string, description: string, read: (object: KubeObject) => unknown) {
  return { ...column(name, description, object => intOf(read(object))), type: 'integer' as const }
}

/** `a,b` for the containers of a Pod template. */
function containerTexts(template: unknown, field: 'name' | 'image'): string {
  return itemsOf(fieldsOf(fieldsOf(template).spec).containers)
    .map(container => textOf(container[field]))
    .join(',')
}

/** `a=b,c=d`, or `<none>`. */
export function labelText(labels: unknown): string {
  const pairs = Object.entries(fieldsOf(labels)).map(([key, value]) => `${key}=${value}`)
  return pairs.sort().join(',') || '<none>'
}

function preparePod(pod: KubeObject, oldPod: KubeObject | undefined): void {
  const spec = { ...fieldsOf(pod.spec) }
  for (const field of ['containers', 'initContainers']) {
    if (Array.isArray(spec[field]))
      spec[field] = itemsOf(spec[field]).map(container => withContainerDefaults(container, spec.hostNetwork === true))
  }
  spec.enableServiceLinks ??= true
  pod.spec = oldPod ? withAdmissionDefaults(spec, fieldsOf(oldPod.spec)) : spec
}

/**
 * The defaults of a container in a Pod, which a template does not get: requests default to limits, and with host network each port is a
 * host port.
 */
function withContainerDefaults(container: Fields, isOnHost: boolean): Fields {
  const result = { ...container }
  const { limits, requests, ...resources } = fieldsOf(container.resources)
  if (limits !== undefined) result.resources = { ...resources, limits, requests: { ...fieldsOf(limits), ...fieldsOf(requests) } }
  if (isOnHost && container.ports !== undefined) {
    result.ports = itemsOf(container.ports).map(port => ({ ...port, hostPort: port.hostPort ?? port.containerPort }))
  }
  return result
}

const qosResources = ['cpu', 'memory'] as const

/** https://kubernetes.io/docs/concepts/workloads/pods/pod-qos/ */
function qosClass(spec: Fields): string {
  const containers = [...itemsOf(spec.containers), ...itemsOf(spec.initContainers)].map(({ resources }) => fieldsOf(resources))
  const amount = (amounts: unknown, name: string): string => {
    const quantity = textOf(fieldsOf(amounts)[name])
    return quantity !== '' && parseQuantity(quantity).nanos > 0n ? quantity : ''
  }
  let isGuaranteed = true
  let isBestEffort = true
  for (const { limits, requests } of containers) {
    for (const name of qosResources) {
      const [limit, request] = [amount(limits, name), amount(requests, name)]
      if (limit !== '' || request !== '') isBestEffort = false
      if (limit === '' || limit !== request) isGuaranteed = false
    }
  }
  return isBestEffort ? 'BestEffort' : isGuaranteed ? 'Guaranteed' : 'Burstable'
}

/** How long a Pod tolerates a node that is not ready or unreachable, as in Kubernetes: five minutes. */
const nodeTolerations = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable'].map(key => ({
  key,
  operator: 'Exists',
  effect: 'NoExecute',
  tolerationSeconds: 300,
}))

/** Sets what Kubernetes' admission plugins set in the spec of a Pod: default tolerations and the priority. */
function withAdmissionDefaults(spec: Fields, oldSpec?: Fields): Fields {
  const tolerations = itemsOf(spec.tolerations)
  const result: Fields = { ...spec }
  // A toleration of every taint makes the others redundant.
  const missing = tolerations.some(toleratesEverything)
    ? []
    : nodeTolerations.filter(({ key }) => !tolerations.some(toleration => toleratesTaint(toleration, key)))
  if (missing.length > 0) result.tolerations = [...tolerations, ...missing]
  if (oldSpec?.priority !== undefined) result.priority = oldSpec.priority
  if (oldSpec?.preemptionPolicy !== undefined) result.preemptionPolicy = oldSpec.preemptionPolicy
  return result
}

/** @throws {StatusError} Forbidden for a PriorityClass that does not exist. */
function withPriority(pod: KubeObject, spec: Fields, reader: ObjectReader): Fields {
  const name = textOf(spec.priorityClassName)
  let found: KubeObject | undefined
  if (name !== '') {
    found = reader.get(priorityClasses, name)
    if (!found) throw forbiddenError({ group: '', plural: 'pods' }, pod.metadata.name, `no PriorityClass with name ${name} was found`)
  } else for (const priorityClass of reader.all(priorityClasses)) if (priorityClass.globalDefault === true) found = priorityClass
  const { value, preemptionPolicy = 'PreemptLowerPriority' } = fieldsOf(found)
  return { ...spec, ...(found && { priorityClassName: found.metadata.name }), priority: intOf(value), preemptionPolicy }
}

const priorityClasses = 'priorityclasses.scheduling.k8s.io'

const toleratesTaint = ({ key, effect }: Fields, taint: string) =>
  (textOf(key) === '' || key === taint) && (textOf(effect) === '' || effect === 'NoExecute')

const toleratesEverything = ({ key, operator, effect }: Fields) => textOf(key) === '' && operator === 'Exists' && textOf(effect) === ''

/** The grace period of a Pod: 0 without a node, as no kubelet would use it. */
function podGraceSeconds({ spec, status, metadata }: KubeObject, desired: number | undefined): number {
  const { nodeName, terminationGracePeriodSeconds } = fieldsOf(spec)
  const { phase } = fieldsOf(status)
  if (textOf(nodeName) === '' || phase === 'Failed' || phase === 'Succeeded') return 0
  const seconds = desired ?? metadata.deletionGracePeriodSeconds ?? intOf(terminationGracePeriodSeconds)
  return seconds < 0 ? 1 : seconds
}

function validatePod(pod: KubeObject, oldPod: KubeObject | undefined): StatusCause[] {
  if (oldPod) return updateErrors(pod, oldPod)
  const { ephemeralContainers } = fieldsOf(pod.spec)
  return ephemeralContainers === undefined ? [] : [forbiddenField('spec.ephemeralContainers', 'cannot be set on create')]
}

const updatableFieldsText =
  '`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)'

function updateErrors(pod: KubeObject, oldPod: KubeObject): StatusCause[] {
  const [spec, oldSpec] = [fieldsOf(pod.spec), fieldsOf(oldPod.spec)]
  const causes: StatusCause[] = []
  if (fieldsOf(pod.status).qosClass !== fieldsOf(oldPod.status).qosClass) {
    causes.push(invalidValue('status.qosClass', fieldsOf(pod.status).qosClass ?? '', 'field is immutable'))
  }
  if (equalJson(spec, oldSpec)) return causes
  for (const field of ['containers', 'initContainers']) {
    const [containers, oldContainers] = [itemsOf(spec[field]), itemsOf(oldSpec[field])]
    if (containers.length !== oldContainers.length) {
      causes.push(forbiddenField(`spec.${field}`, 'pod updates may not add or remove containers'))
      return causes
    }
    // Kubernetes reports this twice, for containers and for updates.
    containers.forEach(({ image }, index) => {
      if (textOf(image) === '') causes.push(requiredValue(`spec.${field}[${index}].image`))
    })
  }
  causes.push(...deadlineErrors(spec.activeDeadlineSeconds, oldSpec.activeDeadlineSeconds))
  const tolerations = itemsOf(spec.tolerations)
  const areTolerationsKept = itemsOf(oldSpec.tolerations).every(oldToleration =>
    tolerations.some(toleration => isSameToleration(toleration, oldToleration)),
  )
  if (!areTolerationsKept)
    causes.push(forbiddenField('spec.tolerations', 'existing toleration can not be modified except its tolerationSeconds'))
  if (!equalJson(withUpdatableFieldsOf(spec, oldSpec), oldSpec)) {
    // Kubernetes adds what differs; it may hold secrets.
    causes.push(forbiddenField('spec', `pod updates may not change fields other than ${updatableFieldsText}`))
  }
  return causes
}

function deadlineErrors(value: unknown, oldValue: unknown): StatusCause[] {
  const path = 'spec.activeDeadlineSeconds'
  if (value === oldValue || oldValue === undefined) return []
  if (value === undefined) return [invalidValue(path, null, 'must not update from a positive integer to nil value')]
  if (intOf(value) < 0) return [invalidValue(path, value, 'must be greater than or equal to 0')]
  const reason = 'must be less than or equal to previous value'
  return intOf(value) > intOf(oldValue) ? [invalidValue(path, value, reason)] : []
}

function isSameToleration(a: Fields, b: Fields): boolean {
  const { tolerationSeconds: _, ...remaining } = a
  const { tolerationSeconds: __, ...otherRemaining } = b
  return equalJson(remaining, otherRemaining)
}

/** Returns `spec` with the updatable fields of `oldSpec`, so that the rest can be compared. */
function withUpdatableFieldsOf(spec: Fields, oldSpec: Fields): Fields {
  const result: Fields = { ...spec }
  for (const field of ['containers', 'initContainers']) {
    if (spec[field] === undefined) continue
    const oldContainers = itemsOf(oldSpec[field])
    result[field] = itemsOf(spec[field]).map((container, index) => ({ ...container, image: oldContainers[index]?.image }))
  }
  for (const field of ['activeDeadlineSeconds', 'tolerations', 'schedulingGates']) {
    if (oldSpec[field] === undefined) delete result[field]
    else result[field] = oldSpec[field]
  }
  if (intOf(oldSpec.terminationGracePeriodSeconds) < 0 && spec.terminationGracePeriodSeconds === 1) {
    result.terminationGracePeriodSeconds = oldSpec.terminationGracePeriodSeconds
  }
  return result
}

function validateReplicationController({ spec }: KubeObject): StatusCause[] {
  const { replicas, minReadySeconds, selector, template } = fieldsOf(spec)
  const causes: StatusCause[] = []
  if (intOf(replicas) < 0) causes.push(invalidValue('spec.replicas', replicas, 'must be greater than or equal to 0'))
  if (intOf(minReadySeconds) < 0) causes.push(invalidValue('spec.minReadySeconds', minReadySeconds, 'must be greater than or equal to 0'))
  if (Object.keys(fieldsOf(selector)).length === 0) causes.push(requiredValue('spec.selector'))
  if (template === undefined) return [...causes, requiredValue('spec.template')]
  const labels = fieldsOf(fieldsOf(fieldsOf(template).metadata).labels)
  if (Object.entries(fieldsOf(selector)).some(([key, value]) => labels[key] !== value)) {
    causes.push(invalidValue('spec.template.metadata.labels', labels, '`selector` does not match template `labels`'))
  }
  const { restartPolicy } = fieldsOf(fieldsOf(template).spec)
  if (restartPolicy !== 'Always') {
    const cause = { reason: 'FieldValueNotSupported', field: 'spec.template.spec.restartPolicy' } as const
    causes.push({ ...cause, message: `Unsupported value: ${JSON.stringify(restartPolicy)}: supported values: "Always"` })
  }
  return causes
}

/** The request body of the subresource `binding` of a Pod. */
export const bindingDeclaration: KindDeclaration & { typeName: string } = {
  ...{ kind: 'Binding', plural: 'bindings', typeName: 'io.k8s.api.core.v1.Binding' },
}
