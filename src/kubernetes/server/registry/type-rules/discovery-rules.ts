import { isIPv4, isIPv6 } from 'node:net'
import {
  duplicateValue,
  equalJson,
  invalidValue,
  labelErrors,
  labelValueErrors,
  nameErrors,
  qualifiedNameErrors,
  requiredValue,
  type StatusCause,
  tooMany,
} from '../../../object/index.ts'
import { duplicateIndexes } from './checks.ts'
import { canonicalIpErrors, endpointIpErrors, ipErrors } from './ip-address.ts'
import type { Fields, RuleTable } from './type-rules.ts'

const maxEndpoints = 1_000
const maxPorts = 20_000
const maxAddresses = 100
const maxHints = 8

export const discoveryRules: RuleTable = {
  'discovery.v1.EndpointSlice': {
    required: { addressType: '' },
    validate: ({ addressType, endpoints, ports }, { oldObject }) => {
      const causes: StatusCause[] = []
      const endpointList = (endpoints ?? []) as Fields[]
      const portList = (ports ?? []) as Fields[]
      if (endpointList.length > maxEndpoints) causes.push(tooMany('endpoints', endpointList.length, maxEndpoints))
      // The server itself may store a loopback address, in the EndpointSlice `default/kubernetes`, which clients may annotate.
      else if (!oldObject || !equalJson(endpoints, oldObject.endpoints) || addressType !== oldObject.addressType)
        causes.push(...endpointList.flatMap((endpoint, index) => addressErrors(endpoint, addressType, `endpoints[${index}].addresses`)))
      if (portList.length > maxPorts) return [...causes, tooMany('ports', portList.length, maxPorts)]
      const names = portList.map(({ name }) => String(name))
      for (const index of duplicateIndexes(names)) causes.push(duplicateValue(`ports[${index}].name`, names[index]))
      return causes
    },
  },
  'discovery.v1.Endpoint': {
    validate: ({ nodeName, hostname, deprecatedTopology }, { path }) => [
      ...(typeof nodeName === 'string' ? nameCauses(nodeName, 'dns1123Subdomain', `${path}.nodeName`) : []),
      ...(typeof hostname === 'string' ? nameCauses(hostname, 'dns1123Label', `${path}.hostname`) : []),
      ...labelErrors(deprecatedTopology, `${path}.deprecatedTopology`),
    ],
  },
  'discovery.v1.EndpointHints': { validate: (hints, { path }) => hintErrors(hints, path) },
  'discovery.v1.EndpointPort': {
    defaults: { name: '', protocol: 'TCP' },
    validate: ({ name, appProtocol }, { path }) => [
      ...(name ? nameCauses(String(name), 'dns1123Label', `${path}.name`) : []),
      ...(typeof appProtocol === 'string'
        ? qualifiedNameErrors(appProtocol).map(reason => invalidValue(`${path}.appProtocol`, appProtocol, reason))
        : []),
    ],
  },
}

function addressErrors({ addresses }: Fields, type: unknown, path: string): StatusCause[] {
  const list = (addresses ?? []) as string[]
  if (list.length === 0) return [requiredValue(path, 'must contain at least 1 address')]
  const causes = list.length > maxAddresses ? [tooMany(path, list.length, maxAddresses)] : []
  for (const [index, address] of list.entries()) {
    const itemPath = `${path}[${index}]`
    if (type === 'FQDN') {
      causes.push(...domainErrors(address, itemPath))
      continue
    }
    if (type !== 'IPv4' && type !== 'IPv6') continue
    const addressCauses = type === 'IPv4' ? ipErrors(address, itemPath) : canonicalIpErrors(address, itemPath)
    causes.push(...addressCauses)
    if (addressCauses.length > 0) continue
    if (type === 'IPv4' ? !isIPv4(address) : !isIPv6(address)) causes.push(invalidValue(path, address, `must be an ${type} address`))
    causes.push(...endpointIpErrors(address, itemPath))
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
    for (const index of duplicateIndexes(names)) causes.push(duplicateValue(`${path}.${field}[${index}].name`, names[index]))
    for (const [index, name] of names.entries()) {
      const reasons = field === 'forZones' ? labelValueErrors(name) : nameErrors(name, 'dns1123Subdomain')
      causes.push(...reasons.map(reason => invalidValue(`${path}.${field}[${index}].name`, name, reason)))
    }
  }
  return causes
}

const nameCauses = (name: string, rule: 'dns1123Subdomain' | 'dns1123Label', path: string): StatusCause[] =>
  nameErrors(name, rule).map(reason => invalidValue(path, name, reason))
