import { opaqueNames } from '../declarations.ts'
import { CelError, Opaque, type Value } from '../values.ts'
import { asString, type FunctionTable, unwrapOpaque } from './implementation.ts'

/** An address as a number of 32 or 128 bits. */
class Address {
  readonly bits: 32 | 128
  readonly value: bigint

  constructor(bits: 32 | 128, value: bigint) {
    this.bits = bits
    this.value = value
  }
}

class Range {
  readonly address: Address
  readonly prefix: number

  constructor(address: Address, prefix: number) {
    this.address = address
    this.prefix = prefix
  }
}

/** IP addresses and CIDR ranges. */
export const networks: FunctionTable = {
  // Both a function, `ip(string)`, and a method, `cidr.ip()`.
  ip: value => (value instanceof Opaque ? makeIp(cidr(value).address) : makeIp(readAddress(asString(value), 'IP Address'))),
  isIP: text => parseAddress(asString(text)) instanceof Address,
  'ip.isCanonical': text => {
    const source = asString(text)
    return formatAddress(readAddress(source, 'IP Address')) === source
  },
  family: value => (ip(value!).bits === 32 ? 4n : 6n),
  isUnspecified: value => ip(value!).value === 0n,
  isLoopback: value => isLoopback(ip(value!)),
  isLinkLocalMulticast: value => isLinkLocalMulticast(ip(value!)),
  isLinkLocalUnicast: value => isLinkLocalUnicast(ip(value!)),
  isGlobalUnicast: value => {
    const address = ip(value!)
    const isBroadcast = address.bits === 32 && address.value === 0xffffffffn
    return !(isBroadcast || address.value === 0n || isLoopback(address) || isMulticast(address) || isLinkLocalUnicast(address))
  },
  cidr: text => makeRange(readRange(asString(text))),
  isCIDR: text => typeof parseRange(asString(text)) !== 'string',
  containsIP: (range, address) => {
    const inner = typeof address === 'string' ? readAddress(address, 'IP Address') : ip(address!)
    return contains(cidr(range!), inner)
  },
  containsCIDR: (range, other) => {
    const inner = typeof other === 'string' ? readRange(other) : cidr(other!)
    const outer = cidr(range!)
    return outer.prefix <= inner.prefix && contains(outer, mask(inner))
  },
  masked: range => {
    const { prefix } = cidr(range!)
    return makeRange(new Range(mask(cidr(range!)), prefix))
  },
  prefixLength: range => BigInt(cidr(range!).prefix),
}

const isAddress = (inner: unknown): inner is Address => inner instanceof Address
const isRange = (inner: unknown): inner is Range => inner instanceof Range
const ip = (value: Value) => unwrapOpaque(value, opaqueNames.IP, isAddress)
const cidr = (value: Value) => unwrapOpaque(value, opaqueNames.CIDR, isRange)

function makeIp(address: Address): Opaque {
  return new Opaque(opaqueNames.IP, address, formatAddress(address))
}

function makeRange(range: Range): Opaque {
  return new Opaque(opaqueNames.CIDR, range, `${formatAddress(range.address)}/${range.prefix}`)
}

function readAddress(text: string, what: string): Address {
  const address = parseAddress(text)
  if (address instanceof Address) return address
  const quoted = JSON.stringify(text.slice(0, 100))
  if (address === 'zone') throw new CelError(`IP address ${quoted} with zone value is not allowed`)
  if (address === 'mapped') throw new CelError(`IPv4-mapped IPv6 address ${quoted} is not allowed`)
  throw new CelError(`${what} ${quoted} parse error during conversion from string: ParseAddr(${quoted}): unable to parse IP`)
}

function parseAddress(text: string): Address | 'zone' | 'mapped' | 'none' {
  if (text.length > 60) return 'none'
  if (!text.includes(':')) {
    const value = parseIpv4(text)
    return value === undefined ? 'none' : new Address(32, value)
  }
  if (text.includes('%')) return 'zone'
  const value = parseIpv6(text)
  if (value === undefined) return 'none'
  return value >> 32n === 0xffffn ? 'mapped' : new Address(128, value)
}

