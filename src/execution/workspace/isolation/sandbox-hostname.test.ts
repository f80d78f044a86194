import { equal } from 'node:assert/strict'
import { test } from 'node:test'
import { defaultHostname, epochOfHostname, sandboxHostname } from './sandbox-hostname.ts'

const uid = '5f0d7c52-8f0e-4a44-9d3f-0f6f6f2c1d3e'

test('the longest host name of a Run has at most 64 characters and is recognized', () => {
  const name = sandboxHostname(uid, 2 ** 31 - 1)
  equal(name.length <= 64, true)
  equal(epochOfHostname(name, uid), 2 ** 31 - 1)
})

test('a UID that is too long for a host name is in none', () => {
  equal(sandboxHostname(uid + uid, 1), defaultHostname)
  equal(epochOfHostname(defaultHostname, uid + uid), undefined)
})

for (const hostname of ['vm', defaultHostname, `oarlock-${uid}-`, `oarlock-${uid}-01`, `oarlock-${uid}-1a`, `oarlock-${uid}-1.example.com`])
  test(`${hostname.replace(uid, 'UID')} is not the host name of a Run of the Stack`, () => equal(epochOfHostname(hostname, uid), undefined))
test('the host name of a Run of another Stack is not recognized', () =>
  equal(epochOfHostname(sandboxHostname(uid.replace('5', '6'), 3), uid), undefined))
