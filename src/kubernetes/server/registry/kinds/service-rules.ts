import {
  duplicateValue,
  equalJson,
  forbiddenField,
  invalidValue,
  type KubeObject,
  labelErrors,
  nameErrors,
  qualifiedNameErrors,
  requiredValue,
  type StatusCause,
  unsupportedValue,
} from '../../../object/index.ts'
import type { ObjectReader } from '../object-reader.ts'
import {
  cidrErrors,
  endpointIpErrors,
  type Fields,
  fieldsOf,
  inRange,
  intOf,
  ipErrors,
  itemsOf,
  portNumberOrName,
  serviceStatusErrors,
  textOf,
  textsOf,
} from '../type-rules/index.ts'
import { allocationOf, isInRange, nodePorts, portKey } from './service-allocation.ts'
import { hasClusterIp, isExternal, isHeadless, needsHealthCheck } from './service-fields.ts'

/** Validates a Service. If it is valid, its addresses and ports are allocated to it. */
export function validateService(service: KubeObject, oldService: KubeObject | undefined, reader: ObjectReader): StatusCause[] {
  const spec = fieldsOf(service.spec)
  const oldSpec = oldService && fieldsOf(oldService.spec)
  const causes = [...typeErrors(spec), ...portErrors(spec), ...addressErrors(spec, oldSpec), ...trafficErrors(spec, oldSpec)]
  if (spec.selector !== undefined) causes.push(...labelErrors(spec.selector, 'spec.selector'))
  const { timeoutSeconds } = fieldsOf(fieldsOf(spec.sessionAffinityConfig).clientIP)
  if (timeoutSeconds !== undefined && (intOf(timeoutSeconds) <= 0 || intOf(timeoutSeconds) > 86_400)) {
    const reason = 'must be greater than 0 and less than 86400'
    causes.push(invalidValue('spec.sessionAffinityConfig.clientIP.timeoutSeconds', timeoutSeconds, reason))
  }
  textsOf(spec.externalIPs).forEach((ip, index) => {
    const itemPath = `spec.externalIPs[${index}]`
    const errors = ipErrors(ip, itemPath)
    causes.push(...(errors.length > 0 ? errors : endpointIpErrors(ip, itemPath)))
  })
  return causes.length > 0 ? causes : claimErrors(service, reader)
}

export function validateServiceStatus({ spec, status }: KubeObject, oldService: KubeObject | undefined): StatusCause[] {
  return serviceStatusErrors(fieldsOf(spec).type, status, oldService?.status)
}

function typeErrors(spec: Fields): StatusCause[] {
  const causes: StatusCause[] = []
  const { type } = spec
  if (itemsOf(spec.ports).length === 0 && !isHeadless(spec) && type !== 'ExternalName') causes.push(requiredValue('spec.ports'))
  if ((type === 'LoadBalancer' || type === 'NodePort') && isHeadless(spec)) {
    causes.push(invalidValue('spec.clusterIPs[0]', 'None', `may not be set to 'None' for ${type} services`))
  }
  if (type === 'ExternalName') {
    for (const field of ['clusterIPs', 'ipFamilies']) {
      if (textsOf(spec[field]).length > 0 || (field === 'clusterIPs' && textOf(spec.clusterIP) !== '')) {
        causes.push(forbiddenField(`spec.${field}`, 'may not be set for ExternalName services'))
      }
    }
    if (spec.ipFamilyPolicy !== undefined) causes.push(forbiddenField('spec.ipFamilyPolicy', 'may not be set for ExternalName services'))
    const name = textOf(spec.externalName).replace(/\.$/, '')
    if (name === '') causes.push(requiredValue('spec.externalName'))
    else causes.push(...nameErrors(name, 'dns1123Subdomain').map(reason => invalidValue('spec.externalName', name, reason)))
  }
  const loadBalancerOnly = "may only be used when `type` is 'LoadBalancer'"
  const ranges = textsOf(spec.loadBalancerSourceRanges)
  // The capital letter is Kubernetes'.
  if (ranges.length > 0 && type !== 'LoadBalancer') causes.push(forbiddenField('spec.LoadBalancerSourceRanges', loadBalancerOnly))
  ranges.forEach((range, index) => {
    causes.push(...cidrErrors(range.trim(), `spec.LoadBalancerSourceRanges[${index}]`))
  })
  for (const field of ['allocateLoadBalancerNodePorts', 'loadBalancerClass']) {
    if (spec[field] !== undefined && type !== 'LoadBalancer') causes.push(forbiddenField(`spec.${field}`, loadBalancerOnly))
  }
  return causes
}

