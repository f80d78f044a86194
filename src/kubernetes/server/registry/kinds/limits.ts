import {
  compareQuantities,
  duplicateValue,
  forbiddenField,
  invalidValue,
  type KubeObject,
  parseQuantity,
  requiredValue,
  type StatusCause,
} from '../../../object/index.ts'
import { ageColumn, column, creationTimestampText, nameColumn } from '../printer-columns.ts'
import {
  containerResourceName,
  countedResources,
  type Fields,
  fieldsOf,
  isStandardResource,
  itemsOf,
  quantityErrors,
  resourceName,
  textOf,
  textsOf,
} from '../type-rules/index.ts'
import type { KindDeclaration } from './kind-declaration.ts'

export const limitKinds: readonly KindDeclaration[] = [
  {
    kind: 'ResourceQuota',
    plural: 'resourcequotas',
    shortNames: ['quota'],
    typeName: 'io.k8s.api.core.v1.ResourceQuota',
    hasStatus: true,
    returnDeletedObject: true,
    columns: [
      nameColumn,
      column('Request', 'Request represents a minimum amount of cpu/memory that a container may consume.', quota =>
        formatQuota(quota, false),
      ),
      column(
        'Limit',
        'Limits control the maximum amount of cpu/memory that a container may use independent of contention on the node.',
        quota => formatQuota(quota, true),
      ),
      ageColumn,
    ],
    validate: validateQuota,
    validateStatusUpdate: ({ status }) => ['hard', 'used'].flatMap(field => amountErrors(`status.${field}`, fieldsOf(status)[field])),
  },
  {
    kind: 'LimitRange',
    plural: 'limitranges',
    shortNames: ['limits'],
    typeName: 'io.k8s.api.core.v1.LimitRange',
    columns: [nameColumn, { ...column('Created At', creationTimestampText, ({ metadata }) => metadata.creationTimestamp), type: 'date' }],
    validate: validateLimitRange,
  },
]

function formatQuota({ status }: KubeObject, ofLimits: boolean): string {
  const { hard, used } = fieldsOf(status)
  return Object.entries(fieldsOf(hard))
    .filter(([name]) => name.startsWith('limits.') === ofLimits)
    .map(([name, amount]) => `${name}: ${textOf(fieldsOf(used)[name]) || '0'}/${amount}`)
    .sort()
    .join(', ')
}

const podScopes = [
  'Terminating',
  'NotTerminating',
  'BestEffort',
  'NotBestEffort',
  'PriorityClass',
  'CrossNamespacePodAffinity',
  'VolumeAttributesClass',
]
const opposites = [
  ['BestEffort', 'NotBestEffort'],
  ['Terminating', 'NotTerminating'],
] as const

function amountErrors(path: string, amounts: unknown): StatusCause[] {
  return Object.entries(fieldsOf(amounts)).flatMap(([name, amount]) => {
    const itemPath = `${path}[${name}]`
    const causes = [...resourceName(itemPath, name), ...quantityErrors(itemPath, amount)]
    if (!name.includes('/') && (!isStandardResource(name) || name === 'storage')) {
      causes.push(invalidValue(itemPath, name, 'must be a standard resource for quota'))
    }
    if ((countedResources.has(name) || name.startsWith('count/')) && parseQuantity(textOf(amount)).nanos % 1_000_000_000n !== 0n) {
      causes.push(invalidValue(itemPath, amount, 'must be an integer'))
    }
    return causes
  })
}

function validateQuota({ spec }: KubeObject, oldQuota: KubeObject | undefined): StatusCause[] {
  const { hard, scopes } = fieldsOf(spec)
  const provided = textsOf(scopes)
  const causes = amountErrors('spec.hard', hard)
  for (const scope of provided) if (!podScopes.includes(scope)) causes.push(invalidValue('spec.scopes', provided, 'unsupported scope'))
  for (const pair of opposites) {
    if (pair.every(scope => provided.includes(scope))) causes.push(invalidValue('spec.scopes', provided, 'conflicting scopes'))
  }
  const oldScopes = oldQuota && textsOf(fieldsOf(oldQuota.spec).scopes)
  if (oldScopes && oldScopes.toSorted().join() !== provided.toSorted().join())
    causes.push(invalidValue('spec.scopes', provided, 'field is immutable'))
  return causes
}

