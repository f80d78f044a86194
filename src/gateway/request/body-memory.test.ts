import { equal, throws } from 'node:assert/strict'
import { test } from 'node:test'
import { BodyMemory } from './body-memory.ts'

const mib = 1024 * 1024

test('the bodies of one user are limited until its requests have ended', () => {
  const memory = new BodyMemory({ bytesPerUser: 2 * mib, bytes: 10 * mib })
  const first = memory.open('ann')
  first.add(mib)
  first.add(mib)
  throws(() => memory.open('ann').add(1), /the bodies of requests of "ann" in progress have 2 MiB/)
  memory.open('ben').add(mib)
  first.release()
  first.release()
  equal(memory.bytes, mib)
  memory.open('ann').add(2 * mib)
})

test('the ServiceAccounts of a namespace count as one user, and all users together are limited', () => {
  const memory = new BodyMemory({ bytesPerUser: 2 * mib, bytes: 3 * mib })
  memory.open('system:serviceaccount:a:one').add(2 * mib)
  throws(() => memory.open('system:serviceaccount:a:two').add(1), /requests of "system:serviceaccount:a:two"/)
  memory.open('system:serviceaccount:b:one').add(mib)
  throws(() => memory.open('ann').add(1), /the bodies of all requests in progress have 3 MiB/)
})
