import { isIPv4, isIPv6 } from 'node:net'
import { invalidValue, type StatusCause } from '../../../object/index.ts'

/** The bits of an address, most significant first. */
type Address = { readonly bits: bigint; readonly width: 32 | 128 }

/** Errors of an IP address; IPv6 may be in any form. */
export function ipErrors(value: string, path: string): StatusCause[] {
  if (/^\d+\.\d+\.\d+\.\d+$/.test(value) && !isIPv4(value) && isIPv4(withoutZeros(value))) {
    return [invalidValue(path, value, 'must not have leading 0s')]
  }
  if (!isAddress(value)) return [invalidValue(path, value, 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)')]
  return isMapped(value) ? [invalidValue(path, value, 'must not be an IPv4-mapped IPv6 address')] : []
}

/** As {@link ipErrors}, but IPv6 must be in canonical form. */
export function canonicalIpErrors(value: string, path: string): StatusCause[] {
  const causes = ipErrors(value, path)
  if (causes.length > 0 || isIPv4(value)) return causes
  const canonical = canonicalIpv6(value)
  return canonical === value ? [] : [invalidValue(path, value, `must be in canonical form (${JSON.stringify(canonical)})`)]
}

/** The canonical form of an IPv6 address (RFC 5952), which the URL standard uses. */
export const canonicalIpv6 = (address: string): string => new URL(`http://[${address}]`).hostname.slice(1, -1)

/** Errors of an address range such as `10.0.0.0/8`. */
export function cidrErrors(value: string, path: string): StatusCause[] {
  const [address = '', length, ...more] = value.split('/')
  const width = isIPv4(withoutZeros(address)) ? 32 : 128
  const isRange = length !== undefined && more.length === 0 && /^\d{1,4}$/.test(length) && Number(length) <= width
  if (!isRange || !isAddress(withoutZeros(address))) {
    return [invalidValue(path, value, 'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)')]
  }
  if (!isAddress(address) || (length.length > 1 && length.startsWith('0'))) {
    return [invalidValue(path, value, 'must not have leading 0s in IP or prefix length')]
  }
  if (isMapped(address)) return [invalidValue(path, value, 'must not have an IPv4-mapped IPv6 address')]
  const range = readRange(value)
  return range && range.first !== range.bits ? [invalidValue(path, value, 'must not have bits set beyond the prefix length')] : []
}

/** Whether the range `inner` is inside the range `outer` and smaller. */
export function isStrictlyWithin(inner: string, outer: string): boolean {
  const [a, b] = [readRange(inner), readRange(outer)]
  if (!a || !b || a.width !== b.width || b.length >= a.length) return false
  const shift = BigInt(b.width - b.length)
  return a.bits >> shift === b.bits >> shift
}

/** Errors of the address of an endpoint, which must not lead back to the client. */
export function endpointIpErrors(value: string, path: string): StatusCause[] {
  const address = readAddress(value)
  if (!address) return []
  const { bits, width } = address
  const hasPrefix = (prefix: bigint, length: number) => bits >> BigInt(width - length) === prefix
  const is4 = width === 32
  const causes: StatusCause[] = []
  const reject = (reason: string) => causes.push(invalidValue(path, value, reason))
  if (bits === 0n) reject(`may not be unspecified (${value})`)
  if (is4 ? hasPrefix(127n, 8) : bits === 1n) reject('may not be in the loopback range (127.0.0.0/8, ::1/128)')
  if (is4 ? hasPrefix(0xa9fen, 16) : hasPrefix(0x3fan, 10)) reject('may not be in the link-local range (169.254.0.0/16, fe80::/10)')
  if (is4 ? hasPrefix(0xe00000n, 24) : hasPrefix(0xff02n, 16)) {
    reject('may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)')
  }
  return causes
}

/** As `isIPv4` or `isIPv6`, but without an IPv6 zone, which Kubernetes rejects. */
export const isAddress = (value: string): boolean => isIPv4(value) || (isIPv6(value) && !value.includes('%'))

const withoutZeros = (value: string) => value.replace(/(^|\.)0+(?=\d)/g, '$1')

function isMapped(value: string): boolean {
  const address = readAddress(value)
  return address?.width === 128 && address.bits >> 32n === 0xffffn
}

function readRange(value: string): (Address & { length: number; first: bigint }) | undefined {
  const [addressText = '', prefixText = ''] = value.split('/')
  const address = readAddress(addressText)
  if (!address) return undefined
  const shift = BigInt(address.width - Number(prefixText))
  return { ...address, length: Number(prefixText), first: (address.bits >> shift) << shift }
}

function readAddress(value: string): Address | undefined {
  if (isIPv4(value)) return { bits: value.split('.').reduce((bits, part) => (bits << 8n) + BigInt(part), 0n), width: 32 }
  if (!isAddress(value)) return undefined
  // Groups of hexadecimal digits with at most one `::`.
  const [head = '', tail] = canonicalIpv6(value).split('::')
  const groups = (text: string | undefined) => (text ? text.split(':') : [])
  const [leading, trailing] = [groups(head), groups(tail)]
  const zeros = Array.from({ length: 8 - leading.length - trailing.length }, () => '0')
  return { bits: [...leading, ...zeros, ...trailing].reduce((bits, group) => (bits << 16n) + BigInt(`0x${group}`), 0n), width: 128 }
}
