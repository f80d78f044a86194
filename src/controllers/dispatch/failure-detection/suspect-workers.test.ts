import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { testWorker } from '../objects.testing.ts'
import { SuspectWorkers } from './suspect-workers.ts'

const never = () => false

test('a suspect is returned as draining until it is no longer suspect', () => {
  let silent = 'a'
  const suspects = new SuspectWorkers(name => name === silent)
  equal(suspects.cordoned(testWorker('a')).spec.drain, undefined)
  deepEqual([...suspects.check(['a', 'b'], 0, never)], ['a'])
  equal(suspects.cordoned(testWorker('a')).spec.drain, true)
  equal(suspects.cordoned(testWorker('b')).spec.drain, undefined)
  silent = 'b'
  deepEqual([...suspects.check(['a', 'b'], 250, never)].sort(), ['a', 'b'])
  equal(suspects.cordoned(testWorker('a')).spec.drain, undefined)
})

test('checks once per 250 ms, or immediately when a check is forced', () => {
  let checks = 0
  const suspects = new SuspectWorkers(() => ++checks < 0)
  suspects.check(['a'], 0, never)
  suspects.check(['a'], 249, never)
  equal(checks, 1)
  suspects.check(['a'], 249, () => true)
  equal(checks, 2)
  suspects.check(['a'], 499, never)
  equal(checks, 3)
})
