import { equalJson, nameErrors, requiredValue, type StatusCause } from '../../../object/index.ts'
import { fieldsOf, invalidName, itemsOf, optionalName, portNumber, textOf } from './checks.ts'
import { endpointIpErrors, ipErrors } from './ip-address.ts'
import type { Fields, RuleTable, ValidationContext } from './type-rules.ts'

const protocols = { protocol: ['SCTP', 'TCP', 'UDP'] }

function subsetErrors({ addresses, notReadyAddresses, ports }: Fields, { path }: ValidationContext): StatusCause[] {
  const causes: StatusCause[] = []
  if (itemsOf(addresses).length + itemsOf(notReadyAddresses).length === 0) {
    causes.push(requiredValue(path, 'must specify `addresses` or `notReadyAddresses`'))
  }
  itemsOf(ports).forEach(({ name }, index, portList) => {
    const namePath = `${path}.ports[${index}].name`
    if (textOf(name) !== '') causes.push(...invalidName(namePath, textOf(name), 'dns1123Label'))
    else if (portList.length > 1) causes.push(requiredValue(namePath))
  })
  return causes
}

function addressErrors({ ip, hostname, nodeName }: Fields, { path, object, oldObject }: ValidationContext): StatusCause[] {
  const address = textOf(ip)
  const causes = ipErrors(address, `${path}.ip`)
  // Kubernetes reports the error twice.
  if (causes.length > 0) causes.push({ ...causes[0]!, message: `Invalid value: ${JSON.stringify(address)}: must be a valid IP address` })
  // The server itself may store a loopback address, in the Endpoints `default/kubernetes`, which clients may annotate.
  else if (!oldObject || !equalJson(object.subsets, oldObject.subsets)) causes.push(...endpointIpErrors(address, `${path}.ip`))
  causes.push(...optionalName(`${path}.hostname`, hostname, 'dns1123Label'))
  if (nodeName !== undefined && nameErrors(textOf(nodeName), 'dns1123Subdomain').length > 0) {
    causes.push(...invalidName(`${path}.nodeName`, textOf(nodeName), 'dns1123Subdomain'))
  }
  return causes
}

/** Rules of the types in Services, Endpoints, LimitRanges and Nodes. */
export const serviceRules: RuleTable = {
  'core.v1.ServicePort': { enumOrder: protocols },
  'core.v1.LoadBalancerIngress': {
    setDefaults: value => {
      if (textOf(value.ip) !== '') value.ipMode ??= 'VIP'
    },
  },
  'core.v1.EndpointSubset': { validate: subsetErrors },
  'core.v1.EndpointAddress': { validate: addressErrors },
  'core.v1.EndpointPort': {
    defaults: { protocol: 'TCP' },
    enumOrder: protocols,
    validate: ({ port }, { path }) => portNumber(`${path}.port`, port),
  },
  'core.v1.LimitRangeItem': {
    setDefaults: value => {
      if (value.type !== 'Container') return
      const presets = { ...fieldsOf(value.max), ...fieldsOf(value.default) }
      const requests = { ...fieldsOf(value.min), ...presets, ...fieldsOf(value.defaultRequest) }
      if (Object.keys(presets).length > 0) value.default = presets
      if (Object.keys(requests).length > 0) value.defaultRequest = requests
    },
  },
  // Validated by the kinds that contain them, with messages of their own.
  'core.v1.Taint': { uncheckedEnums: ['effect'] },
  'core.v1.ResourceQuotaSpec': { uncheckedEnums: ['scopes'] },
  'core.v1.NodeStatus': {
    setDefaults: value => {
      if (value.capacity !== undefined) value.allocatable ??= fieldsOf(value.capacity)
    },
  },
}
