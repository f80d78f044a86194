import { isIPv6 } from 'node:net'

/** The network by which clients are limited: an IPv4 address, or the /64 network of an IPv6 address, which one client has to itself. Empty for a Unix socket. */
export function networkOf(address = ''): string {
  if (!isIPv6(address)) return address
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)
  if (mapped?.[1]) return mapped[1]
  const [head = '', tail] = address.split('%', 1)[0]?.split('::') ?? []
  const groups = head === '' ? [] : head.split(':')
  const last = tail ? tail.split(':') : []
  const all = tail === undefined ? groups : [...groups, ...Array<string>(8 - groups.length - last.length).fill('0'), ...last]
  return `${all.slice(0, 4).join(':')}::/64`
}
