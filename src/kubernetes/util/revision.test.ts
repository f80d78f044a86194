import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { nextRevision, parseRevision, readRevision, revisionEpochMs } from './index.ts'

const at = (ms: number) => revisionEpochMs + ms
const revision = (ms: number, partition: number, counter: number) => ms * 8_192 + partition * 128 + counter

for (const { name, last, nowMs, partition = 0, want } of [
  { name: 'a new millisecond starts its counter at 0', last: revision(5, 0, 9), nowMs: at(6), want: revision(6, 0, 0) },
  { name: 'the same millisecond increments the counter', last: revision(5, 0, 9), nowMs: at(5), want: revision(5, 0, 10) },
  { name: 'a clock that steps back has no effect', last: revision(500, 0, 9), nowMs: at(5), want: revision(500, 0, 10) },
  { name: 'a full counter moves to the next millisecond', last: revision(5, 3, 127), nowMs: at(5), partition: 3, want: revision(6, 3, 0) },
  {
    name: 'a higher partition fits into the same millisecond',
    last: revision(5, 3, 7),
    nowMs: at(5),
    partition: 4,
    want: revision(5, 4, 0),
  },
  { name: 'a lower partition does not', last: revision(5, 3, 7), nowMs: at(5), partition: 2, want: revision(6, 2, 0) },
  { name: 'a clock before 2026 counts as the start of 2026', last: 0, nowMs: 0, partition: 1, want: revision(0, 1, 0) },
]) {
  test(name, () => assert.equal(nextRevision(last, nowMs, partition), want))
}

test('revisions rise and stay safe integers for any clock and partition (invariant 6)', () => {
  const step = fc.record({ nowMs: fc.integer({ min: 0, max: at(2 ** 40 - 1_000) }), partition: fc.integer({ min: 0, max: 63 }) })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), steps => {
      let last = 0
      for (const { nowMs, partition } of steps) {
        const next = nextRevision(last, nowMs, partition)
        assert.ok(next > last && Number.isSafeInteger(next))
        assert.equal(readRevision(next).partition, partition)
        last = next
      }
    }),
  )
})

test('parses revisions of clients and rejects everything else', () => {
  for (const [text, want] of [
    ['0', 0],
    ['229634106880', 229634106880],
    ['', undefined],
    ['-1', undefined],
    ['1e3', undefined],
    ['99999999999999999', undefined],
    ['٣', undefined],
  ] as const) {
    assert.equal(parseRevision(text), want, text)
  }
})
