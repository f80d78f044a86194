import {
  forbiddenField,
  invalidValue,
  isJsonObject,
  nameErrors,
  parseApiVersion,
  parseQuantity,
  requiredValue,
  type StatusCause,
  unsupportedValue,
} from '../../../object/index.ts'
import { numberOf } from './number-checks.ts'
import type { Fields, RuleTable } from './type-rules.ts'

const defaultMetrics = [{ type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 80 } } }]
const upPolicies = [
  { type: 'Pods', value: 4, periodSeconds: 15 },
  { type: 'Percent', value: 100, periodSeconds: 15 },
]
const downPolicies = [{ type: 'Percent', value: 100, periodSeconds: 15 }]

/** Rules of the types in autoscaling/v2, and the defaults of v1, which is otherwise validated as v2. */
export const autoscalingRules: RuleTable = {
  'autoscaling.v1.HorizontalPodAutoscalerSpec': { defaults: { minReplicas: 1 } },
  'autoscaling.v2.HorizontalPodAutoscalerSpec': {
    defaults: { minReplicas: 1, metrics: defaultMetrics },
    validate: (spec, { path }) => autoscalerErrors(spec, path),
  },
  'autoscaling.v2.HorizontalPodAutoscalerBehavior': {
    setDefaults: behavior => {
      behavior.scaleUp = withDefaults(behavior.scaleUp, { stabilizationWindowSeconds: 0, selectPolicy: 'Max', policies: upPolicies })
      behavior.scaleDown = withDefaults(behavior.scaleDown, { selectPolicy: 'Max', policies: downPolicies })
    },
  },
  'autoscaling.v2.CrossVersionObjectReference': { validate: (value, { path }) => referenceErrors(value, path) },
  'autoscaling.v2.MetricSpec': { validate: (value, { path }) => metricErrors(value, path) },
  'autoscaling.v2.HPAScalingRules': { uncheckedEnums: ['selectPolicy'], validate: (value, { path }) => ruleErrors(value, path) },
  'autoscaling.v2.HPAScalingPolicy': { uncheckedEnums: ['type'], validate: (value, { path }) => policyErrors(value, path) },
}

function withDefaults(rules: unknown, presets: Fields): Fields {
  return { ...presets, ...(isJsonObject(rules) ? rules : {}) }
}

function autoscalerErrors(spec: Fields, path: string): StatusCause[] {
  const causes: StatusCause[] = []
  const [min, max] = [numberOf(spec.minReplicas), numberOf(spec.maxReplicas)]
  const maxPath = `${path}.maxReplicas`
  if (min < 1) causes.push(invalidValue(`${path}.minReplicas`, min, 'must be greater than or equal to 1'))
  if (max === 0) causes.push(requiredValue(maxPath, 'must be set and greater than 0'))
  else if (max < 0) causes.push(invalidValue(maxPath, max, 'must be greater than or equal to 1'))
  if (max < min) causes.push(invalidValue(maxPath, max, 'must be greater than or equal to `minReplicas`'))
  const target = (spec.scaleTargetRef ?? {}) as Fields
  const version = String(target.apiVersion ?? '')
  if (!parseApiVersion(version).group) {
    causes.push(invalidValue(`${path}.scaleTargetRef.apiVersion`, version, 'apiVersion must specify API group'))
  }
  const types = ((spec.metrics ?? []) as Fields[]).map(({ type }) => type)
  if (min === 0 && !types.includes('Object') && !types.includes('External')) {
    const reason = 'must specify at least one Object or External metric to support scaling to zero replicas'
    causes.push(forbiddenField(`${path}.metrics`, reason))
  }
  return causes
}

function referenceErrors(reference: Fields, path: string): StatusCause[] {
  return ['kind', 'name'].flatMap(field => {
    const value = String(reference[field] ?? '')
    const fieldPath = `${path}.${field}`
    return value === ''
      ? [requiredValue(fieldPath)]
      : nameErrors(value, 'pathSegment').map(reason => invalidValue(fieldPath, value, reason))
  })
}

/** The field of each metric type, in the order in which Kubernetes validates them. */
const sources = { Object: 'object', External: 'external', Pods: 'pods', Resource: 'resource', ContainerResource: 'containerResource' }
const sourceTypes = Object.keys(sources).sort()

function metricErrors(metric: Fields, path: string): StatusCause[] {
  const type = String(metric.type ?? '')
  const expected = Object.hasOwn(sources, type) ? sources[type as keyof typeof sources] : undefined
  const causes: StatusCause[] = []
  if (type === '') causes.push(requiredValue(`${path}.type`, 'must specify a metric source type'))
  // Reported twice, as in Kubernetes.
  if (!expected) {
    const cause = unsupportedValue(`${path}.type`, type, sourceTypes)
    causes.push(cause, cause)
  }
  const present = Object.values(sources).filter(field => isJsonObject(metric[field]))
  const [first] = present
  if (first) causes.push(...sourceErrors(first, metric[first] as Fields, `${path}.${first}`))
  if (expected && !present.includes(expected)) {
    causes.push(requiredValue(`${path}.${expected}`, 'must populate information for the given metric source'))
  }
  if (present.length > 1) {
    for (const field of present) {
      if (field !== expected) causes.push(forbiddenField(`${path}.${field}`, 'must populate the given metric source only'))
    }
  }
  return causes
}

