import type { NetworkInterfaceInfo } from 'node:os'

/**
 * The address to publish for a listener that is bound to `bound`. A wildcard stands for the first address of this machine that other
 * machines can reach, IPv4 first, as kube-apiserver chooses its `--advertise-address`; without one it is the loopback address.
 */
export function advertiseAddress(bound: string, interfaces: NodeJS.Dict<NetworkInterfaceInfo[]>): string {
  if (bound !== '0.0.0.0' && bound !== '::') return bound
  const external = Object.values(interfaces)
    .flatMap(addresses => addresses ?? [])
    .filter(({ internal, address }) => !internal && !address.startsWith('fe80:'))
  const families = bound === '::' ? ['IPv4', 'IPv6'] : ['IPv4']
  for (const family of families) {
    const found = external.find(address => address.family === family)
    if (found) return found.address
  }
  return '127.0.0.1'
}
