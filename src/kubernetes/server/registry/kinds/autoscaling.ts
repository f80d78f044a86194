import type { KubeObject, StatusCause } from '../../../object/index.ts'
import type { PrinterColumn } from '../printer-columns.ts'
import { ageColumn, column, nameColumn } from '../printer-columns.ts'
import { typeSchema } from '../schemas/index.ts'
import { type Fields, negativeErrors, ruleErrors } from '../type-rules/index.ts'
import { autoscalerFromV2, autoscalerToV2 } from './autoscaling-v1.ts'
import { numberAt, textAt, valueAtPath } from './column-values.ts'
import type { KindDeclaration } from './kind-declaration.ts'

const columns: readonly PrinterColumn[] = [
  nameColumn,
  column(
    'Reference',
    'scaleTargetRef points to the target resource to scale, and is used to the pods for which metrics should be collected, as well as to actually change the replica count.',
    object => `${textAt(object, 'spec.scaleTargetRef.kind', '')}/${textAt(object, 'spec.scaleTargetRef.name', '')}`,
  ),
  column(
    'Targets',
    'metrics contains the specifications for which to use to calculate the desired replica count (the maximum replica count across all metrics will be used).  The desired replica count is calculated multiplying the ratio between the target value and the current value by the current number of pods.  Ergo, metrics used must decrease as the pod count is increased, and vice-versa.  See the individual metric source types for more information about how each type of metric must respond. If not set, the default metric will be set to 80% average CPU utilization.',
    formatMetrics,
  ),
  column(
    'MinPods',
    'minReplicas is the lower limit for the number of replicas to which the autoscaler can scale down.  It defaults to 1 pod.  minReplicas is allowed to be 0 if the alpha feature gate HPAScaleToZero is enabled and at least one Object or External metric is configured.  Scaling is active as long as at least one metric value is available.',
    object => textAt(object, 'spec.minReplicas', '<unset>'),
  ),
  column(
    'MaxPods',
    'maxReplicas is the upper limit for the number of replicas to which the autoscaler can scale up. It cannot be less that minReplicas.',
    object => numberAt(object, 'spec.maxReplicas'),
  ),
  column(
    'Replicas',
    'currentReplicas is current number of replicas of pods managed by this autoscaler, as last seen by the autoscaler.',
    object => numberAt(object, 'status.currentReplicas'),
  ),
  ageColumn,
]

export const autoscalingKinds: readonly KindDeclaration[] = [
  {
    group: 'autoscaling',
    version: 'v2',
    kind: 'HorizontalPodAutoscaler',
    plural: 'horizontalpodautoscalers',
    shortNames: ['hpa'],
    categories: ['all'],
    typeName: 'io.k8s.api.autoscaling.v2.HorizontalPodAutoscaler',
    hasStatus: true,
    columns,
    validateStatusUpdate: validateCounts,
  },
  {
    group: 'autoscaling',
    version: 'v1',
    kind: 'HorizontalPodAutoscaler',
    plural: 'horizontalpodautoscalers',
    shortNames: ['hpa'],
    categories: ['all'],
    typeName: 'io.k8s.api.autoscaling.v1.HorizontalPodAutoscaler',
    hasStatus: true,
    // Columns read the stored version, v2.
    columns,
    validate: object => ruleErrors(typeSchema('io.k8s.api.autoscaling.v2.HorizontalPodAutoscaler'), autoscalerToV2(object), undefined),
    validateStatusUpdate: validateCounts,
    fromStorage: autoscalerFromV2,
    toStorage: autoscalerToV2,
  },
]

function validateCounts({ status }: KubeObject): StatusCause[] {
  return negativeErrors((status ?? {}) as Fields, 'status', ['currentReplicas', 'desiredReplicas'])
}

type Amounts = { value?: string; averageValue?: string; averageUtilization?: number }
type Source = { name?: string; target?: Amounts; current?: Amounts }
type Metric = { type?: string; resource?: Source; containerResource?: Source; pods?: Source; object?: Source; external?: Source }

const maxMetrics = 2

/** `cpu: 40%/80%, 3/5 (avg) + 1 more...`: the current and target value of each metric. */
function formatMetrics(scaler: KubeObject): string {
  const metrics = (valueAtPath(scaler, 'spec.metrics') ?? []) as Metric[]
  const statuses = (valueAtPath(scaler, 'status.currentMetrics') ?? []) as Metric[]
  if (metrics.length === 0) return '<none>'
  const texts = metrics.slice(0, maxMetrics).map((metric, index) => formatMetric(metric, statuses[index]))
  return texts.join(', ') + (metrics.length > maxMetrics ? ` + ${metrics.length - maxMetrics} more...` : '')
}

function formatMetric(metric: Metric, status: Metric | undefined): string {
  switch (metric.type) {
    case 'External':
      return formatAmounts(metric.external, status?.external)
    case 'Object':
      return formatAmounts(metric.object, status?.object)
    case 'Pods':
      return `${status?.pods?.current?.averageValue ?? '<unknown>'}/${metric.pods?.target?.averageValue ?? '0'}`
    case 'Resource':
      return formatResource(metric.resource, status?.resource)
    case 'ContainerResource':
      return formatResource(metric.containerResource, status?.containerResource)
    default:
      return '<unknown type>'
  }
}

function formatAmounts(source: Source | undefined, status: Source | undefined): string {
  const { averageValue, value = '0' } = source?.target ?? {}
  if (averageValue !== undefined) return `${status?.current?.averageValue ?? '<unknown>'}/${averageValue} (avg)`
  return `${status ? (status.current?.value ?? '0') : '<unknown>'}/${value}`
}

function formatResource(source: Source | undefined, status: Source | undefined): string {
  const { averageValue, averageUtilization } = source?.target ?? {}
  const name = source?.name ?? ''
  if (averageValue !== undefined) return `${name}: ${status ? (status.current?.averageValue ?? '0') : '<unknown>'}/${averageValue}`
  const current = status?.current?.averageUtilization
  return `${name}: ${current === undefined ? '<unknown>' : `${current}%`}/${averageUtilization === undefined ? '<auto>' : `${averageUtilization}%`}`
}
