import { randomInt } from 'node:crypto'
import type { KubeObject } from '../../../object/index.ts'
import type { ObjectReader } from '../object-reader.ts'
import { type Fields, fieldsOf, intOf, itemsOf, textOf, textsOf } from '../type-rules/index.ts'

/** Addresses of Services: 10.96.0.0/16 without its first and last. Nothing listens there. */
const firstAddress = (10 << 24) | (96 << 16)
const addressCount = 2 ** 16
/** As kube-apiserver, what is given out unasked leaves the lower part to those who choose for themselves. */
const reservedAddresses = 256
export const nodePorts = { first: 30_000, last: 32_767 } as const
const reservedPorts = 86

/**
 * Which Service has which address and port. A claim is believed only as long as its Service still has what it claims, so
 * that a create that failed, or a Service that is gone, holds nothing. One entry for each address and port ever given out,
 * at most 68,304 of them.
 */
export class ServiceAllocation {
  readonly #reader: ObjectReader
  readonly #owners = new Map<string, string>()
  #isRead = false

  constructor(reader: ObjectReader) {
    this.#reader = reader
  }

  /** True if no other Service than `service` has the address or port; then it is `service`'s. */
  claim(what: string, service: KubeObject): boolean {
    this.#readServices()
    const key = keyOf(service)
    const owner = this.#owners.get(what)
    if (owner !== undefined && owner !== key && this.#isClaimedBy(owner, what)) return false
    this.#owners.set(what, key)
    return true
  }

  /** A free address; undefined when all are taken. */
  address(service: KubeObject): string | undefined {
    return this.#claimAny(addressCount - reservedAddresses - 2, offset => addressAt(reservedAddresses + offset + 1), service)
  }

  /** A free port of the nodes. */
  port(service: KubeObject): number | undefined {
    const { first, last } = nodePorts
    const start = first + reservedPorts
    const found = this.#claimAny(last - start + 1, offset => portKey(start + offset), service)
    return found === undefined ? undefined : Number(found.slice(1))
  }

  #claimAny(count: number, at: (offset: number) => string, service: KubeObject): string | undefined {
    const start = randomInt(count)
    for (let step = 0; step < count; step++) {
      const what = at((start + step) % count)
      if (this.claim(what, service)) return what
    }
    return undefined
  }

  #isClaimedBy(owner: string, what: string): boolean {
    const service = this.#reader.get('services', owner)
    return service !== undefined && claimsOf(service).includes(what)
  }

  #readServices(): void {
    if (this.#isRead) return
    this.#isRead = true
    for (const service of this.#reader.all('services')) for (const what of claimsOf(service)) this.#owners.set(what, keyOf(service))
  }
}

const allocations = new WeakMap<ObjectReader, ServiceAllocation>()

/** That of a server: there is one for each store. */
export function allocationOf(reader: ObjectReader): ServiceAllocation {
  let allocation = allocations.get(reader)
  if (!allocation) {
    allocation = new ServiceAllocation(reader)
    allocations.set(reader, allocation)
  }
  return allocation
}

export const portKey = (port: number): string => `:${port}`

/** Whether the cluster gives this address out. */
export function isInRange(address: string): boolean {
  const [a, b, c, d] = address.split('.').map(Number)
  const offset = (((a! << 24) | (b! << 16) | (c! << 8) | d!) >>> 0) - firstAddress
  return address.includes('.') && offset > 0 && offset < addressCount - 1
}

/** The ClusterIP of the Service `default/kubernetes`: the first address of the range. */
export const kubernetesServiceIp = addressAt(1)

function addressAt(offset: number): string {
  const bits = firstAddress + offset
  return [24, 16, 8, 0].map(shift => (bits >>> shift) & 255).join('.')
}

function keyOf({ metadata: { namespace, name } }: KubeObject): string {
  return `${namespace}/${name}`
}

function claimsOf(service: KubeObject): string[] {
  const spec: Fields = fieldsOf(service.spec)
  const ports = itemsOf(spec.ports).map(({ nodePort }) => intOf(nodePort))
  return [
    ...textsOf(spec.clusterIPs).filter(address => address !== 'None'),
    ...[...ports, intOf(spec.healthCheckNodePort)].filter(port => port > 0).map(portKey),
    ...(textOf(spec.clusterIP) !== '' && spec.clusterIP !== 'None' ? [textOf(spec.clusterIP)] : []),
  ]
}
