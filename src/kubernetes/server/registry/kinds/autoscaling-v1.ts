import { isJsonObject, type KubeObject } from '../../../object/index.ts'
import type { Fields } from '../type-rules/index.ts'

// Fields of v2 that v1 lacks are kept in annotations, so that converting there and back loses nothing.
const metricsKey = 'autoscaling.alpha.kubernetes.io/metrics'
const currentKey = 'autoscaling.alpha.kubernetes.io/current-metrics'
const conditionsKey = 'autoscaling.alpha.kubernetes.io/conditions'
const behaviorKey = 'autoscaling.alpha.kubernetes.io/behavior'

/** The field of each metric type: `resource` for Resource and so on. */
const sources: Readonly<Record<string, string>> = {
  Resource: 'resource',
  ContainerResource: 'containerResource',
  Pods: 'pods',
  Object: 'object',
  External: 'external',
}
type Amounts = 'target' | 'current'

/** Converts a HorizontalPodAutoscaler from autoscaling/v2 to autoscaling/v1. */
export function autoscalerFromV2(storedJson: string): string {
  const { metadata, spec, status, ...rest } = JSON.parse(storedJson) as KubeObject
  const { metrics, behavior, ...plainSpec } = fields(spec)
  const { currentMetrics, conditions, ...plainStatus } = fields(status)
  const specMetrics = items(metrics)
  const cpu = specMetrics.find(isCpuUtilization)
  const current = items(currentMetrics)
  const currentCpu = current.find(({ type, resource }) => type === 'Resource' && fields(resource).name === 'cpu')
  const target = cpu && fields(fields(cpu.resource).target).averageUtilization
  const utilization = currentCpu && fields(fields(currentCpu.resource).current).averageUtilization
  const annotations = withoutOwn(metadata.annotations)
  const others = specMetrics.filter(metric => !isCpuUtilization(metric))
  if (conditions !== undefined) annotations[conditionsKey] = JSON.stringify(items(conditions).map(orderedCondition))
  if (current.length > 0) annotations[currentKey] = JSON.stringify(current.map(metric => metricToV1(metric, 'current')))
  if (others.length > 0) annotations[metricsKey] = JSON.stringify(others.map(metric => metricToV1(metric, 'target')))
  if (behavior !== undefined) annotations[behaviorKey] = JSON.stringify(goBehavior(fields(behavior)))
  return JSON.stringify({
    ...rest,
    apiVersion: 'autoscaling/v1',
    metadata: withAnnotations(metadata, annotations),
    spec: { ...plainSpec, ...(target !== undefined && { targetCPUUtilizationPercentage: target }) },
    status: { currentReplicas: 0, ...plainStatus, ...(utilization !== undefined && { currentCPUUtilizationPercentage: utilization }) },
  }).replace(/[\u0080-\uffff]/g, char => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** Converts a HorizontalPodAutoscaler from autoscaling/v1 to autoscaling/v2, which is stored. Invalid annotations are ignored. */
export function autoscalerToV2({ metadata, spec, status, ...rest }: KubeObject): KubeObject {
  const { targetCPUUtilizationPercentage: target, ...plainSpec } = fields(spec)
  const { currentCPUUtilizationPercentage: utilization, ...plainStatus } = fields(status)
  const annotations = metadata.annotations ?? {}
  const metrics = items(parseJson(annotations[metricsKey])).map(metric => metricToV2(metric, 'target'))
  if (target !== undefined) metrics.push(cpuMetric({ type: 'Utilization', averageUtilization: target }, 'target'))
  if (metrics.length === 0) metrics.push(cpuMetric({ type: 'Utilization', averageUtilization: 80 }, 'target'))
  const current = items(parseJson(annotations[currentKey])).map(metric => metricToV2(metric, 'current'))
  if (current.length === 0 && utilization !== undefined) current.push(cpuMetric({ averageUtilization: utilization }, 'current'))
  const conditions = parseJson(annotations[conditionsKey])
  const behavior = parseJson(annotations[behaviorKey])
  return {
    ...rest,
    apiVersion: 'autoscaling/v2',
    metadata: withAnnotations(metadata, withoutOwn(annotations)),
    spec: { ...plainSpec, metrics, ...(isJsonObject(behavior) && { behavior: fromGo(behavior) }) },
    status: {
      ...plainStatus,
      currentMetrics: current.length > 0 ? current : null,
      ...(Array.isArray(conditions) && { conditions }),
    },
  } as KubeObject
}

const fields = (value: unknown): Fields => (isJsonObject(value) ? value : {})
const items = (value: unknown): Fields[] => (Array.isArray(value) ? value.filter(isJsonObject) : [])

function isCpuUtilization({ type, resource }: Fields): boolean {
  const { name, target } = fields(resource)
  return type === 'Resource' && name === 'cpu' && fields(target).averageUtilization !== undefined
}

function cpuMetric(amounts: Fields, amountsField: Amounts): Fields {
  return { type: 'Resource', resource: { name: 'cpu', [amountsField]: amounts } }
}

function metricToV1(metric: Fields, amountsField: Amounts): Fields {
  const field = sources[String(metric.type)]
  return field === undefined
    ? { type: metric.type }
    : { type: metric.type, [field]: sourceToV1(fields(metric[field]), field, amountsField) }
}

function sourceToV1(source: Fields, field: string, amountsField: Amounts): Fields {
  const { value, averageValue, averageUtilization } = fields(source[amountsField])
  const { name, selector } = fields(source.metric)
  switch (field) {
    case 'resource':
    case 'containerResource':
      return {
        name: source.name,
        [`${amountsField}AverageUtilization`]: averageUtilization,
        [`${amountsField}AverageValue`]: averageValue,
        container: source.container,
      }
    case 'pods':
      return { metricName: name, [`${amountsField}AverageValue`]: averageValue, selector }
    case 'object':
      return { target: source.describedObject, metricName: name, [`${amountsField}Value`]: value ?? '0', selector, averageValue }
    default:
      return { metricName: name, metricSelector: selector, [`${amountsField}Value`]: value, [`${amountsField}AverageValue`]: averageValue }
  }
}

function metricToV2(metric: Fields, amountsField: Amounts): Fields {
  const field = sources[String(metric.type)]
  if (field === undefined) return { type: metric.type }
  const source = fields(metric[field])
  const amounts = definedFields({
    value: source.averageValue === undefined ? source[`${amountsField}Value`] : undefined,
    averageValue: field === 'object' ? source.averageValue : source[`${amountsField}AverageValue`],
    averageUtilization: source[`${amountsField}AverageUtilization`],
  })
  const type = amounts.averageUtilization !== undefined ? 'Utilization' : amounts.averageValue !== undefined ? 'AverageValue' : 'Value'
  const isOfResource = field === 'resource' || field === 'containerResource'
  const identity = isOfResource
    ? { name: source.name, container: source.container }
    : { metric: definedFields({ name: source.metricName, selector: source.selector ?? source.metricSelector }) }
  const describedObject = field === 'object' ? { describedObject: source.target } : {}
  return {
    type: metric.type,
    [field]: { ...definedFields(identity), ...describedObject, [amountsField]: amountsField === 'target' ? { type, ...amounts } : amounts },
  }
}

function definedFields(values: Fields): Fields {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined))
}

