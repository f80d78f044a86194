import { deepEqual, ok } from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { decideListWatch, type ListWatchInput, type ListWatchState } from './decide-list-watch.ts'

const backoff = { minMs: 800, maxMs: 30_000 }
const at = (resourceVersion: string | undefined, failures = 0, expirations = 0): ListWatchState => ({
  resourceVersion,
  failures,
  expirations,
})
const broken = { kind: 'broken' } as const
const expired = { kind: 'expired' } as const
const rejected = { kind: 'rejected', retryAfterMs: undefined } as const
const malformed = { kind: 'malformed' } as const

const cases: { name: string; state: ListWatchState; input: ListWatchInput; want: string }[] = [
  {
    name: 'a list is followed by a watch from its version',
    state: at(undefined),
    input: { kind: 'listed', resourceVersion: '7' },
    want: 'watch 7 in 0, 0 failures',
  },
  {
    name: 'a successful list does not reset the failures',
    state: at(undefined, 3),
    input: { kind: 'listed', resourceVersion: '7' },
    want: 'watch 7 in 0, 3 failures',
  },
  {
    name: 'an event advances the version and resets the failures',
    state: at('7', 3),
    input: { kind: 'advanced', resourceVersion: '9' },
    want: 'watch 9 in 0, 0 failures',
  },
  {
    name: 'a watch that reached its timeout is renewed immediately',
    state: at('9', 1),
    input: { kind: 'watch-ended', durationMs: 240_000, events: 0 },
    want: 'watch 9 in 0, 0 failures',
  },
  {
    name: 'a short watch with events is renewed immediately',
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
    name: 'a broken watch resumes from the last version',
    state: at('9'),
    input: { kind: 'watch-failed', error: broken, events: 0 },
    want: 'watch 9 in 1200, 1 failures',
  },
  {
    name: 'a watch that breaks after events restarts the backoff',
    state: at('9', 4),
    input: { kind: 'watch-failed', error: broken, events: 3 },
    want: 'watch 9 in 1200, 1 failures',
  },
  {
    name: 'repeated breaks back off and keep the version',
    state: at('9', 3),
    input: { kind: 'watch-failed', error: broken, events: 0 },
    want: 'watch 9 in 9600, 4 failures',
  },
  {
    name: 'the backoff has an upper bound',
    state: at('9', 40),
    input: { kind: 'watch-failed', error: broken, events: 0 },
    want: 'watch 9 in 22500, 41 failures',
  },
  {
    name: 'the first 410 lists again almost immediately',
    state: at('9'),
    input: { kind: 'watch-failed', error: expired, events: 0 },
    want: 'list in 50, 1 failures',
  },
  {
    name: 'a second 410 after the list backs off',
    state: at('9', 1, 1),
    input: { kind: 'watch-failed', error: expired, events: 0 },
    want: 'list in 2400, 2 failures',
  },
  {
    name: 'a 410 after events is a first one',
    state: at('9', 4, 2),
    input: { kind: 'watch-failed', error: expired, events: 1 },
    want: 'list in 50, 1 failures',
  },
  {
    name: 'the first 410 after an outage lists again almost immediately, and the outage does not count for what follows',
    state: at('9', 7),
    input: { kind: 'watch-failed', error: expired, events: 0 },
    want: 'list in 50, 1 failures',
  },
  {
    name: 'a rejected watch keeps its version',
    state: at('9'),
    input: { kind: 'watch-failed', error: rejected, events: 0 },
    want: 'watch 9 in 1200, 1 failures',
  },
  {
    name: 'after three rejected watches the version is suspect and a list follows',
    state: at('9', 2),
    input: { kind: 'watch-failed', error: rejected, events: 0 },
    want: 'list in 4800, 3 failures',
  },
  {
    name: 'after three malformed watches the version is suspect and a list follows',
    state: at('9', 2),
    input: { kind: 'watch-failed', error: malformed, events: 0 },
    want: 'list in 4800, 3 failures',
  },
  {
    name: 'a failed list is retried',
    state: at(undefined),
    input: { kind: 'list-failed', error: broken },
    want: 'list in 1200, 1 failures',
  },
  {
    name: 'a Retry-After that is longer than the backoff is used instead',
    state: at(undefined),
    input: { kind: 'list-failed', error: { kind: 'rejected', retryAfterMs: 60_000 } },
    want: 'list in 60000, 1 failures',
  },
]
for (const { name, state, input, want } of cases) {
  test(name, () => {
    const { action, delayMs, state: next } = decideListWatch(state, input, backoff, 0.5)
    deepEqual(`${action}${next.resourceVersion ? ` ${next.resourceVersion}` : ''} in ${delayMs}, ${next.failures} failures`, want)
  })
}