function portErrors(spec: Fields): StatusCause[] {
  const ports = itemsOf(spec.ports)
  const names = new Set<string>()
  const [portKeys, nodePortKeys] = [new Set<string>(), new Set<string>()]
  return ports.flatMap((port, index) => {
    const itemPath = `spec.ports[${index}]`
    const causes: StatusCause[] = []
    const name = textOf(port.name)
    if (name === '') causes.push(...(ports.length > 1 ? [requiredValue(`${itemPath}.name`)] : []))
    else {
      causes.push(...nameErrors(name, 'dns1123Label').map(reason => invalidValue(`${itemPath}.name`, name, reason)))
      if (names.has(name)) causes.push(duplicateValue(`${itemPath}.name`, name))
      names.add(name)
    }
    causes.push(...inRange(`${itemPath}.port`, port.port, 1, 65_535), ...portNumberOrName(`${itemPath}.targetPort`, port.targetPort))
    if (port.appProtocol !== undefined) {
      const appProtocol = textOf(port.appProtocol)
      causes.push(...qualifiedNameErrors(appProtocol).map(reason => invalidValue(`${itemPath}.appProtocol`, appProtocol, reason)))
    }
    const nodePort = intOf(port.nodePort)
    if (nodePort > 0 && spec.type === 'ClusterIP') {
      causes.push(forbiddenField(`${itemPath}.nodePort`, "may not be used when `type` is 'ClusterIP'"))
    }
    const [portKey, nodePortKey] = [`${port.protocol}/${port.port}`, `${port.protocol}/${nodePort}`]
    if (nodePort > 0 && nodePortKeys.has(nodePortKey)) causes.push(duplicateValue(`${itemPath}.nodePort`, nodePort))
    nodePortKeys.add(nodePortKey)
    if (portKeys.has(portKey)) {
      const portStruct = { Name: '', Protocol: port.protocol, AppProtocol: null, Port: port.port, TargetPort: 0, NodePort: 0 }
      causes.push(duplicateValue(itemPath, portStruct))
    }
    portKeys.add(portKey)
    return causes
  })
}

function addressErrors(spec: Fields, oldSpec: Fields | undefined): StatusCause[] {
  if (!hasClusterIp(spec)) return []
  const causes: StatusCause[] = []
  const addresses = textsOf(spec.clusterIPs)
  const families = textsOf(spec.ipFamilies)
  const clusterIP = textOf(spec.clusterIP)
  if (clusterIP !== '' && addresses.length > 0 && addresses[0] !== clusterIP) {
    causes.push(invalidValue('spec.clusterIPs', addresses, 'first value must match `clusterIP`'))
  }
  if (clusterIP === '' && addresses.length > 0) {
    causes.push(invalidValue('spec.clusterIPs', addresses, 'must be empty when `clusterIP` is not specified'))
  }
  if (addresses[0] === 'None' && addresses.length > 1) {
    causes.push(invalidValue('spec.clusterIPs', addresses, "'None' must be the first and only value"))
  }
  addresses.forEach((address, index) => {
    if (address !== 'None' || index > 0) causes.push(...ipErrors(address, `spec.clusterIPs[${index}]`))
  })
  // The cluster is single-stack.
  if (!isHeadless(spec)) {
    families.forEach((family, index) => {
      if (family === 'IPv6') causes.push(invalidValue(`spec.ipFamilies[${index}]`, family, 'not configured on this cluster'))
    })
    if (spec.ipFamilyPolicy === 'RequireDualStack') {
      causes.push(invalidValue('spec.ipFamilyPolicy', 'RequireDualStack', 'this cluster is not configured for dual-stack services'))
    }
  }
  const oldAddresses = textsOf(oldSpec?.clusterIPs)
  if (oldSpec && hasClusterIp(oldSpec) && oldAddresses[0] !== undefined && addresses[0] !== oldAddresses[0]) {
    causes.push(invalidValue('spec.clusterIPs[0]', addresses, 'may not change once set'))
  }
  const oldFamilies = textsOf(oldSpec?.ipFamilies)
  if (oldSpec && hasClusterIp(oldSpec) && oldFamilies[0] !== undefined && families[0] !== oldFamilies[0]) {
    causes.push(invalidValue('spec.ipFamilies[0]', families, 'may not change once set'))
  }
  return causes
}

