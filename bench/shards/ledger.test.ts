import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { type Entry, judge } from './ledger.ts'

const entry = (member: string, fence: number, beginMs: number, endMs: number | undefined = beginMs + 5): Entry => ({
  ...{ key: 'k', member, fence, beginMs, endMs, wrote: true },
})
const span = { fromMs: 0, untilMs: 1_000 }

test('a key that passes from one member to the next has one move, and its longest gap is between their reconciles', () => {
  const result = judge([entry('a', 1, 100), entry('a', 1, 300), entry('b', 2, 900)], [], span)
  deepEqual(result, {
    ...{
      reconciles: 3,
      lowerFences: 0,
      overlaps: 0,
      begunBefore: 0,
      allowedBefore: 0,
      longestGapMs: 600,
      longestGapKey: 'k',
      mostMoves: 1,
    },
  })
})

test('a reconcile with a lower fence than an earlier one counts, also after a key that was never worked on again', () => {
  equal(judge([entry('b', 2, 100), entry('a', 1, 200)], [], span).lowerFences, 1)
  equal(judge([entry('a', 1, 100)], [], span).longestGapMs, 900)
})

test('a call that had begun before its process was paused may end alongside the next owner; one that began afterwards may not', () => {
  const pauses = [{ member: 'a', fromMs: 101, toMs: 500 }]
  const begun = judge([entry('a', 1, 100, 502), entry('b', 2, 400)], pauses, span)
  deepEqual([begun.overlaps, begun.begunBefore], [1, 1])
  const after = judge([entry('b', 2, 499, 510), entry('a', 1, 501, 506)], pauses, span)
  deepEqual([after.overlaps, after.begunBefore, after.lowerFences], [1, 0, 1])
})

test('one call that was allowed before a pause and reported after it is counted separately, if it wrote nothing; a second one is not excused', () => {
  const pauses = [{ member: 'a', fromMs: 101, toMs: 500 }]
  const late = (beginMs: number) => ({ ...entry('a', 1, beginMs), wrote: false })
  const one = judge([entry('b', 2, 400), late(501)], pauses, span)
  deepEqual([one.allowedBefore, one.lowerFences, one.mostMoves, one.reconciles], [1, 0, 0, 1])
  equal(judge([entry('b', 2, 400), late(501), late(505)], pauses, span).lowerFences, 1)
  equal(judge([entry('b', 2, 400), late(600)], pauses, span).lowerFences, 1)
  equal(judge([entry('b', 2, 400), entry('a', 1, 501)], pauses, span).lowerFences, 1)
})