function parseIpv4(text: string): bigint | undefined {
  const parts = text.split('.')
  if (parts.length !== 4 || !parts.every(part => /^(0|[1-9]\d{0,2})$/.test(part) && Number(part) < 256)) return undefined
  return parts.reduce((value, part) => (value << 8n) | BigInt(part), 0n)
}

function parseIpv6(text: string): bigint | undefined {
  const halves = text.split('::')
  if (halves.length > 2) return undefined
  const groups = halves.map(half => (half === '' ? [] : half.split(':')))
  const lastHalf = groups.at(-1)!
  const last = lastHalf.at(-1)
  if (last?.includes('.')) {
    const v4 = parseIpv4(last)
    if (v4 === undefined) return undefined
    lastHalf.splice(-1, 1, (v4 >> 16n).toString(16), (v4 & 0xffffn).toString(16))
  }
  const [head = [], tail = []] = groups
  const count = head.length + tail.length
  if (halves.length === 1 ? count !== 8 : count > 7) return undefined
  const all = halves.length === 1 ? head : [...head, ...Array<string>(8 - count).fill('0'), ...tail]
  if (!all.every(group => /^[0-9a-fA-F]{1,4}$/.test(group))) return undefined
  return all.reduce((value, group) => (value << 16n) | BigInt(`0x${group}`), 0n)
}

/** RFC 5952: the longest run of two or more zero groups is omitted. */
function formatAddress({ bits, value }: Address): string {
  if (bits === 32) return [24n, 16n, 8n, 0n].map(shift => (value >> shift) & 255n).join('.')
  const groups = Array.from({ length: 8 }, (_, index) => ((value >> BigInt(112 - 16 * index)) & 0xffffn).toString(16))
  let best = { from: -1, length: 1 }
  for (let from = 0; from < 8; from++) {
    let length = 0
    while (groups[from + length] === '0') length++
    if (length > best.length) best = { from, length }
  }
  if (best.from < 0) return groups.join(':')
  return `${groups.slice(0, best.from).join(':')}::${groups.slice(best.from + best.length).join(':')}`
}

function readRange(text: string): Range {
  const range = parseRange(text)
  if (typeof range === 'string') {
    const what = 'network address parse error during conversion from string'
    throw new CelError(`${what}: ${what}: netip.ParsePrefix(${JSON.stringify(text.slice(0, 100))}): ${range}`)
  }
  return range
}

function parseRange(text: string): Range | string {
  const slash = text.lastIndexOf('/')
  if (slash < 0) return "no '/'"
  const address = parseAddress(text.slice(0, slash))
  const bits = text.slice(slash + 1)
  if (!(address instanceof Address)) return 'invalid address'
  if (!/^(0|[1-9]\d{0,2})$/.test(bits) || Number(bits) > address.bits) return 'prefix length out of range'
  return new Range(address, Number(bits))
}

function mask({ address: { bits, value }, prefix }: Range): Address {
  const shift = BigInt(bits - prefix)
  return new Address(bits, (value >> shift) << shift)
}

function contains(range: Range, address: Address): boolean {
  const shift = BigInt(range.address.bits - range.prefix)
  return range.address.bits === address.bits && range.address.value >> shift === address.value >> shift
}

const isLoopback = ({ bits, value }: Address) => (bits === 32 ? value >> 24n === 127n : value === 1n)
const isMulticast = ({ bits, value }: Address) => (bits === 32 ? value >> 28n === 14n : value >> 120n === 0xffn)
const isLinkLocalUnicast = ({ bits, value }: Address) => (bits === 32 ? value >> 16n === 0xa9fen : value >> 118n === 0x3fan)
const isLinkLocalMulticast = ({ bits, value }: Address) =>
  bits === 32 ? value >> 8n === 0xe00000n : (value >> 112n) % 0x10n === 2n && value >> 120n === 0xffn
