import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { canonicalIpErrors, cidrErrors, endpointIpErrors, ipErrors, isStrictlyWithin } from './ip-address.ts'

type Check = (value: string, path: string) => { message: string }[]
const reasonsOf = (check: Check, value: string) => check(value, 'at').map(({ message }) => message.replace(/^Invalid value: ".*?": /, ''))

for (const [value, ...reasons] of [
  ['10.9.8.7'],
  ['fd00::1'],
  ['FD00:0:0::1'],
  ['010.0.0.1', 'must not have leading 0s'],
  ['::ffff:1.2.3.4', 'must not be an IPv4-mapped IPv6 address'],
  ['fe80::1%eth0', 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)'],
  ['256.1.1.1', 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)'],
  ['x', 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)'],
] as const) {
  test(`ipErrors(${value}): ${reasons[0] ?? 'valid'}`, () => deepEqual(reasonsOf(ipErrors, value), reasons))
}

test('canonicalIpErrors() accepts only the canonical form of IPv6', () => {
  deepEqual(reasonsOf(canonicalIpErrors, '2001:db8::1'), [])
  deepEqual(reasonsOf(canonicalIpErrors, '2001:DB8:0::1'), ['must be in canonical form ("2001:db8::1")'])
})

for (const [value, ...reasons] of [
  ['10.0.0.0/8'],
  ['::/0'],
  ['2001:db8::/32'],
  ['10.1.2.3/8', 'must not have bits set beyond the prefix length'],
  ['10.0.0.0/08', 'must not have leading 0s in IP or prefix length'],
  ['010.0.0.0/8', 'must not have leading 0s in IP or prefix length'],
  ['::ffff:10.0.0.0/104', 'must not have an IPv4-mapped IPv6 address'],
  ['10.0.0.0/33', 'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)'],
  ['10.0.0.0', 'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)'],
  ['10.0.0.0/8/8', 'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)'],
] as const) {
  test(`cidrErrors(${value}): ${reasons[0] ?? 'valid'}`, () => deepEqual(reasonsOf(cidrErrors, value), reasons))
}

test('isStrictlyWithin() accepts a smaller range inside the outer one', () => {
  equal(isStrictlyWithin('10.1.0.0/16', '10.0.0.0/8'), true)
  equal(isStrictlyWithin('10.0.0.0/8', '10.0.0.0/8'), false)
  equal(isStrictlyWithin('11.0.0.0/16', '10.0.0.0/8'), false)
  equal(isStrictlyWithin('fd00:1::/32', 'fd00::/8'), true)
  equal(isStrictlyWithin('fd00::/32', '10.0.0.0/8'), false)
})

for (const value of ['127.0.0.1', '::1', '169.254.1.1', 'fe80::1', '224.0.0.1', 'ff02::1', '0.0.0.0', '::']) {
  test(`endpointIpErrors() rejects ${value}`, () => equal(endpointIpErrors(value, 'at').length, 1))
}
test('endpointIpErrors() accepts other addresses', () =>
  deepEqual(
    ['10.0.0.1', '2001:db8::1', '224.1.0.1'].flatMap(ip => endpointIpErrors(ip, 'at')),
    [],
  ))
