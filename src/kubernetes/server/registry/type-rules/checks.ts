import {
  compareQuantities,
  duplicateValue,
  forbiddenField,
  invalidValue,
  isJsonObject,
  labelValueErrors,
  type NameRule,
  nameErrors,
  parseQuantity,
  qualifiedNameErrors,
  requiredValue,
  type StatusCause,
  unsupportedValue,
} from '../../../object/index.ts'
import type { Fields } from './type-rules.ts'

/** The text of a field, or Go's zero value, the empty text. */
export const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
export const intOf = (value: unknown): number => (typeof value === 'number' ? value : 0)
export const fieldsOf = (value: unknown): Fields => (isJsonObject(value) ? value : {})
export const itemsOf = (value: unknown): Fields[] => (Array.isArray(value) ? value.map(fieldsOf) : [])
export const textsOf = (value: unknown): string[] => (Array.isArray(value) ? value.map(textOf) : [])
export const join = (path: string, field: string): string => (path === '' ? field : `${path}.${field}`)

export function invalidName(path: string, name: string, rule: NameRule): StatusCause[] {
  return nameErrors(name, rule).map(reason => invalidValue(path, name, reason))
}

/** Validates the name if there is one. */
export function optionalName(path: string, name: unknown, rule: NameRule): StatusCause[] {
  return textOf(name) === '' ? [] : invalidName(path, textOf(name), rule)
}

export function inRange(path: string, value: unknown, min: number, max: number): StatusCause[] {
  const number = intOf(value)
  return number >= min && number <= max ? [] : [invalidValue(path, number, `must be between ${min} and ${max}, inclusive`)]
}

export const portNumber = (path: string, value: unknown): StatusCause[] => inRange(path, value, 1, 65_535)

/** Errors of `name`, which must be an IANA service name. */
export function portName(path: string, name: string): StatusCause[] {
  const reasons: string[] = []
  if (name.length > 15) reasons.push('must be no more than 15 characters')
  if (!/^[-a-z0-9]+$/.test(name)) reasons.push('must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)')
  if (!/[a-z]/.test(name)) reasons.push('must contain at least one letter (a-z)')
  if (name.includes('--')) reasons.push('must not contain consecutive hyphens')
  if (name.startsWith('-') || name.endsWith('-')) reasons.push('must not begin or end with a hyphen')
  return reasons.map(reason => invalidValue(path, name, reason))
}

/** Validates a user or group ID, if there is one: 0 to 2³¹-1. */
export function optionalId(path: string, value: unknown): StatusCause[] {
  return value === undefined ? [] : inRange(path, value, 0, 2_147_483_647)
}

export function notNegative(path: string, value: unknown): StatusCause[] {
  return intOf(value) < 0 ? [invalidValue(path, value, 'must be greater than or equal to 0')] : []
}

export function portNumberOrName(path: string, port: unknown): StatusCause[] {
  return typeof port === 'string' ? portName(path, port) : portNumber(path, port)
}

export function oneOf(path: string, value: unknown, allowed: readonly string[]): StatusCause[] {
  return allowed.includes(textOf(value)) ? [] : [unsupportedValue(path, value ?? '', allowed)]
}

/** Errors for list items whose `field`, such as a name, occurs earlier in the list. Values that are not valid by `isName` are ignored. */
export function duplicates(
  path: string,
  items: readonly Fields[],
  field: string,
  seen: Set<string> = new Set(),
  isName: (name: string) => boolean = () => true,
): StatusCause[] {
  return items.flatMap((item, index) => {
    const name = textOf(item[field])
    if (name === '' || !isName(name)) return []
    if (seen.has(name)) return [duplicateValue(`${path}[${index}].${field}`, name)]
    seen.add(name)
    return []
  })
}

/** Errors of a key of a ConfigMap or Secret. */
function configKeyErrors(key: string): string[] {
  const reasons: string[] = []
  if (key.length > 253) reasons.push('must be no more than 253 characters')
  if (!/^[-._a-zA-Z0-9]+$/.test(key)) {
    reasons.push(
      "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
    )
  }
  if (key === '.' || key === '..') reasons.push(`must not be '${key}'`)
  else if (key.startsWith('..')) reasons.push("must not start with '..'")
  return reasons
}

export function configKey(path: string, key: unknown): StatusCause[] {
  const name = textOf(key)
  return name === '' ? [requiredValue(path)] : configKeyErrors(name).map(reason => invalidValue(path, name, reason))
}

/** Errors of a map of labels, such as a nodeSelector. */
export function labelPairs(path: string, labels: unknown): StatusCause[] {
  return Object.entries(fieldsOf(labels)).flatMap(([key, value]) => [
    ...qualifiedNameErrors(key).map(reason => invalidValue(path, key, reason)),
    ...labelValueErrors(textOf(value)).map(reason => invalidValue(path, value, reason)),
  ])
}

