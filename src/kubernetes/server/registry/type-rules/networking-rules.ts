import {
  forbiddenField,
  invalidValue,
  isJsonObject,
  nameErrors,
  requiredValue,
  type StatusCause,
  tooLong,
  unsupportedValue,
} from '../../../object/index.ts'
import { domainPrefixedPathErrors } from './batch-rules.ts'
import { portName, portNumber } from './checks.ts'
import { cidrErrors, isAddress, isStrictlyWithin } from './ip-address.ts'
import { numberOf } from './number-checks.ts'
import type { Fields, RuleTable } from './type-rules.ts'

const maxControllerBytes = 250
const protocols = ['TCP', 'UDP', 'SCTP']

/** Rules of the types in networking.k8s.io. */
export const networkingRules: RuleTable = {
  'networking.v1.IngressSpec': {
    validate: ({ defaultBackend, rules, ingressClassName }, { path }) => {
      const causes: StatusCause[] = []
      if (defaultBackend === undefined && !rules) {
        causes.push(invalidValue(path, null, 'either `defaultBackend` or `rules` must be specified'))
      }
      if (typeof ingressClassName === 'string') causes.push(...subdomainErrors(ingressClassName, `${path}.ingressClassName`))
      return causes
    },
  },
  'networking.v1.IngressTLS': {
    validate: ({ hosts, secretName }, { path }) => [
      ...((hosts ?? []) as string[]).flatMap((host, index) => hostErrors(host, `${path}.hosts[${index}]`)),
      ...(typeof secretName === 'string' && secretName !== '' ? subdomainErrors(secretName, `${path}.secretName`) : []),
    ],
  },
  'networking.v1.IngressRule': {
    validate: ({ host }, { path }) => {
      if (typeof host !== 'string' || host === '') return []
      if (isAddress(host)) return [invalidValue(`${path}.host`, host, 'must be a DNS name, not an IP address')]
      return hostErrors(host, `${path}.host`)
    },
  },
  'networking.v1.HTTPIngressRuleValue': { required: { paths: '' } },
  'networking.v1.HTTPIngressPath': { uncheckedEnums: ['pathType'], validate: (value, { path }) => pathErrors(value, path) },
  'networking.v1.IngressBackend': { validate: (value, { path }) => backendErrors(value, path) },
  'networking.v1.IngressClassSpec': {
    validate: ({ controller }, { path }) => {
      const name = String(controller ?? '')
      const causes = domainPrefixedPathErrors(name, `${path}.controller`)
      if (name.length > maxControllerBytes) causes.push(tooLong(`${path}.controller`, maxControllerBytes))
      return causes
    },
  },
  'networking.v1.IngressClassParametersReference': {
    defaults: { scope: 'Cluster' },
    validate: (value, { path }) => parameterErrors(value, path),
  },
  'networking.v1.NetworkPolicySpec': {
    setDefaults: spec => {
      if (spec.policyTypes === undefined) spec.policyTypes = spec.egress === undefined ? ['Ingress'] : ['Ingress', 'Egress']
    },
    uncheckedEnums: ['policyTypes'],
    validate: ({ policyTypes }, { path }) => {
      const types = (policyTypes ?? []) as string[]
      if (types.length > 2) return [invalidValue(`${path}.policyTypes`, types, 'may not specify more than two policyTypes')]
      return types.flatMap((type, index) =>
        type === 'Ingress' || type === 'Egress' ? [] : [unsupportedValue(`${path}.policyTypes[${index}]`, type, ['Ingress', 'Egress'])],
      )
    },
  },
  'networking.v1.NetworkPolicyPort': {
    defaults: { protocol: 'TCP' },
    uncheckedEnums: ['protocol'],
    validate: (value, { path }) => policyPortErrors(value, path),
  },
  'networking.v1.NetworkPolicyPeer': {
    validate: ({ podSelector, namespaceSelector, ipBlock }, { path }) => {
      const selectors = [podSelector, namespaceSelector].filter(selector => selector !== undefined)
      if (ipBlock === undefined && selectors.length === 0) return [requiredValue(path, 'must specify a peer')]
      return ipBlock !== undefined && selectors.length > 0 ? [forbiddenField(path, 'may not specify both ipBlock and another peer')] : []
    },
  },
  'networking.v1.IPBlock': {
    required: { cidr: '' },
    validate: ({ cidr, except }, { path }) => {
      if (typeof cidr !== 'string' || cidr === '') return []
      const causes = cidrErrors(cidr, `${path}.cidr`)
      // Bits beyond the prefix are accepted.
      if (causes.some(({ message }) => message.includes('must be a valid CIDR'))) return causes
      for (const [index, exceptCidr] of ((except ?? []) as string[]).entries()) {
        const itemPath = `${path}.except[${index}]`
        const cidrCauses = cidrErrors(exceptCidr, itemPath)
        causes.push(...cidrCauses)
        if (cidrCauses.length === 0 && !isStrictlyWithin(exceptCidr, cidr))
          causes.push(invalidValue(itemPath, exceptCidr, 'must be a strict subset of `cidr`'))
      }
      return causes
    },
  },
}

const wildcardHint =
  "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"

