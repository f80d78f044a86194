import { isIPv6 } from 'node:net'
import { canonicalIpv6 } from '../type-rules/index.ts'

/** Warns about IPv6 addresses that are not in canonical form. */
export function addressWarnings(path: string, address: unknown): string[] {
  if (typeof address !== 'string' || !isIPv6(address) || address.includes('%')) return []
  const canonical = canonicalIpv6(address)
  const reason = `should be in RFC 5952 canonical format (${JSON.stringify(canonical)})`
  return canonical === address ? [] : [`${path}: IPv6 address ${JSON.stringify(address)} ${reason}`]
}