function sourceErrors(field: string, source: Fields, path: string): StatusCause[] {
  const target = (source.target ?? {}) as Fields
  const causes = targetErrors(target, `${path}.target`)
  const { value, averageValue, averageUtilization } = target
  const requireTarget = (targetField: string, reason: string) => causes.push(requiredValue(`${path}.target.${targetField}`, reason))
  if (field === 'resource' || field === 'containerResource') {
    if (!source.name) causes.push(requiredValue(`${path}.name`, 'must specify a resource name'))
    if (field === 'containerResource') {
      const container = String(source.container ?? '')
      if (container === '') causes.push(requiredValue(`${path}.container`, 'must specify a container'))
      else for (const reason of nameErrors(container, 'dns1123Label')) causes.push(invalidValue(`${path}.container`, container, reason))
    }
    if (averageUtilization === undefined && averageValue === undefined) {
      requireTarget('averageUtilization', 'must set either a target raw value or a target utilization')
    }
    if (averageUtilization !== undefined && averageValue !== undefined) {
      causes.push(forbiddenField(`${path}.target.averageValue`, 'may not set both a target raw value and a target utilization'))
    }
    return causes
  }
  const name = String((source.metric as Fields | undefined)?.name ?? '')
  if (name === '') causes.push(requiredValue(`${path}.metric.name`, 'must specify a metric name'))
  else for (const reason of nameErrors(name, 'pathSegment')) causes.push(invalidValue(`${path}.metric.name`, name, reason))
  if (field === 'pods') {
    if (averageValue === undefined) requireTarget('averageValue', 'must specify a positive target averageValue')
    return causes
  }
  if (value === undefined && averageValue === undefined) {
    const reason =
      field === 'object'
        ? 'must set either a target value or averageValue'
        : 'must set either a target value for metric or a per-pod target'
    requireTarget('averageValue', reason)
  }
  if (field === 'external' && value !== undefined && averageValue !== undefined) {
    causes.push(forbiddenField(`${path}.target.value`, 'may not set both a target value for metric and a per-pod target'))
  }
  return causes
}

function targetErrors(target: Fields, path: string): StatusCause[] {
  const causes: StatusCause[] = []
  const { type = '', averageUtilization } = target
  if (type === '') causes.push(requiredValue(`${path}.type`, 'must specify a metric target type'))
  if (type !== 'Utilization' && type !== 'Value' && type !== 'AverageValue') {
    causes.push(invalidValue(`${path}.type`, type, 'must be either Utilization, Value, or AverageValue'))
  }
  for (const field of ['value', 'averageValue']) {
    const amount = target[field]
    if (typeof amount === 'string' && parseQuantity(amount).nanos <= 0n)
      causes.push(invalidValue(`${path}.${field}`, amount, 'must be positive'))
  }
  if (typeof averageUtilization === 'number' && averageUtilization < 1) {
    causes.push(invalidValue(`${path}.averageUtilization`, averageUtilization, 'must be greater than 0'))
  }
  return causes
}

const maxStabilizationSeconds = 3_600
const maxPeriodSeconds = 1_800

function ruleErrors({ stabilizationWindowSeconds: window, selectPolicy, policies }: Fields, path: string): StatusCause[] {
  const causes: StatusCause[] = []
  const windowPath = `${path}.stabilizationWindowSeconds`
  if (numberOf(window) < 0) causes.push(invalidValue(windowPath, window, 'must be greater than or equal to zero'))
  if (numberOf(window) > maxStabilizationSeconds)
    causes.push(invalidValue(windowPath, window, `must be less than or equal to ${maxStabilizationSeconds}`))
  const allowed = ['Disabled', 'Max', 'Min']
  if (selectPolicy !== undefined && !allowed.includes(String(selectPolicy))) {
    causes.push(unsupportedValue(`${path}.selectPolicy`, selectPolicy, allowed))
  }
  if (!Array.isArray(policies) || policies.length === 0) causes.push(requiredValue(`${path}.policies`, 'must specify at least one Policy'))
  return causes
}

function policyErrors({ type, value, periodSeconds }: Fields, path: string): StatusCause[] {
  const causes: StatusCause[] = []
  const [amount, period] = [numberOf(value), numberOf(periodSeconds)]
  if (type !== 'Pods' && type !== 'Percent') causes.push(unsupportedValue(`${path}.type`, type ?? '', ['Percent', 'Pods']))
  if (amount <= 0) causes.push(invalidValue(`${path}.value`, amount, 'must be greater than zero'))
  if (period <= 0) causes.push(invalidValue(`${path}.periodSeconds`, period, 'must be greater than zero'))
  if (period > maxPeriodSeconds)
    causes.push(invalidValue(`${path}.periodSeconds`, period, `must be less than or equal to ${maxPeriodSeconds}`))
  return causes
}