/** Errors of `host`, which must be a host name or a wildcard such as `*.example.com`. */
function hostErrors(host: string, path: string): StatusCause[] {
  if (!host.includes('*')) return subdomainErrors(host, path)
  const isWildcard = host.startsWith('*.') && host.length <= 253 && nameErrors(host.slice(2), 'dns1123Subdomain').length === 0
  return isWildcard ? [] : [invalidValue(path, host, wildcardHint)]
}

function subdomainErrors(name: string, path: string): StatusCause[] {
  return nameErrors(name, 'dns1123Subdomain').map(reason => invalidValue(path, name, reason))
}

const forbiddenSequences = ['//', '/./', '/../', '%2f', '%2F']
const forbiddenEndings = ['/..', '/.']

function pathErrors({ path: url = '', pathType }: Fields, path: string): StatusCause[] {
  // Go prints a missing type as null.
  if (pathType === undefined || pathType === null) return [requiredValue(`${path}.pathType`, 'pathType must be specified')]
  const urlPath = String(url)
  const reject = (reason: string) => invalidValue(`${path}.path`, urlPath, reason)
  const relativeCauses = urlPath.startsWith('/') ? [] : [reject('must be an absolute path')]
  switch (pathType) {
    case 'Exact':
    case 'Prefix':
      return [
        ...relativeCauses,
        ...forbiddenSequences.filter(sequence => urlPath.includes(sequence)).map(sequence => reject(`must not contain '${sequence}'`)),
        ...forbiddenEndings.filter(ending => urlPath.endsWith(ending)).map(ending => reject(`cannot end with '${ending}'`)),
      ]
    case 'ImplementationSpecific':
      return urlPath === '' ? [] : relativeCauses
    default:
      return [unsupportedValue(`${path}.pathType`, pathType, ['Exact', 'ImplementationSpecific', 'Prefix'])]
  }
}

function backendErrors({ service, resource }: Fields, path: string): StatusCause[] {
  if (isJsonObject(service) && isJsonObject(resource)) return [invalidValue(path, '', 'cannot set both resource and service backends')]
  if (isJsonObject(resource)) return typedReferenceErrors(resource, `${path}.resource`)
  if (!isJsonObject(service)) return [invalidValue(path, '', 'resource or service backend is required')]
  const name = String(service.name ?? '')
  const causes =
    name === ''
      ? [requiredValue(`${path}.service.name`)]
      : nameErrors(name, 'dns1123Label').map(reason => invalidValue(`${path}.service.name`, name, reason))
  const port = (service.port ?? {}) as Fields
  if (port.name && port.number) causes.push(invalidValue(path, '', 'cannot set both port name & port number'))
  else if (port.name) causes.push(...portName(`${path}.service.port.name`, String(port.name)))
  else if (port.number) causes.push(...portNumber(`${path}.service.port.number`, numberOf(port.number)))
  else causes.push(requiredValue(path, 'port name or number is required'))
  return causes
}

function typedReferenceErrors(reference: Fields, path: string): StatusCause[] {
  const group = typeof reference.apiGroup === 'string' ? subdomainErrors(reference.apiGroup, `${path}.apiGroup`) : []
  const parts = ['kind', 'name'].flatMap(field => {
    const value = String(reference[field] ?? '')
    const fieldPath = `${path}.${field}`
    return value === ''
      ? [requiredValue(fieldPath)]
      : nameErrors(value, 'pathSegment').map(reason => invalidValue(fieldPath, value, reason))
  })
  return [...group, ...parts]
}

function parameterErrors(reference: Fields, path: string): StatusCause[] {
  const { scope, namespace } = reference
  const causes = typedReferenceErrors(reference, path)
  const namespacePath = `${path}.namespace`
  if (scope !== 'Cluster' && scope !== 'Namespace') return [...causes, unsupportedValue(`${path}.scope`, scope, ['Cluster', 'Namespace'])]
  if (scope === 'Cluster') {
    if (namespace !== undefined) causes.push(forbiddenField(namespacePath, "`parameters.scope` is set to 'Cluster'"))
  } else if (typeof namespace !== 'string') causes.push(requiredValue(namespacePath, "`parameters.scope` is set to 'Namespace'"))
  else causes.push(...nameErrors(namespace, 'dns1123Label').map(reason => invalidValue(namespacePath, namespace, reason)))
  return causes
}

function policyPortErrors({ protocol, port, endPort }: Fields, path: string): StatusCause[] {
  const causes: StatusCause[] = []
  if (!protocols.includes(String(protocol))) causes.push(unsupportedValue(`${path}.protocol`, protocol, protocols))
  const hasEnd = typeof endPort === 'number'
  const rejectEnd = (reason: string) => causes.push(invalidValue(`${path}.endPort`, endPort, reason))
  if (typeof port === 'number') {
    causes.push(...portNumber(`${path}.port`, port))
    // Kubernetes reports the port here, not the end port.
    if (hasEnd && endPort < port) causes.push(invalidValue(`${path}.endPort`, port, 'must be greater than or equal to `port`'))
    if (hasEnd) causes.push(...portNumber(`${path}.endPort`, endPort))
  } else if (typeof port === 'string') {
    if (hasEnd) rejectEnd('may not be specified when `port` is non-numeric')
    causes.push(...portName(`${path}.port`, port))
  } else if (hasEnd) rejectEnd('may not be specified when `port` is not specified')
  return causes
}
