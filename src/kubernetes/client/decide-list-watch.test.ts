import { deepEqual, ok } from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { decideListWatch, type ListWatchInput } from './decide-list-watch.ts'

const backoff = { minMs: 800, maxMs: 30_000 }
const at = (resourceVersion: string | undefined, failures = 0) => ({ resourceVersion, failures })
const broken = { kind: 'broken' } as const
const gone = { kind: 'gone' } as const
const refused = { kind: 'refused', retryAfterMs: undefined } as const
const garbage = { kind: 'garbage' } as const

const cases: { name: string; state: ReturnType<typeof at>; input: ListWatchInput; want: string }[] = [
  {
    name: 'a list leads to a watch from its version',
    state: at(undefined),
    input: { kind: 'listed', resourceVersion: '7' },
    want: 'watch 7 in 0, 0 failures',
  },
  {
    name: 'a list does not prove that watches work',
    state: at(undefined, 3),
    input: { kind: 'listed', resourceVersion: '7' },
    want: 'watch 7 in 0, 3 failures',
  },
  {
    name: 'an event moves the version and proves health',
    state: at('7', 3),
    input: { kind: 'advanced', resourceVersion: '9' },
    want: 'watch 9 in 0, 0 failures',
  },
  {
    name: 'a watch that ran its time goes on at once',
    state: at('9', 1),
    input: { kind: 'watch-ended', durationMs: 240_000, events: 0 },
    want: 'watch 9 in 0, 0 failures',
  },
  {
    name: 'a short watch with events goes on at once',
    state: at('9'),
    input: { kind: 'watch-ended', durationMs: 10, events: 2 },
    want: 'watch 9 in 0, 0 failures',
  },
  {
    name: 'a short watch without events is a failure',
    state: at('9'),
    input: { kind: 'watch-ended', durationMs: 10, events: 0 },
    want: 'watch 9 in 1200, 1 failures',
  },
  {
    name: 'a cut resumes from the last version',
    state: at('9'),
    input: { kind: 'watch-failed', error: broken, events: 0 },
    want: 'watch 9 in 1200, 1 failures',
  },
  {
    name: 'a cut after events starts the backoff anew',
    state: at('9', 4),
    input: { kind: 'watch-failed', error: broken, events: 3 },
    want: 'watch 9 in 1200, 1 failures',
  },
  {
    name: 'cuts in a row wait longer, and keep the version',
    state: at('9', 3),
    input: { kind: 'watch-failed', error: broken, events: 0 },
    want: 'watch 9 in 9600, 4 failures',
  },
  {
    name: 'the wait has an upper bound',
    state: at('9', 40),
    input: { kind: 'watch-failed', error: broken, events: 0 },
    want: 'watch 9 in 22500, 41 failures',
  },
  {
    name: 'the first 410 lists again nearly at once',
    state: at('9'),
    input: { kind: 'watch-failed', error: gone, events: 0 },
    want: 'list in 50, 1 failures',
  },
  {
    name: '410 again after the list backs off',
    state: at('9', 1),
    input: { kind: 'watch-failed', error: gone, events: 0 },
    want: 'list in 2400, 2 failures',
  },
  {
    name: 'a refused watch keeps its version',
    state: at('9'),
    input: { kind: 'watch-failed', error: refused, events: 0 },
    want: 'watch 9 in 1200, 1 failures',
  },
  {
    name: 'refused three times, the version is doubted',
    state: at('9', 2),
    input: { kind: 'watch-failed', error: refused, events: 0 },
    want: 'list in 4800, 3 failures',
  },
  {
    name: 'garbage three times, the version is doubted',
    state: at('9', 2),
    input: { kind: 'watch-failed', error: garbage, events: 0 },
    want: 'list in 4800, 3 failures',
  },
  {
    name: 'a failed list is tried again',
    state: at(undefined),
    input: { kind: 'list-failed', error: broken },
    want: 'list in 1200, 1 failures',
  },
  {
    name: 'Retry-After is obeyed when it is longer than the backoff',
    state: at(undefined),
    input: { kind: 'list-failed', error: { kind: 'refused', retryAfterMs: 60_000 } },
    want: 'list in 60000, 1 failures',
  },
]
for (const { name, state, input, want } of cases) {
  test(name, () => {
    const { action, delayMs, state: next } = decideListWatch(state, input, backoff, 0.5)
    deepEqual(`${action}${next.resourceVersion ? ` ${next.resourceVersion}` : ''} in ${delayMs}, ${next.failures} failures`, want)
  })
}

test('invariant 6: whatever fails in whatever order, there is a next step, within the bounds, and never a tight loop', () => {
  const error = fc.constantFrom(broken, gone, refused, garbage)
  const input = fc.oneof(
    fc.record({ kind: fc.constant('list-failed' as const), error }),
    fc.record({ kind: fc.constant('watch-failed' as const), error, events: fc.constant(0) }),
    fc.record({ kind: fc.constant('watch-ended' as const), durationMs: fc.constant(0), events: fc.constant(0) }),
  )
  fc.assert(
    fc.property(fc.array(input, { minLength: 2, maxLength: 30 }), fc.double({ min: 0, max: 0.999, noNaN: true }), (inputs, random) => {
      let state = at('1')
      inputs.forEach((input, index) => {
        const next = decideListWatch(state, input, backoff, random)
        ok(next.delayMs <= backoff.maxMs && (index === 0 || next.delayMs >= backoff.minMs), `waited ${next.delayMs}`)
        ok(next.action === (next.state.resourceVersion === undefined ? 'list' : 'watch'))
        state = { resourceVersion: next.state.resourceVersion, failures: next.state.failures }
      })
    }),
  )
})
