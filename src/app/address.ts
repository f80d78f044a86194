import { BlockList, isIP } from 'node:net'

export type Address = { host: string; port: number }

/**
 * Parses `HOST:PORT`, `[IPV6]:PORT`, or `PORT` alone, which means loopback.
 * @throws {RangeError} for anything else.
 */
export function parseAddress(text: string): Address {
  const [, bracketed, plain, digits] = /^(?:\[([0-9a-fA-F:.]+)\]:|([^:[\]]+):)?(\d{1,5})$/.exec(text) ?? []
  const port = Number(digits)
  if (digits === undefined || port > 65_535) {
    throw new RangeError(`address ${JSON.stringify(text)} must be HOST:PORT with a port from 0 to 65535, such as 127.0.0.1:7466`)
  }
  return { host: bracketed ?? plain ?? '127.0.0.1', port }
}

export const formatAddress = ({ host, port }: Address) => `${host.includes(':') ? `[${host}]` : host}:${port}`

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8)
loopback.addAddress('::1', 'ipv6')

/**
 * Whether only this machine can reach the address: `localhost`, or an IP address of the loopback interface. Any other name may resolve to any address,
 * `127.0.0.1.example.com` too.
 */
export function isLoopback({ host }: Pick<Address, 'host'>): boolean {
  const version = isIP(host)
  return version === 0 ? host.toLowerCase() === 'localhost' : loopback.check(host, version === 6 ? 'ipv6' : 'ipv4')
}

/** The URL that reaches a listener on `address` from this machine; a wildcard address becomes loopback. */
export function urlOf(scheme: 'http' | 'https', { host, port }: Address): string {
  const reachable = host === '' || host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  return `${scheme}://${formatAddress({ host: reachable, port })}`
}
