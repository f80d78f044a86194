import {
  compareQuantities,
  formatQuantity,
  type KubeObject,
  parseQuantity,
  type Quantity,
  quantityMillis,
  quantityValue,
} from '../../../object/index.ts'
import type { ObjectReader } from '../object-reader.ts'
import { type Fields, fieldsOf, itemsOf, textOf } from '../type-rules/index.ts'
import { forbiddenError } from './forbidden-error.ts'
import { type Amounts, amountsOf, podLimits, podRequests } from './pod-resources.ts'

// https://kubernetes.io/docs/concepts/policy/limit-range/

function limitsIn(namespace: string, reader: ObjectReader): Fields[] {
  return [...reader.inNamespace('limitranges', namespace)].flatMap(({ spec }) => itemsOf(fieldsOf(spec).limits))
}

const reportAnnotation = 'kubernetes.io/limit-ranger'
const containerLists = [
  ['containers', 'container'],
  ['initContainers', 'init container'],
] as const

/** The `spec` of a new Pod with the container defaults of the LimitRanges in its namespace. An annotation of `pod` records them. */
export function applyLimitRangeDefaults(pod: KubeObject, spec: Fields, reader: ObjectReader): Fields {
  const containerLimits = limitsIn(pod.metadata.namespace ?? '', reader).filter(({ type }) => type === 'Container')
  if (containerLimits.length === 0) return spec
  const requests = Object.assign({}, ...containerLimits.map(limit => fieldsOf(limit.defaultRequest))) as Fields
  const limits = Object.assign({}, ...containerLimits.map(limit => fieldsOf(limit.default))) as Fields
  const applied: string[] = []
  const result: Fields = { ...spec }
  for (const [listField, containerKind] of containerLists) {
    if (!Array.isArray(spec[listField])) continue
    result[listField] = itemsOf(spec[listField]).map(container => {
      const resources: Fields = { ...fieldsOf(container.resources) }
      for (const [field, defaults, amountName] of [
        ['requests', requests, 'request'],
        ['limits', limits, 'limit'],
      ] as const) {
        const provided = fieldsOf(resources[field])
        const missing = Object.keys(defaults)
          .filter(name => !Object.hasOwn(provided, name))
          .sort()
        if (missing.length === 0) continue
        resources[field] = { ...provided, ...Object.fromEntries(missing.map(name => [name, defaults[name]])) }
        applied.push(`${missing.join(', ')} ${amountName} for ${containerKind} ${textOf(container.name)}`)
      }
      return { ...container, resources }
    })
  }
  if (applied.length > 0)
    pod.metadata.annotations = { ...pod.metadata.annotations, [reportAnnotation]: `LimitRanger plugin set: ${applied.join('; ')}` }
  return result
}

/** @throws {StatusError} Forbidden for a Pod outside the bounds of its namespace. */
export function validatePodLimits(pod: KubeObject, reader: ObjectReader): void {
  const spec = fieldsOf(pod.spec)
  rejectIfAny(
    'pods',
    pod,
    limitsIn(pod.metadata.namespace ?? '', reader).flatMap(limit => {
      if (limit.type === 'Pod') return boundErrors(limit, podRequests(spec), podLimits(spec))
      if (limit.type !== 'Container') return []
      return containerLists.flatMap(([list]) =>
        itemsOf(spec[list]).flatMap(({ resources }) => {
          const { requests, limits } = fieldsOf(resources)
          return boundErrors(limit, amountsOf(requests), amountsOf(limits))
        }),
      )
    }),
  )
}

/** @throws {StatusError} Forbidden for a claim outside the bounds of its namespace. */
export function validateClaimLimits(claim: KubeObject, reader: ObjectReader): void {
  const requests = amountsOf(fieldsOf(fieldsOf(claim.spec).resources).requests)
  const errors = limitsIn(claim.metadata.namespace ?? '', reader)
    .filter(({ type }) => type === 'PersistentVolumeClaim')
    .flatMap(limit => [
      ...eachBound(limit, 'min', (name, bound) => minErrors(limit, name, bound, requests, new Map())),
      ...eachBound(limit, 'max', (name, bound) => maxRequestErrors(limit, name, bound, requests)),
    ])
  rejectIfAny('persistentvolumeclaims', claim, errors)
}

function rejectIfAny(plural: string, { metadata }: KubeObject, errors: readonly string[]): void {
  const [first, ...more] = new Set(errors)
  if (first === undefined) return
  throw forbiddenError({ group: '', plural }, metadata.name, more.length === 0 ? first : `[${[first, ...more].join(', ')}]`)
}

function boundErrors(limit: Fields, requests: Amounts, limits: Amounts): string[] {
  return [
    ...eachBound(limit, 'min', (name, bound) => minErrors(limit, name, bound, requests, limits)),
    ...eachBound(limit, 'max', (name, bound) => maxErrors(limit, name, bound, requests, limits)),
    ...eachBound(limit, 'maxLimitRequestRatio', (name, bound) => ratioErrors(limit, name, bound, requests, limits)),
  ]
}

function eachBound(limit: Fields, field: string, check: (name: string, bound: Quantity) => string[]): string[] {
  return Object.entries(fieldsOf(limit[field])).flatMap(([name, bound]) => check(name, parseQuantity(textOf(bound))))
}

function minErrors(limit: Fields, name: string, bound: Quantity, requests: Amounts, limits: Amounts): string[] {
  const rule = `minimum ${name} usage per ${limit.type} is ${formatQuantity(bound)}`
  const [request, limitAmount] = [requests.get(name), limits.get(name)]
  if (!request) return [`${rule}.  No request is specified`]
  if (compareQuantities(request, bound) < 0) return [`${rule}, but request is ${formatQuantity(request)}`]
  return limitAmount && compareQuantities(limitAmount, bound) < 0 ? [`${rule}, but limit is ${formatQuantity(limitAmount)}`] : []
}

function maxErrors(limit: Fields, name: string, bound: Quantity, requests: Amounts, limits: Amounts): string[] {
  const rule = `maximum ${name} usage per ${limit.type} is ${formatQuantity(bound)}`
  const [request, limitAmount] = [requests.get(name), limits.get(name)]
  if (!limitAmount) return [`${rule}.  No limit is specified`]
  if (compareQuantities(limitAmount, bound) > 0) return [`${rule}, but limit is ${formatQuantity(limitAmount)}`]
  return request && compareQuantities(request, bound) > 0 ? [`${rule}, but request is ${formatQuantity(request)}`] : []
}

function maxRequestErrors(limit: Fields, name: string, bound: Quantity, requests: Amounts): string[] {
  const rule = `maximum ${name} usage per ${limit.type} is ${formatQuantity(bound)}`
  const request = requests.get(name)
  if (!request) return [`${rule}.  No request is specified`]
  return compareQuantities(request, bound) > 0 ? [`${rule}, but request is ${formatQuantity(request)}`] : []
}

function ratioErrors(limit: Fields, name: string, bound: Quantity, requests: Amounts, limits: Amounts): string[] {
  const rule = `${name} max limit to request ratio per ${limit.type} is ${formatQuantity(bound)}`
  const [request, limitAmount] = [requests.get(name), limits.get(name)]
  if (!request || request.nanos === 0n) return [`${rule}, but no request is specified or request is 0`]
  if (!limitAmount || limitAmount.nanos === 0n) return [`${rule}, but no limit is specified or limit is 0`]
  const ratio = quantityMillis(limitAmount) / quantityMillis(request)
  return ratio > quantityValue(bound) ? [`${rule}, but provided ratio is ${ratio.toFixed(6)}`] : []
}
