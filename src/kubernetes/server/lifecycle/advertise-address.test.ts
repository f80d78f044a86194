import { equal } from 'node:assert/strict'
import type { NetworkInterfaceInfo } from 'node:os'
import { test } from 'node:test'
import { advertiseAddress } from './advertise-address.ts'

const info = (address: string, internal = false): NetworkInterfaceInfo =>
  ({ address, internal, family: address.includes(':') ? 'IPv6' : 'IPv4' }) as NetworkInterfaceInfo
const lo = [info('127.0.0.1', true), info('::1', true)]
const eth0 = [info('fe80::1'), info('2001:db8::7'), info('192.0.2.7')]

for (const { title, bound, interfaces, want } of [
  { title: 'a bound address is published as it is', bound: '127.0.0.1', interfaces: { lo, eth0 }, want: '127.0.0.1' },
  {
    title: 'a wildcard is published as the first IPv4 address that is not loopback',
    bound: '0.0.0.0',
    interfaces: { lo, eth0 },
    want: '192.0.2.7',
  },
  { title: 'an IPv6 wildcard prefers IPv4, which it accepts too', bound: '::', interfaces: { lo, eth0 }, want: '192.0.2.7' },
  {
    title: 'an IPv6 wildcard without IPv4 is published as the global IPv6 address',
    bound: '::',
    interfaces: { lo, eth0: eth0.slice(0, 2) },
    want: '2001:db8::7',
  },
  { title: 'a machine without a network publishes loopback', bound: '0.0.0.0', interfaces: { lo }, want: '127.0.0.1' },
]) {
  test(title, () => equal(advertiseAddress(bound, interfaces), want))
}
