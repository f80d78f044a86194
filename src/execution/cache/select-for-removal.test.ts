import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { type PruneLimits, selectForRemoval } from './select-for-removal.ts'

const entry = (name: string, domain: string, usedAtMs: number, bytes: number, isInUse = false) => ({
  name,
  domain,
  usedAtMs,
  bytes,
  isInUse,
})
const entries = [
  entry('a3', 'a', 3, 40),
  entry('a1', 'a', 1, 40),
  entry('a2', 'a', 2, 40, true),
  entry('b0', 'b', 0, 30),
  entry('b4', 'b', 4, 30),
]

for (const { name, limits, want } of [
  { name: 'no limit selects nothing', limits: {}, want: [] },
  { name: 'an age selects what was last used before it, and nothing in use', limits: { usedBeforeMs: 3 }, want: ['b0', 'a1'] },
  { name: 'a size selects the oldest of the largest domain', limits: { maxBytes: 140 }, want: ['a1'] },
  { name: 'a size changes to the other domain when that is the largest', limits: { maxBytes: 110 }, want: ['a1', 'a3'] },
  { name: 'a size is reached exactly', limits: { maxBytes: 180 }, want: [] },
  { name: 'what is in use counts and stays', limits: { maxBytes: 0 }, want: ['a1', 'a3', 'b0', 'b4'] },
  { name: 'a domain counts and selects only its own', limits: { maxBytes: 30, domain: 'b' }, want: ['b0'] },
  { name: 'an age, then a size', limits: { usedBeforeMs: 1, maxBytes: 110 }, want: ['b0', 'a1'] },
  { name: 'an age with a domain', limits: { usedBeforeMs: 10, domain: 'a' }, want: ['a1', 'a3'] },
] satisfies { name: string; limits: PruneLimits; want: string[] }[]) {
  test(name, () =>
    deepEqual(
      selectForRemoval(entries, limits).map(each => each.name),
      want,
    ),
  )
}