/** Plays what a server does from `state` on, and returns each decision with the time at which it is due. */
function play(state: ListWatchState, inputs: ListWatchInput[], random = 0.5): string[] {
  let nowMs = 0
  const lines: string[] = []
  for (const input of inputs) {
    const next = decideListWatch(state, input, backoff, random)
    state = next.state
    nowMs += next.delayMs
    lines.push(`${(nowMs / 1_000).toFixed(2)} s ${next.action}${state.resourceVersion ? ` ${state.resourceVersion}` : ''}`)
  }
  return lines
}

const watchFailed = (error: typeof broken | typeof expired): ListWatchInput => ({ kind: 'watch-failed', error, events: 0 })

test('a server that is down for 20 s and has no version from before is listed with the first attempt that it answers', () => {
  const lines = play(at('9'), [
    ...Array.from({ length: 5 }, () => watchFailed(broken)),
    watchFailed(expired),
    { kind: 'listed', resourceVersion: '12' },
    { kind: 'advanced', resourceVersion: '13' },
    // The next outage begins with short delays again.
    watchFailed(broken),
  ])
  deepEqual(lines, [
    '1.20 s watch 9',
    '3.60 s watch 9',
    '8.40 s watch 9',
    '18.00 s watch 9',
    '37.20 s watch 9',
    '37.25 s list',
    '37.25 s watch 12',
    '37.25 s watch 13',
    '38.45 s watch 13',
  ])
})

test('a server that answers each list and rejects each watch with 410 is asked less and less often, also if its connection breaks between', () => {
  const round = [watchFailed(expired), { kind: 'listed', resourceVersion: '9' }, watchFailed(broken)] as ListWatchInput[]
  deepEqual(
    play(at('9'), [...round, ...round, ...round]).filter(line => line.endsWith('list')),
    ['0.05 s list', '7.25 s list', '36.05 s list'],
  )
})

test('invariant 6: any sequence of failures has a next step, within the bounds of the backoff except for one early list', () => {
  const error = fc.constantFrom(broken, expired, rejected, malformed)
  const input = fc.oneof(
    fc.record({ kind: fc.constant('list-failed' as const), error }),
    fc.record({ kind: fc.constant('watch-failed' as const), error, events: fc.constant(0) }),
    fc.record({ kind: fc.constant('watch-ended' as const), durationMs: fc.constant(0), events: fc.constant(0) }),
  )
  fc.assert(
    fc.property(fc.array(input, { minLength: 2, maxLength: 30 }), fc.double({ min: 0, max: 0.999, noNaN: true }), (inputs, random) => {
      let state = at('1')
      let early = 0
      for (const input of inputs) {
        const next = decideListWatch(state, input, backoff, random)
        ok(next.delayMs <= backoff.maxMs, `waited ${next.delayMs}`)
        if (next.delayMs < backoff.minMs) early++
        ok(next.action === (next.state.resourceVersion === undefined ? 'list' : 'watch'))
        state = next.state
      }
      ok(early <= 1, `${early} attempts within ${backoff.minMs} ms`)
    }),
  )
})
