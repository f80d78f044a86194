import { invalidValue, isJsonObject, type KubeObject } from '../../../object/index.ts'
import { defaultClass } from '../admission/index.ts'
import { ageColumn, column, nameColumn } from '../printer-columns.ts'
import { type Fields, fieldsOf, ingressStatusErrors, itemsOf, textOf } from '../type-rules/index.ts'
import { selectorAt, textAt, valueAtPath } from './column-values.ts'
import type { KindDeclaration } from './kind-declaration.ts'

const classAnnotation = 'kubernetes.io/ingress.class'
const defaultClassAnnotation = 'ingressclass.kubernetes.io/is-default-class'

export const networkingKinds: readonly KindDeclaration[] = [
  {
    group: 'networking.k8s.io',
    kind: 'Ingress',
    plural: 'ingresses',
    shortNames: ['ing'],
    typeName: 'io.k8s.api.networking.v1.Ingress',
    hasStatus: true,
    hasGeneration: true,
    columns: [
      nameColumn,
      column('Class', 'The name of the IngressClass resource that should be used for additional configuration', object =>
        textAt(object, 'spec.ingressClassName'),
      ),
      column('Hosts', 'Hosts that incoming requests are matched against before the ingress rule', hostsOf),
      column('Address', 'Address is a list containing ingress points for the load-balancer', addressesOf),
      column('Ports', 'Ports of TLS configurations that open', object => {
        const tls = valueAtPath(object, 'spec.tls')
        return Array.isArray(tls) && tls.length > 0 ? '80, 443' : '80'
      }),
      ageColumn,
    ],
    prepareForCreate: (ingress, reader) => {
      const spec = fieldsOf(ingress.spec)
      if (spec.ingressClassName !== undefined || ingress.metadata.annotations?.[classAnnotation] !== undefined) return
      const ingressClassName = defaultClass(reader.all('ingressclasses.networking.k8s.io'), [defaultClassAnnotation])
      if (ingressClassName !== undefined) ingress.spec = { ...spec, ingressClassName }
    },
    validate: ({ metadata, spec }, oldObject) => {
      const annotatedClass = metadata.annotations?.[classAnnotation]
      const { ingressClassName } = (spec ?? {}) as Fields
      if (oldObject || annotatedClass === undefined || ingressClassName === undefined || annotatedClass === ingressClassName) return []
      return [invalidValue(`annotations.${classAnnotation}`, annotatedClass, 'must match `ingressClassName` when both are specified')]
    },
    validateStatusUpdate: ({ status }, oldObject) => ingressStatusErrors(status, oldObject?.status),
    warnings: ({ metadata, spec }, oldObject) => {
      const isDeprecated =
        metadata.annotations?.[classAnnotation] !== undefined && (spec as Fields | undefined)?.ingressClassName === undefined
      return isDeprecated && !oldObject ? [`annotation "${classAnnotation}" is deprecated, please use 'spec.ingressClassName' instead`] : []
    },
  },
  {
    group: 'networking.k8s.io',
    kind: 'IngressClass',
    plural: 'ingressclasses',
    cluster: true,
    typeName: 'io.k8s.api.networking.v1.IngressClass',
    hasGeneration: true,
    columns: [
      {
        ...nameColumn,
        read: ({ metadata: { name, annotations } }) => (annotations?.[defaultClassAnnotation] === 'true' ? `${name} (default)` : name),
      },
      column('Controller', 'Controller that is responsible for handling this class', object => textAt(object, 'spec.controller', '')),
      column('Parameters', 'A reference to a resource with additional parameters', object => {
        const parameters = valueAtPath(object, 'spec.parameters')
        if (!isJsonObject(parameters)) return '<none>'
        const { apiGroup, kind, name } = parameters
        return `${kind}${apiGroup === undefined ? '' : `.${apiGroup}`}/${name}`
      }),
      ageColumn,
    ],
    validate: (object, oldObject) => {
      const [controller, oldController] = [object, oldObject].map(version => version && textAt(version, 'spec.controller', ''))
      return oldObject && controller !== oldController ? [invalidValue('spec.controller', controller, 'field is immutable')] : []
    },
  },
  {
    group: 'networking.k8s.io',
    kind: 'NetworkPolicy',
    plural: 'networkpolicies',
    shortNames: ['netpol'],
    typeName: 'io.k8s.api.networking.v1.NetworkPolicy',
    hasGeneration: true,
    columns: [
      nameColumn,
      column(
        'Pod-Selector',
        "podSelector selects the pods to which this NetworkPolicy object applies. The array of rules is applied to any pods selected by this field. An empty selector matches all pods in the policy's namespace. Multiple network policies can select the same set of pods. In this case, the ingress rules for each are combined additively. This field is optional. If it is not specified, it defaults to an empty selector.",
        object => selectorAt(object, 'spec.podSelector'),
      ),
      ageColumn,
    ],
  },
]

function hostsOf(ingress: KubeObject): string {
  const rules = valueAtPath(ingress, 'spec.rules')
  if (!Array.isArray(rules)) return '*'
  const hosts: string[] = []
  let isMore = false
  for (const { host } of rules as { host?: string }[]) {
    if (hosts.length === maxHosts) isMore = true
    else if (host) hosts.push(host)
  }
  if (hosts.length === 0) return '*'
  return hosts.join(',') + (isMore ? ` + ${rules.length - maxHosts} more...` : '')
}

const maxHosts = 3

function addressesOf({ status }: KubeObject): string {
  const addresses = itemsOf(fieldsOf(fieldsOf(status).loadBalancer).ingress).map(({ ip, hostname }) => textOf(ip) || textOf(hostname))
  return [...new Set(addresses.filter(address => address !== ''))].sort().join(',')
}
