import { randomInt } from 'node:crypto'
import type { KubeObject } from '../../../object/index.ts'
import type { ObjectReader } from '../object-reader.ts'
import { type Fields, fieldsOf, intOf, itemsOf, textOf, textsOf } from '../type-rules/index.ts'

/** The range of cluster IPs: 10.96.0.0/16 without its first and last address. Nothing listens on them. */
const firstAddress = (10 << 24) | (96 << 16)
const addressCount = 2 ** 16
/** As in kube-apiserver, automatic allocation leaves the lower part of the range to Services that choose their address. */
const reservedAddresses = 256
export const nodePorts = { first: 30_000, last: 32_767 } as const
const reservedPorts = 86

/**
 * Allocates the cluster IPs and node ports of Services. An allocation is valid only while its Service still has the value, so a failed
 * create and a deleted Service release theirs. The map has one entry per address and port that was ever allocated: at most 68,304
 * (invariant 10).
 */
export class ServiceAllocation {
  readonly #reader: ObjectReader
  readonly #owners = new Map<string, string>()
  #isRead = false

  constructor(reader: ObjectReader) {
    this.#reader = reader
  }

  /** Allocates an address or port to `service`; false if another Service has it. */
  claim(addressOrPort: string, service: KubeObject): boolean {
    this.#readServices()
    const key = keyOf(service)
    const owner = this.#owners.get(addressOrPort)
    // A Service that had the reserved address before it was reserved keeps it.
    if (addressOrPort === kubernetesServiceIp && key !== kubernetesServiceKey && !(owner === key && this.#isClaimedBy(key, addressOrPort)))
      return false
    if (owner !== undefined && owner !== key && this.#isClaimedBy(owner, addressOrPort)) return false
    this.#owners.set(addressOrPort, key)
    return true
  }

  /** Allocates a free address; undefined if there is none. */
  address(service: KubeObject): string | undefined {
    return this.#claimAny(addressCount - reservedAddresses - 2, offset => addressAt(reservedAddresses + offset + 1), service)
  }

  /** Allocates a free node port; undefined if there is none. */
  port(service: KubeObject): number | undefined {
    const { first, last } = nodePorts
    const start = first + reservedPorts
    const found = this.#claimAny(last - start + 1, offset => portKey(start + offset), service)
    return found === undefined ? undefined : Number(found.slice(1))
  }

  #claimAny(count: number, keyAt: (offset: number) => string, service: KubeObject): string | undefined {
    const start = randomInt(count)
    for (let step = 0; step < count; step++) {
      const addressOrPort = keyAt((start + step) % count)
      if (this.claim(addressOrPort, service)) return addressOrPort
    }
    return undefined
  }

  #isClaimedBy(owner: string, addressOrPort: string): boolean {
    const service = this.#reader.get('services', owner)
    return service !== undefined && claimsOf(service).includes(addressOrPort)
  }

  #readServices(): void {
    if (this.#isRead) return
    this.#isRead = true
    for (const service of this.#reader.all('services'))
      for (const addressOrPort of claimsOf(service)) this.#owners.set(addressOrPort, keyOf(service))
  }
}

const allocations = new WeakMap<ObjectReader, ServiceAllocation>()

/** The allocation of a server: one for each store. */
export function allocationOf(reader: ObjectReader): ServiceAllocation {
  let allocation = allocations.get(reader)
  if (!allocation) {
    allocation = new ServiceAllocation(reader)
    allocations.set(reader, allocation)
  }
  return allocation
}

export const portKey = (port: number): string => `:${port}`

/** Whether the address is in the range of cluster IPs. */
export function isInRange(address: string): boolean {
  const [a, b, c, d] = address.split('.').map(Number)
  const offset = (((a! << 24) | (b! << 16) | (c! << 8) | d!) >>> 0) - firstAddress
  return address.includes('.') && offset > 0 && offset < addressCount - 1
}

const kubernetesServiceKey = 'default/kubernetes'

/** The ClusterIP of the Service `default/kubernetes`: the first address of the range, reserved for it. */
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
