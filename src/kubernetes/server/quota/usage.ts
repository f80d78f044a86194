import { type KubeObject, parseQuantity, type Quantity } from '../../object/index.ts'
import { type Amounts, addAmounts, amountsOf, type Fields, fieldsOf, itemsOf, podLimits, podRequests, textOf } from '../registry/index.ts'

const claims = 'persistentvolumeclaims'
const classSuffix = '.storageclass.storage.k8s.io/'
/** Resources that are also counted under their own name, in addition to `count/…`. */
const aliases = new Set(['configmaps', 'resourcequotas', 'replicationcontrollers', 'secrets'])

/** The table of the objects that a name in `spec.hard` limits, such as `deployments.apps` for `count/deployments.apps`. */
export function tableOf(name: string): string {
  if (name.startsWith('count/')) return name.slice('count/'.length)
  if (aliases.has(name)) return name
  if (name === 'services' || name === 'services.nodeports' || name === 'services.loadbalancers') return 'services'
  if (name === claims || name === 'requests.storage' || name.includes(classSuffix)) return claims
  return 'pods'
}

const one: Quantity = { nanos: 1_000_000_000n, form: 'decimal' }
const count = (number: number): Quantity => ({ nanos: BigInt(number) * one.nanos, form: 'decimal' })

/** Kinds whose objects use more than their count; only these are parsed. */
const measured: Readonly<Record<string, (object: KubeObject) => Amounts>> = {
  pods: podUsage,
  services: serviceUsage,
  [claims]: claimUsage,
}

export const isMeasured = (table: string): boolean => Object.hasOwn(measured, table)

/** The usage of an object by the names that a quota may have; `object` is called only for {@link isMeasured} kinds. */
export function usageOf(table: string, object: () => KubeObject): Amounts {
  const usage: Amounts = new Map([[`count/${table}`, one]])
  if (isMeasured(table)) addAmounts(usage, measured[table]!(object()))
  else if (aliases.has(table)) usage.set(table, one)
  return usage
}

function podUsage({ spec, status }: KubeObject): Amounts {
  const { phase } = fieldsOf(status)
  // A Pod that has ended uses no resources.
  if (phase === 'Failed' || phase === 'Succeeded') return new Map()
  const fields = fieldsOf(spec)
  const overhead = amountsOf(fields.overhead)
  const [requests, limits] = [podRequests(fields), podLimits(fields)]
  addAmounts(requests, overhead)
  for (const [name, amount] of overhead) if (limits.has(name)) addAmounts(limits, new Map([[name, amount]]))
  return namedAmounts(requests, limits)
}

/** Requests and limits under the names of quotas. */
function namedAmounts(requests: Amounts, limits: Amounts): Amounts {
  const usage: Amounts = new Map([['pods', one]])
  for (const [name, amount] of requests) {
    if (computeNames.includes(name) || name.startsWith('hugepages-')) usage.set(name, amount)
    usage.set(`requests.${name}`, amount)
  }
  for (const [name, amount] of limits) if (computeNames.includes(name)) usage.set(`limits.${name}`, amount)
  return usage
}

const computeNames = ['cpu', 'memory', 'ephemeral-storage']

function serviceUsage({ spec }: KubeObject): Amounts {
  const { type, ports, allocateLoadBalancerNodePorts } = fieldsOf(spec)
  const all = itemsOf(ports)
  const isBalanced = type === 'LoadBalancer'
  const onNodes = isBalanced && allocateLoadBalancerNodePorts === false ? all.filter(({ nodePort }) => nodePort) : all
  return new Map([
    ['services', one],
    ['services.nodeports', count(isBalanced || type === 'NodePort' ? onNodes.length : 0)],
    ['services.loadbalancers', count(isBalanced ? 1 : 0)],
  ])
}

function claimUsage({ spec, metadata }: KubeObject): Amounts {
  const { resources, storageClassName } = fieldsOf(spec)
  const usage: Amounts = new Map([[claims, one]])
  const storage = textOf(fieldsOf(fieldsOf(resources).requests).storage)
  if (storage !== '') usage.set('requests.storage', wholeBytes(parseQuantity(storage)))
  const className = metadata.annotations?.['volume.beta.kubernetes.io/storage-class'] ?? textOf(storageClassName)
  if (className !== '') for (const [name, amount] of [...usage]) usage.set(`${className}${classSuffix}${name}`, amount)
  return usage
}

function wholeBytes({ nanos, form }: Quantity): Quantity {
  return { nanos: ((nanos + one.nanos - 1n) / one.nanos) * one.nanos, form }
}

/** The resources of `wanted` that containers of a Pod must set and do not, with the names of those containers. */
export function missingResources(spec: Fields, desired: readonly string[]): Map<string, string[]> {
  const missing = new Map<string, string[]>()
  // Resources of the Pod itself are sufficient.
  if (Object.values(fieldsOf(spec.resources)).some(amounts => Object.keys(fieldsOf(amounts)).length > 0)) return missing
  const demanded = desired.filter(name => demandedNames.has(name)).sort()
  for (const { name, resources } of [...itemsOf(spec.containers), ...itemsOf(spec.initContainers)]) {
    const { requests, limits } = fieldsOf(resources)
    const provided = namedAmounts(amountsOf(requests), amountsOf(limits))
    for (const resource of demanded) {
      if (provided.has(resource)) continue
      const containers = missing.get(resource)
      if (containers) containers.push(textOf(name))
      else missing.set(resource, [textOf(name)])
    }
  }
  return missing
}

const demandedNames = new Set(['cpu', 'memory', 'requests.cpu', 'requests.memory', 'limits.cpu', 'limits.memory'])