function trafficErrors(spec: Fields, oldSpec: Fields | undefined): StatusCause[] {
  const causes: StatusCause[] = []
  const { externalTrafficPolicy, healthCheckNodePort, trafficDistribution } = spec
  if (!isExternal(spec) && externalTrafficPolicy !== undefined) {
    causes.push(invalidValue('spec.externalTrafficPolicy', externalTrafficPolicy, 'may only be set for externally-accessible services'))
  }
  if (!needsHealthCheck(spec) && healthCheckNodePort !== undefined) {
    const reason = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
    causes.push(invalidValue('spec.healthCheckNodePort', healthCheckNodePort, reason))
  }
  if (oldSpec && needsHealthCheck(oldSpec) && needsHealthCheck(spec) && healthCheckNodePort !== oldSpec.healthCheckNodePort) {
    causes.push(forbiddenField('spec.healthCheckNodePort', 'field is immutable'))
  }
  if (oldSpec?.type === 'LoadBalancer' && spec.type === 'LoadBalancer' && !equalJson(oldSpec.loadBalancerClass, spec.loadBalancerClass)) {
    causes.push(invalidValue('spec.loadBalancerClass', spec.loadBalancerClass ?? null, 'may not change once set'))
  }
  const distributions = ['PreferClose', 'PreferSameZone', 'PreferSameNode']
  if (trafficDistribution !== undefined && !distributions.includes(textOf(trafficDistribution))) {
    causes.push(unsupportedValue('spec.trafficDistribution', trafficDistribution, distributions))
  }
  return causes
}

function claimErrors(service: KubeObject, reader: ObjectReader): StatusCause[] {
  const spec = fieldsOf(service.spec)
  const allocation = allocationOf(reader)
  const causes: StatusCause[] = []
  const addresses = textsOf(spec.clusterIPs)
  for (const address of addresses) {
    if (address === 'None') continue
    const reject = (reason: string) =>
      causes.push(invalidValue('spec.clusterIPs', addresses, `failed to allocate IP ${address}: ${reason}`))
    if (!isInRange(address)) reject('the provided network does not match the current range')
    else if (!allocation.claim(address, service)) reject('provided IP is already allocated')
  }
  const ports = itemsOf(spec.ports).map(({ nodePort }, index) => [`spec.ports[${index}].nodePort`, intOf(nodePort)] as const)
  for (const [path, port] of [...ports, ['spec.healthCheckNodePort', intOf(spec.healthCheckNodePort)] as const]) {
    if (port === 0) continue
    const { first, last } = nodePorts
    if (port < first || port > last) {
      causes.push(invalidValue(path, port, `provided port is not in the valid range. The range of valid ports is ${first}-${last}`))
    } else if (!allocation.claim(portKey(port), service)) causes.push(invalidValue(path, port, 'provided port is already allocated'))
  }
  return causes
}
