import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { RequestFailures } from './request-failures.ts'

test('a request that fails every second is logged immediately and then once a minute with a count, each request for itself', () => {
  let second = 0
  const failures = new RequestFailures(() => second * 1_000)
  const logged: string[] = []
  for (; second <= 130; second++) {
    const renewals = failures.failed('renew', new Error('a'))
    if (renewals) logged.push(`${second} s: renew, ${renewals.failures}`)
    const lists = second >= 100 ? failures.failed('list', new Error('b')) : undefined
    if (lists) logged.push(`${second} s: list, ${lists.failures}`)
  }
  deepEqual(logged, ['0 s: renew, 1', '60 s: renew, 60', '100 s: list, 1', '120 s: renew, 60'])
})

test('a request that fails every other time is logged once a minute too, and has an error only after a failure', () => {
  let second = 0
  const failures = new RequestFailures(() => second * 1_000)
  const logged: number[] = []
  for (; second < 120; second++) {
    if (second % 2 === 1) failures.succeeded('renew')
    else if (failures.failed('renew', new Error('a'))) logged.push(second)
    equal(failures.find('claim', 'renew')?.message, second % 2 === 1 ? undefined : 'a')
  }
  deepEqual(logged, [0, 60])
})
