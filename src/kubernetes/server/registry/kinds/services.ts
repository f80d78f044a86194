import type { KubeObject } from '../../../object/index.ts'
import { ageColumn, column, nameColumn } from '../printer-columns.ts'
import { type Fields, fieldsOf, intOf, itemsOf, textOf, textsOf } from '../type-rules/index.ts'
import { addressWarnings } from '../warnings/index.ts'
import { firstThree, formatLabels } from './column-values.ts'
import type { KindDeclaration } from './kind-declaration.ts'
import { allocateService, prepareService } from './service-fields.ts'
import { validateService, validateServiceStatus } from './service-rules.ts'

const endpointsDeprecated = 'v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice'

export const serviceKinds: readonly KindDeclaration[] = [
  {
    kind: 'Service',
    plural: 'services',
    shortNames: ['svc'],
    categories: ['all'],
    typeName: 'io.k8s.api.core.v1.Service',
    nameRule: 'dns1123Label',
    hasStatus: true,
    returnDeletedObject: true,
    columns: [
      nameColumn,
      column(
        'Type',
        'type determines how the Service is exposed. Defaults to ClusterIP. Valid options are ExternalName, ClusterIP, NodePort, and LoadBalancer. "ClusterIP" allocates a cluster-internal IP address for load-balancing to endpoints. Endpoints are determined by the selector or if that is not specified, by manual construction of an Endpoints object or EndpointSlice objects. If clusterIP is "None", no virtual IP is allocated and the endpoints are published as a set of endpoints rather than a virtual IP. "NodePort" builds on ClusterIP and allocates a port on every node which routes to the same endpoints as the clusterIP. "LoadBalancer" builds on NodePort and creates an external load-balancer (if supported in the current cloud) which routes to the same endpoints as the clusterIP. "ExternalName" aliases this service to the specified externalName. Several other fields do not apply to ExternalName services. More info: https://kubernetes.io/docs/concepts/services-networking/service/#publishing-services-service-types',
        ({ spec }) => textOf(fieldsOf(spec).type),
      ),
      column(
        'Cluster-IP',
        'clusterIP is the IP address of the service and is usually assigned randomly. If an address is specified manually, is in-range (as per system configuration), and is not in use, it will be allocated to the service; otherwise creation of the service will fail. This field may not be changed through updates unless the type field is also being changed to ExternalName (which requires this field to be blank) or the type field is being changed from ExternalName (in which case this field may optionally be specified, as describe above).  Valid values are "None", empty string (""), or a valid IP address. Setting this to "None" makes a "headless service" (no virtual IP), which is useful when direct endpoint connections are preferred and proxying is not required.  Only applies to types ClusterIP, NodePort, and LoadBalancer. If this field is specified when creating a Service of type ExternalName, creation will fail. This field will be wiped when updating a Service to type ExternalName. More info: https://kubernetes.io/docs/concepts/services-networking/service/#virtual-ips-and-service-proxies',
        ({ spec }) => textsOf(fieldsOf(spec).clusterIPs)[0] ?? '<none>',
      ),
      column(
        'External-IP',
        'externalIPs is a list of IP addresses for which nodes in the cluster will also accept traffic for this service.  These IPs are not managed by Kubernetes.  The user is responsible for ensuring that traffic arrives at a node with this IP.  A common example is external load-balancers that are not part of the Kubernetes system.',
        externalAddress,
      ),
      column(
        'Port(s)',
        'The list of ports that are exposed by this service. More info: https://kubernetes.io/docs/concepts/services-networking/service/#virtual-ips-and-service-proxies',
        ({ spec }) => itemsOf(fieldsOf(spec).ports).map(formatPort).join(',') || '<none>',
      ),
      ageColumn,
      column(
        'Selector',
        'Route service traffic to pods with label keys and values matching this selector. If empty or not present, the service is assumed to have an external process managing its endpoints, which Kubernetes will not modify. Only applies to types ClusterIP, NodePort, and LoadBalancer. Ignored if type is ExternalName. More info: https://kubernetes.io/docs/concepts/services-networking/service/',
        ({ spec }) => formatLabels(fieldsOf(spec).selector),
        1,
      ),
    ],
    selectableFields: ['clusterIP', 'type'].map(name => ({
      field: `spec.${name}`,
      read: ({ spec }: KubeObject) => textOf(fieldsOf(spec)[name]),
    })),
    prepareForWrite: prepareService,
    prepareForCreate: allocateService,
    validate: validateService,
    validateStatusUpdate: validateServiceStatus,
    warnings: serviceWarnings,
  },
  {
    kind: 'Endpoints',
    plural: 'endpoints',
    shortNames: ['ep'],
    typeName: 'io.k8s.api.core.v1.Endpoints',
    deprecationWarning: endpointsDeprecated,
    warnings: endpointsWarnings,
    columns: [
      nameColumn,
      column(
        'Endpoints',
        'The set of all endpoints is the union of all subsets. Addresses are placed into subsets according to the IPs they share. A single address with multiple ports, some of which are ready and some of which are not (because they come from different containers) will result in the address being displayed in different subsets for the different ports. No address will appear in both Addresses and NotReadyAddresses in the same subset. Sets of addresses and ports that comprise a service.',
        formatEndpoints,
      ),
      ageColumn,
    ],
  },
]

