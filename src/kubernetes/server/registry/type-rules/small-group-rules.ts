import { isIPv4, isIPv6 } from 'node:net'
import {
  duplicateValue,
  forbiddenField,
  invalidValue,
  isJsonObject,
  labelErrors,
  labelValueErrors,
  nameErrors,
  qualifiedNameErrors,
  requiredValue,
  type StatusCause,
  tooLong,
  tooMany,
  unsupportedValue,
} from '../../../object/index.ts'
import { canonicalIpErrors, endpointIpErrors, ipErrors } from './ip-address.ts'
import { intOrPercentErrors, numberOf, over100PercentErrors } from './number-checks.ts'
import type { Fields, RuleTable } from './type-rules.ts'

/** Of the groups policy, scheduling.k8s.io, storage.k8s.io and discovery.k8s.io. */
export const smallGroupRules: RuleTable = {
  'policy.v1.PodDisruptionBudgetSpec': {
    check: (spec, { path }) => {
      const { minAvailable, maxUnavailable, selector = null, unhealthyPodEvictionPolicy = null } = spec
      const causes = ['minAvailable', 'maxUnavailable'].flatMap(field => [
        ...intOrPercentErrors(spec[field], `${path}.${field}`),
        ...over100PercentErrors(spec[field], `${path}.${field}`),
      ])
      if (minAvailable === undefined || maxUnavailable === undefined) return causes
      // By the names of Go, as Kubernetes says it.
      const said = {
        MinAvailable: minAvailable,
        Selector: selector,
        MaxUnavailable: maxUnavailable,
        UnhealthyPodEvictionPolicy: unhealthyPodEvictionPolicy,
      }
      return [invalidValue(path, said, 'minAvailable and maxUnavailable cannot be both set'), ...causes]
    },
  },
  'scheduling.v1.PriorityClass': {
    defaults: { preemptionPolicy: 'PreemptLowerPriority' },
    free: ['preemptionPolicy'],
    check: ({ preemptionPolicy: policy, value }, { object }) => {
      const causes: StatusCause[] = []
      if (policy !== 'PreemptLowerPriority' && policy !== 'Never') {
        causes.push(unsupportedValue('preemptionPolicy', policy, ['PreemptLowerPriority', 'Never']))
      }
      if (!object.metadata.name.startsWith('system-') && numberOf(value) > maxUserPriority) {
        causes.push(forbiddenField('value', `maximum allowed value of a user defined priority is ${maxUserPriority}`))
      }
      return causes
    },
  },
  'storage.v1.StorageClass': {
    defaults: { reclaimPolicy: 'Delete', volumeBindingMode: 'Immediate' },
    required: { provisioner: '' },
    free: ['reclaimPolicy'],
    check: storageClassErrors,
  },
  'core.v1.TopologySelectorLabelRequirement': {
    required: { values: '' },
    check: ({ key, values }, { path }) => [
      ...qualifiedNameErrors(String(key ?? '')).map(why => invalidValue(`${path}.key`, key ?? '', why)),
      ...repeated((values ?? []) as string[]).map(index => duplicateValue(`${path}.values[${index}]`, (values as string[])[index])),
    ],
  },
  'discovery.v1.EndpointSlice': {
    required: { addressType: '' },
    check: ({ addressType, endpoints, ports }) => {
      const causes: StatusCause[] = []
      const list = (endpoints ?? []) as Fields[]
      const portList = (ports ?? []) as Fields[]
      if (list.length > maxEndpoints) causes.push(tooMany('endpoints', list.length, maxEndpoints))
      else causes.push(...list.flatMap((endpoint, index) => addressErrors(endpoint, addressType, `endpoints[${index}].addresses`)))
      if (portList.length > maxPorts) return [...causes, tooMany('ports', portList.length, maxPorts)]
      const names = portList.map(({ name }) => String(name))
      for (const index of repeated(names)) causes.push(duplicateValue(`ports[${index}].name`, names[index]))
      return causes
    },
  },
  'discovery.v1.Endpoint': {
    check: ({ nodeName, hostname, deprecatedTopology }, { path }) => [
      ...(typeof nodeName === 'string' ? nameCauses(nodeName, 'dns1123Subdomain', `${path}.nodeName`) : []),
      ...(typeof hostname === 'string' ? nameCauses(hostname, 'dns1123Label', `${path}.hostname`) : []),
      ...labelErrors(deprecatedTopology, `${path}.deprecatedTopology`),
    ],
  },
  'discovery.v1.EndpointHints': { check: (hints, { path }) => hintErrors(hints, path) },
  'discovery.v1.EndpointPort': {
    defaults: { name: '', protocol: 'TCP' },
    check: ({ name, appProtocol }, { path }) => [
      ...(name ? nameCauses(String(name), 'dns1123Label', `${path}.name`) : []),
      ...(typeof appProtocol === 'string'
        ? qualifiedNameErrors(appProtocol).map(why => invalidValue(`${path}.appProtocol`, appProtocol, why))
        : []),
    ],
  },
}

