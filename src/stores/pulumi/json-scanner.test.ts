import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { exceededJsonLimit, isDeeperThan, sliceMembers } from './json-scanner.ts'

test('property: the texts of members are what was sent', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.constantFrom(0, 2), (value, spaces) => {
      const members = sliceMembers(JSON.stringify(value, undefined, spaces))
      deepEqual([...members.keys()].sort(), Object.keys(value).sort())
      for (const [key, text] of members) deepEqual(JSON.parse(text), JSON.parse(JSON.stringify(value))[key])
    }),
  )
  deepEqual(
    [...sliceMembers(' { "a" : [1, "}"] ,"a":2, "b\\"":{} } ')],
    [
      ['a', '2'],
      ['b"', '{}'],
    ],
  )
})

test('property: the depth of a value is found, whatever its texts contain', () => {
  const depthOf = (value: unknown): number =>
    typeof value === 'object' && value !== null ? 1 + Math.max(0, ...Object.values(value).map(depthOf)) : 0
  fc.assert(
    fc.property(fc.array(fc.jsonValue()), fc.constantFrom(0, 2), (value, spaces) => {
      const text = JSON.stringify(value, undefined, spaces)
      const depth = depthOf(JSON.parse(text))
      equal(isDeeperThan(text, depth), false)
      equal(isDeeperThan(text, depth - 1), true)
    }),
  )
})

test('a text that is no object or list has no depth', () => {
  for (const text of ['', '1', 'null', '"a"']) equal(isDeeperThan(text, 0), false)
})

test('values are counted by commas and brackets outside of texts', () => {
  const exceeds = (text: string, maxDepth: number, maxValues: number) => exceededJsonLimit(text, { maxDepth, maxValues })
  equal(exceeds('[1,2,[3]]', 2, 4), undefined)
  equal(exceeds('[1,2,[3]]', 2, 3), 'values')
  equal(exceeds('[1,2,[3]]', 1, 4), 'depth')
  equal(exceeds('{"a,[":",,,{[","b":1}', 1, 2), undefined)
  equal(exceeds('"a,b"', 0, 0), undefined)
})
