import { equal } from 'node:assert/strict'
import { test } from 'node:test'
import { lossOf } from './loss-of.ts'

const lease = (uid: string, resourceVersion: string) => ({ uid, resourceVersion })

test('a worker is lost if its Lease is still the one of the decision, or was missing then and is missing now', () => {
  equal(lossOf(lease('l', '1'), lease('l', '1')), 'Lost')
  equal(lossOf(undefined, undefined), 'Lost')
})

test('a Lease that was renewed, created again or deleted since the decision may have been renewed', () => {
  equal(lossOf(lease('l', '2'), lease('l', '1')), 'Renewed')
  equal(lossOf(lease('m', '1'), lease('l', '1')), 'Renewed')
  equal(lossOf(lease('l', '1'), undefined), 'Renewed')
  equal(lossOf(undefined, lease('l', '1')), 'Renewed')
})
