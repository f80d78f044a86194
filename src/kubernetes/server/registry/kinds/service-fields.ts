import { equalJson, invalid, invalidValue, type KubeObject } from '../../../object/index.ts'
import type { ObjectReader } from '../object-reader.ts'
import { type Fields, fieldsOf, intOf, itemsOf, textOf, textsOf } from '../type-rules/index.ts'
import { allocationOf } from './service-allocation.ts'

export const hasClusterIp = ({ type }: Fields): boolean => type === 'ClusterIP' || type === 'NodePort' || type === 'LoadBalancer'
export const isHeadless = ({ clusterIP, clusterIPs }: Fields): boolean => clusterIP === 'None' || textsOf(clusterIPs)[0] === 'None'
export const needsHealthCheck = ({ type, externalTrafficPolicy }: Fields): boolean =>
  type === 'LoadBalancer' && externalTrafficPolicy === 'Local'
export const isExternal = ({ type, externalIPs }: Fields): boolean =>
  type === 'LoadBalancer' || type === 'NodePort' || (type === 'ClusterIP' && textsOf(externalIPs).length > 0)
const usesNodePorts = ({ type, allocateLoadBalancerNodePorts }: Fields): boolean =>
  type === 'NodePort' || (type === 'LoadBalancer' && allocateLoadBalancerNodePorts !== false)

/** Sets the defaults of a Service; on an update also the allocated fields that it still needs. */
export function prepareService(service: KubeObject, oldService: KubeObject | undefined, reader: ObjectReader): void {
  const spec: Fields = { ...fieldsOf(service.spec) }
  spec.sessionAffinity ??= 'None'
  if (spec.sessionAffinity === 'None') delete spec.sessionAffinityConfig
  if (spec.sessionAffinity === 'ClientIP' && fieldsOf(fieldsOf(spec.sessionAffinityConfig).clientIP).timeoutSeconds === undefined) {
    spec.sessionAffinityConfig = { clientIP: { timeoutSeconds: 10_800 } }
  }
  spec.type ??= 'ClusterIP'
  if (spec.ports !== undefined) {
    spec.ports = itemsOf(spec.ports).map(port => {
      const { targetPort } = port
      return targetPort === 0 || targetPort === '' || targetPort === undefined ? { ...port, targetPort: port.port } : port
    })
  }
  if (isExternal(spec)) spec.externalTrafficPolicy ??= 'Cluster'
  if (hasClusterIp(spec)) spec.internalTrafficPolicy ??= 'Cluster'
  if (spec.type === 'LoadBalancer') spec.allocateLoadBalancerNodePorts ??= true
  service.spec = spec
  if (!oldService) return
  const oldSpec = fieldsOf(oldService.spec)
  keepAllocated(spec, oldSpec)
  dropUnneededFields(spec, oldSpec)
  // The load balancer's status is removed.
  if (oldSpec.type === 'LoadBalancer' && spec.type !== 'LoadBalancer') service.status = { ...fieldsOf(service.status), loadBalancer: {} }
  allocateFields(service, reader)
}

/** Allocates the addresses and ports of a new Service. */
export function allocateService(service: KubeObject, reader: ObjectReader): void {
  service.spec = { ...fieldsOf(service.spec) }
  allocateFields(service, reader)
}

// A client that omits allocated fields keeps their values.
function keepAllocated(spec: Fields, oldSpec: Fields): void {
  if (hasClusterIp(oldSpec) && hasClusterIp(spec)) {
    const isSameList = equalJson(spec.clusterIPs, oldSpec.clusterIPs)
    if (spec.clusterIP === undefined && (spec.clusterIPs === undefined || isSameList)) {
      spec.clusterIP = oldSpec.clusterIP
      spec.clusterIPs = oldSpec.clusterIPs
    } else if (spec.clusterIPs === undefined && spec.clusterIP === oldSpec.clusterIP) spec.clusterIPs = oldSpec.clusterIPs
    else if (isSameList && spec.clusterIP !== oldSpec.clusterIP) spec.clusterIPs = [spec.clusterIP]
    spec.ipFamilies ??= oldSpec.ipFamilies
    spec.ipFamilyPolicy ??= oldSpec.ipFamilyPolicy
  }
  if (usesNodePorts(oldSpec) && usesNodePorts(spec)) {
    const oldPorts = itemsOf(oldSpec.ports)
    const used = new Set(itemsOf(spec.ports).map(({ nodePort }) => nodePort))
    spec.ports = itemsOf(spec.ports).map(port => {
      if (intOf(port.nodePort) > 0) return port
      const oldPort = oldPorts.find(candidate => candidate.port === port.port && candidate.protocol === port.protocol)
      if (intOf(oldPort?.nodePort) === 0 || used.has(oldPort?.nodePort)) return port
      return { ...port, nodePort: oldPort?.nodePort }
    })
  }
  if (needsHealthCheck(oldSpec) && needsHealthCheck(spec)) spec.healthCheckNodePort ??= oldSpec.healthCheckNodePort
}