const maxUserPriority = 1_000_000_000
const maxParameters = 512
const maxParameterBytes = 256 * 1024
const maxEndpoints = 1_000
const maxPorts = 20_000
const maxAddresses = 100
const maxHints = 8

function storageClassErrors({ provisioner, parameters, reclaimPolicy }: Fields): StatusCause[] {
  const causes: StatusCause[] = []
  if (typeof provisioner === 'string' && provisioner !== '') {
    const name = provisioner.toLowerCase()
    causes.push(...qualifiedNameErrors(name).map(why => invalidValue('provisioner', name, why)))
  }
  if (reclaimPolicy !== 'Delete' && reclaimPolicy !== 'Retain') {
    causes.push(unsupportedValue('reclaimPolicy', reclaimPolicy, ['Delete', 'Retain']))
  }
  if (!isJsonObject(parameters)) return causes
  const entries = Object.entries(parameters)
  if (entries.length > maxParameters) return [...causes, tooLong('parameters', maxParameters)]
  if (Object.hasOwn(parameters, '')) causes.push(invalidValue('parameters', '', 'field can not be empty.'))
  const bytes = entries.reduce((sum, [key, value]) => sum + Buffer.byteLength(key) + Buffer.byteLength(String(value)), 0)
  if (bytes > maxParameterBytes) causes.push(tooLong('parameters', maxParameterBytes))
  return causes
}

function addressErrors({ addresses }: Fields, type: unknown, path: string): StatusCause[] {
  const list = (addresses ?? []) as string[]
  if (list.length === 0) return [requiredValue(path, 'must contain at least 1 address')]
  const causes = list.length > maxAddresses ? [tooMany(path, list.length, maxAddresses)] : []
  for (const [index, address] of list.entries()) {
    const at = `${path}[${index}]`
    if (type === 'FQDN') {
      causes.push(...domainErrors(address, at))
      continue
    }
    if (type !== 'IPv4' && type !== 'IPv6') continue
    const wrong = type === 'IPv4' ? ipErrors(address, at) : canonicalIpErrors(address, at)
    causes.push(...wrong)
    if (wrong.length > 0) continue
    if (type === 'IPv4' ? !isIPv4(address) : !isIPv6(address)) causes.push(invalidValue(path, address, `must be an ${type} address`))
    causes.push(...endpointIpErrors(address, at))
  }
  return causes
}

function domainErrors(domain: string, path: string): StatusCause[] {
  if (domain === '') return [requiredValue(path)]
  const name = domain.endsWith('.') ? domain.slice(0, -1) : domain
  const causes = nameCauses(name, 'dns1123Subdomain', path)
  if (causes.length > 0) return causes
  return name.includes('.') ? [] : [invalidValue(path, name, 'should be a domain with at least two segments separated by dots')]
}

function hintErrors(hints: Fields, path: string): StatusCause[] {
  const causes: StatusCause[] = []
  for (const field of ['forZones', 'forNodes'] as const) {
    const names = ((hints[field] ?? []) as Fields[]).map(({ name }) => String(name ?? ''))
    if (names.length > maxHints) return [...causes, tooMany(`${path}.${field}`, names.length, maxHints)]
    for (const index of repeated(names)) causes.push(duplicateValue(`${path}.${field}[${index}].name`, names[index]))
    for (const [index, name] of names.entries()) {
      const whys = field === 'forZones' ? labelValueErrors(name) : nameErrors(name, 'dns1123Subdomain')
      causes.push(...whys.map(why => invalidValue(`${path}.${field}[${index}].name`, name, why)))
    }
  }
  return causes
}

const nameCauses = (name: string, rule: 'dns1123Subdomain' | 'dns1123Label', path: string): StatusCause[] =>
  nameErrors(name, rule).map(why => invalidValue(path, name, why))

/** Where a value stands that was there before. */
function repeated(values: readonly string[]): number[] {
  const seen = new Set<string>()
  return values.flatMap((value, index) => {
    if (seen.has(value)) return [index]
    seen.add(value)
    return []
  })
}