/** Errors of a path that must be relative and must not contain `..`. */
export function pathBelow(path: string, value: string): StatusCause[] {
  if (value.startsWith('/')) return [invalidValue(path, value, 'must be a relative path')]
  return noBacksteps(path, value)
}

export function noBacksteps(path: string, value: string): StatusCause[] {
  return value.split('/').includes('..') ? [invalidValue(path, value, "must not contain '..'")] : []
}

const standardContainerResources = new Set(['cpu', 'memory', 'ephemeral-storage'])

const isStandard = (name: string) => standardContainerResources.has(name) || name.startsWith('hugepages-')

/** Limits of cpu, memory and ephemeral storage may exceed the requests. */
const allowsOvercommit = (name: string) => !name.includes('/') && !name.startsWith('hugepages-')

export function quantityErrors(path: string, value: unknown): StatusCause[] {
  return textOf(value).startsWith('-') ? [invalidValue(path, value, 'must be greater than or equal to 0')] : []
}

/** Errors of the requests and limits of a container. */
export function resourceErrors(path: string, resources: Fields): StatusCause[] {
  const limits = fieldsOf(resources.limits)
  const requests = fieldsOf(resources.requests)
  const causes: StatusCause[] = []
  for (const [field, amounts] of [
    ['limits', limits],
    ['requests', requests],
  ] as const) {
    for (const [name, amount] of Object.entries(amounts)) {
      const itemPath = `${path}.${field}[${name}]`
      causes.push(...containerResourceName(itemPath, name), ...quantityErrors(itemPath, amount))
      if (!isStandard(name) && amount !== undefined && !/^-?\d+(k|M|G|T|P|E|[KMGTPE]i|e\d+)?$/.test(textOf(amount))) {
        causes.push(invalidValue(itemPath, amount, 'must be an integer'))
      }
    }
  }
  for (const [name, amount] of Object.entries(requests)) {
    const limit = limits[name]
    if (limit === undefined) {
      if (!allowsOvercommit(name)) causes.push(requiredValue(`${path}.limits`, 'Limit must be set for non overcommitable resources'))
      continue
    }
    const comparison = compareQuantities(parseQuantity(textOf(amount)), parseQuantity(textOf(limit)))
    if (comparison !== 0 && !allowsOvercommit(name)) {
      causes.push(invalidValue(`${path}.requests`, amount, `must be equal to ${name} limit of ${limit}`))
    } else if (comparison > 0) {
      causes.push(invalidValue(`${path}.requests`, amount, `must be less than or equal to ${name} limit of ${limit}`))
    }
  }
  const names = [...Object.keys(limits), ...Object.keys(requests)]
  if (names.some(name => name.startsWith('hugepages-')) && !names.includes('cpu') && !names.includes('memory')) {
    causes.push(forbiddenField(path, 'HugePages require cpu or memory'))
  }
  return causes
}

/** Errors of the name of a resource that a container may request. */
export function containerResourceName(path: string, name: string): StatusCause[] {
  const causes = resourceName(path, name)
  if (!name.includes('/'))
    return isStandard(name) ? causes : [...causes, invalidValue(path, name, 'must be a standard resource for containers')]
  if (causes.length > 0 || name.startsWith('requests.')) {
    causes.push(invalidValue(path, name, "doesn't follow extended resource name standard"))
  }
  return causes
}

/** Resources whose amount is a number of objects. */
export const countedResources: ReadonlySet<string> = new Set([
  'pods',
  'resourcequotas',
  'services',
  'replicationcontrollers',
  'secrets',
  'configmaps',
  'persistentvolumeclaims',
  'services.nodeports',
  'services.loadbalancers',
])
const amountResources = ['cpu', 'memory', 'ephemeral-storage', 'storage']

/** Whether Kubernetes defines the resource, such as `limits.cpu`, so that it needs no domain. */
export function isStandardResource(name: string): boolean {
  if (countedResources.has(name) || /^(requests\.)?hugepages-/.test(name)) return true
  const [, prefix, amount = ''] = /^(requests\.|limits\.)?(.*)$/.exec(name) ?? []
  return amountResources.includes(amount) && !(prefix === 'limits.' && amount === 'storage')
}

/** Errors of the name of a resource: a qualified name with a domain, or a standard resource. */
export function resourceName(path: string, name: string): StatusCause[] {
  const causes = qualifiedNameErrors(name).map(reason => invalidValue(path, name, reason))
  if (causes.length === 0 && !name.includes('/') && !isStandardResource(name)) {
    causes.push(invalidValue(path, name, 'must be a standard resource type or fully qualified'))
  }
  return causes
}

/** The indexes of values that occur earlier in the list. */
export function duplicateIndexes(values: readonly string[]): number[] {
  const seen = new Set<string>()
  return values.flatMap((value, index) => {
    if (seen.has(value)) return [index]
    seen.add(value)
    return []
  })
}