/** Removes fields that only the previous type of the Service needed, unless the client changed them. */
function dropUnneededFields(spec: Fields, oldSpec: Fields): void {
  const drop = (wasNeeded: boolean, isNeeded: boolean, fields: string[]) => {
    if (!wasNeeded || isNeeded) return
    for (const field of fields) if (equalJson(spec[field], oldSpec[field])) delete spec[field]
  }
  drop(hasClusterIp(oldSpec), hasClusterIp(spec), ['clusterIP', 'clusterIPs', 'ipFamilies', 'ipFamilyPolicy', 'internalTrafficPolicy'])
  drop(needsHealthCheck(oldSpec), needsHealthCheck(spec), ['healthCheckNodePort'])
  drop(isExternal(oldSpec), isExternal(spec), ['externalTrafficPolicy'])
  drop(oldSpec.type === 'LoadBalancer', spec.type === 'LoadBalancer', ['allocateLoadBalancerNodePorts', 'loadBalancerClass'])
  const usedPorts = oldSpec.type === 'NodePort' || oldSpec.type === 'LoadBalancer'
  if (usedPorts && (spec.type === 'ClusterIP' || spec.type === 'ExternalName')) {
    const oldNodePorts = new Set(itemsOf(oldSpec.ports).map(({ nodePort }) => nodePort))
    if (spec.ports !== undefined)
      spec.ports = itemsOf(spec.ports).map(port => (oldNodePorts.has(port.nodePort) ? withoutNodePort(port) : port))
  }
}

function withoutNodePort({ nodePort: _, ...port }: Fields): Fields {
  return port
}

function allocateFields(service: KubeObject, reader: ObjectReader): void {
  const spec = fieldsOf(service.spec)
  const allocation = allocationOf(reader)
  if (hasClusterIp(spec)) {
    if (spec.clusterIP === undefined && spec.clusterIPs === undefined && spec.ipFamilyPolicy !== 'RequireDualStack' && hasPorts(spec)) {
      spec.clusterIP = allocation.address(service) ?? reject(service, 'clusterIPs', 'range is full')
    }
    if (spec.clusterIP !== undefined) spec.clusterIPs ??= [spec.clusterIP]
    // A headless Service without a selector is dual-stack: only its user knows the endpoints.
    const isOpen = isHeadless(spec) && Object.keys(fieldsOf(spec.selector)).length === 0
    spec.ipFamilies ??= isOpen ? ['IPv4', 'IPv6'] : ['IPv4']
    spec.ipFamilyPolicy ??= isOpen ? 'RequireDualStack' : 'SingleStack'
  }
  if (usesNodePorts(spec)) {
    spec.ports = itemsOf(spec.ports).map(port =>
      intOf(port.nodePort) > 0 ? port : { ...port, nodePort: allocation.port(service) ?? reject(service, 'ports', 'range is full') },
    )
  }
  if (needsHealthCheck(spec) && intOf(spec.healthCheckNodePort) === 0) {
    spec.healthCheckNodePort = allocation.port(service) ?? reject(service, 'healthCheckNodePort', 'range is full')
  }
}

// A Service without ports is rejected and needs no address.
const hasPorts = ({ ports }: Fields) => itemsOf(ports).length > 0

function reject(service: KubeObject, field: string, reason: string): never {
  throw invalid({ group: '', plural: 'services', kind: 'Service' }, service.metadata.name, [
    invalidValue(`spec.${field}`, textOf(fieldsOf(service.spec)[field]), reason),
  ])
}