function validateLimitRange({ spec }: KubeObject): StatusCause[] {
  const types = new Set<string>()
  return itemsOf(fieldsOf(spec).limits).flatMap((limit, index) => {
    const itemPath = `spec.limits[${index}]`
    const type = textOf(limit.type)
    const causes = typeErrors(itemPath, type)
    if (types.has(type)) causes.push(duplicateValue(`${itemPath}.type`, type))
    types.add(type)
    causes.push(...limitErrors(itemPath, type, limit))
    return causes
  })
}

function typeErrors(path: string, type: string): StatusCause[] {
  if (type.includes('/') || ['Pod', 'Container', 'PersistentVolumeClaim'].includes(type)) return []
  return [invalidValue(`${path}.type`, type, 'must be a standard limit type or fully qualified')]
}

const limitFields = ['max', 'min', 'default', 'defaultRequest', 'maxLimitRequestRatio']

function limitErrors(path: string, type: string, limit: Fields): StatusCause[] {
  const causes: StatusCause[] = []
  const nameErrors = type === 'Pod' || type === 'Container' ? containerResourceName : resourceName
  for (const field of limitFields) {
    const names = Object.keys(fieldsOf(limit[field]))
    if (type === 'Pod' && field.startsWith('default') && names.length > 0) {
      causes.push(forbiddenField(`${path}.${field}`, "may not be specified when `type` is 'Pod'"))
    } else for (const name of names) causes.push(...nameErrors(`${path}.${field}[${name}]`, name))
  }
  if (type === 'PersistentVolumeClaim' && fieldsOf(limit.min).storage === undefined && fieldsOf(limit.max).storage === undefined) {
    causes.push(requiredValue(`${path}.limits`, 'either minimum or maximum storage value is required, but neither was provided'))
  }
  const amounts = type === 'Pod' ? { min: limit.min, max: limit.max } : limit
  for (const name of new Set(limitFields.flatMap(field => Object.keys(fieldsOf(limit[field])))))
    causes.push(...orderErrors(path, name, amounts, limit))
  return causes
}

/** min ≤ defaultRequest ≤ default ≤ max of one resource. */
function orderErrors(path: string, name: string, amounts: Fields, limit: Fields): StatusCause[] {
  const causes: StatusCause[] = []
  const amount = (field: string) => textOf(fieldsOf(amounts[field])[name])
  const isMore = (a: string, b: string) => a !== '' && b !== '' && compareQuantities(parseQuantity(a), parseQuantity(b)) > 0
  const [min, max, preset, request] = [amount('min'), amount('max'), amount('default'), amount('defaultRequest')]
  const reject = (field: string, value: string, reason: string) => causes.push(invalidValue(`${path}.${field}[${name}]`, value, reason))
  if (isMore(min, max)) reject('min', min, `min value ${min} is greater than max value ${max}`)
  if (isMore(min, request)) reject('defaultRequest', request, `min value ${min} is greater than default request value ${request}`)
  if (isMore(request, max)) reject('defaultRequest', request, `default request value ${request} is greater than max value ${max}`)
  if (isMore(request, preset))
    reject('defaultRequest', request, `default request value ${request} is greater than default limit value ${preset}`)
  if (isMore(min, preset)) reject('default', min, `min value ${min} is greater than default value ${preset}`)
  if (isMore(preset, max)) reject('default', max, `default value ${preset} is greater than max value ${max}`)
  const ratio = textOf(fieldsOf(limit.maxLimitRequestRatio)[name])
  if (isMore('1', ratio)) reject('maxLimitRequestRatio', ratio, `ratio ${ratio} is less than 1`)
  return causes
}