/** The fields of a condition in the order of Kubernetes' annotation. */
function orderedCondition({ type, status, lastTransitionTime, reason, message }: Fields): Fields {
  return definedFields({ type, status, lastTransitionTime: lastTransitionTime ?? null, reason, message })
}

/** The behavior annotation is a Go struct: Go's field names and order, null for missing fields. */
function goBehavior({ scaleUp, scaleDown }: Fields): Fields {
  return { ScaleUp: goRules(scaleUp), ScaleDown: goRules(scaleDown) }
}

function goRules(rules: unknown): Fields | null {
  if (!isJsonObject(rules)) return null
  const { stabilizationWindowSeconds = null, selectPolicy = null, policies, tolerance = null } = rules
  return {
    StabilizationWindowSeconds: stabilizationWindowSeconds,
    SelectPolicy: selectPolicy,
    Policies: items(policies).map(({ type, value, periodSeconds }) => ({ Type: type, Value: value, PeriodSeconds: periodSeconds })),
    Tolerance: tolerance,
  }
}

function fromGo(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(fromGo)
  if (!isJsonObject(value)) return value
  const entries = Object.entries(value).filter(([, child]) => child !== null)
  return Object.fromEntries(entries.map(([name, child]) => [name.charAt(0).toLowerCase() + name.slice(1), fromGo(child)]))
}

function withoutOwn(annotations: Record<string, string> = {}): Record<string, string> {
  const ownKeys = new Set([metricsKey, currentKey, conditionsKey, behaviorKey])
  return Object.fromEntries(Object.entries(annotations).filter(([key]) => !ownKeys.has(key)))
}

function withAnnotations({ annotations: _, ...metadata }: KubeObject['metadata'], annotations: Record<string, string>) {
  return { ...metadata, ...(Object.keys(annotations).length > 0 && { annotations }) }
}

function parseJson(json: string | undefined): unknown {
  try {
    return json === undefined ? undefined : JSON.parse(json)
  } catch {
    return undefined
  }
}