function externalAddress({ spec, status }: KubeObject): string {
  const { type, externalIPs, externalName } = fieldsOf(spec)
  const provided = textsOf(externalIPs)
  switch (type) {
    case 'ExternalName':
      return textOf(externalName)
    case 'LoadBalancer': {
      const ingress = itemsOf(fieldsOf(fieldsOf(status).loadBalancer).ingress).map(({ ip, hostname }) => textOf(ip) || textOf(hostname))
      return [...ingress.filter(Boolean), ...provided].join(',') || '<pending>'
    }
    default:
      return provided.join(',') || '<none>'
  }
}

function formatPort({ port, nodePort, protocol }: Fields): string {
  return intOf(nodePort) > 0 ? `${port}:${nodePort}/${protocol}` : `${port}/${protocol}`
}

function formatEndpoints({ subsets }: KubeObject): string {
  const list = itemsOf(subsets).flatMap(({ addresses, ports }) => {
    const ips = itemsOf(addresses).map(({ ip }) => textOf(ip))
    const numbers = itemsOf(ports).map(({ port }) => intOf(port))
    return numbers.length === 0
      ? ips
      : numbers.flatMap(number => ips.map(ip => (ip.includes(':') ? `[${ip}]:${number}` : `${ip}:${number}`)))
  })
  return itemsOf(subsets).length === 0 ? '<none>' : list.length === 0 ? '' : firstThree(list)
}

function serviceWarnings({ metadata, spec }: KubeObject): string[] {
  const fields = fieldsOf(spec)
  const { type, clusterIP, sessionAffinity, loadBalancerIP, externalName, trafficDistribution } = fields
  const [clusterIPs, externalIPs] = [textsOf(fields.clusterIPs), textsOf(fields.externalIPs)]
  const isHeadless = type === 'ClusterIP' && clusterIP === 'None'
  const warnings: string[] = []
  if (metadata.annotations?.[topologyHints] !== undefined) {
    warnings.push(`annotation ${topologyHints} is deprecated, please use service.kubernetes.io/topology-mode instead`)
  }
  clusterIPs.forEach((ip, i) => {
    warnings.push(...addressWarnings(`spec.clusterIPs[${i}]`, ip))
  })
  if (isHeadless && textOf(loadBalancerIP) !== '') warnings.push('spec.loadBalancerIP is ignored for headless services')
  if (isHeadless && externalIPs.length > 0) warnings.push('spec.externalIPs is ignored for headless services')
  if (isHeadless && sessionAffinity !== 'None') warnings.push('spec.SessionAffinity is ignored for headless services')
  externalIPs.forEach((ip, i) => {
    warnings.push(...addressWarnings(`spec.externalIPs[${i}]`, ip))
  })
  if (externalIPs.length > 0 && !isHeadless && type !== 'ExternalName') {
    warnings.push('spec.externalIPs is deprecated and may no longer be implemented in some clusters')
  }
  warnings.push(...addressWarnings('spec.loadBalancerIP', loadBalancerIP))
  if (type === 'ExternalName' && externalIPs.length > 0) warnings.push('spec.externalIPs is ignored when spec.type is "ExternalName"')
  if (type !== 'ExternalName' && textOf(externalName) !== '')
    warnings.push('spec.externalName is ignored when spec.type is not "ExternalName"')
  if (trafficDistribution === 'PreferClose') {
    warnings.push('spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"')
  }
  return warnings
}

const topologyHints = 'service.kubernetes.io/topology-aware-hints'

function endpointsWarnings({ metadata, subsets }: KubeObject): string[] {
  if (metadata.labels?.['endpoints.kubernetes.io/managed-by'] === 'endpoint-controller') return []
  return itemsOf(subsets).flatMap((subset, i) =>
    ['addresses', 'notReadyAddresses'].flatMap(list =>
      itemsOf(subset[list]).flatMap(({ ip }, j) => addressWarnings(`subsets[${i}].${list}[${j}].ip`, ip)),
    ),
  )
}
