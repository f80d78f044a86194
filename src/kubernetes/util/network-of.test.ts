import { equal } from 'node:assert/strict'
import { test } from 'node:test'
import { networkOf } from './network-of.ts'

for (const [address, network] of [
  ['10.0.0.1', '10.0.0.1'],
  ['::ffff:10.0.0.1', '10.0.0.1'],
  ['2001:db8::1', '2001:db8:0:0::/64'],
  ['2001:db8:0:0:ffff::2', '2001:db8:0:0::/64'],
  ['2001:db8:0:1::1', '2001:db8:0:1::/64'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64'],
  ['::1', '0:0:0:0::/64'],
  [undefined, ''],
] as const) {
  test(`the network of ${address} is ${network}`, () => equal(networkOf(address), network))
}
