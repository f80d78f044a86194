import { equal, ok } from 'node:assert/strict'
import { test } from 'node:test'
import { annotations, createTimesOf, isCreationIncomplete, nextMark, pollIntervalOf } from './annotations.ts'

const object = (values: Record<string, string>) => ({ metadata: { annotations: values } })
const incomplete = (pending?: string, succeeded?: string, failed?: string) =>
  isCreationIncomplete(
    createTimesOf(
      object({
        ...(pending && { [annotations.createPending]: pending }),
        ...(succeeded && { [annotations.createSucceeded]: succeeded }),
        ...(failed && { [annotations.createFailed]: failed }),
      }),
    ),
  )

test('a creation is incomplete while its pending mark is the newest', () => {
  equal(incomplete(), false)
  ok(incomplete('2026-11-27T06:00:00Z'))
  equal(incomplete('2026-11-27T06:00:00Z', '2026-11-27T06:00:01Z'), false)
  equal(incomplete('2026-11-27T06:00:00Z', undefined, '2026-11-27T06:00:00Z'), false)
  ok(incomplete('2026-11-27T06:00:02Z', '2026-11-27T06:00:00Z', '2026-11-27T06:00:01Z'))
  equal(incomplete('yesterday'), false)
  // A result of a time that no mark can follow hides nothing.
  ok(incomplete('2026-11-27T06:00:00Z', '+275760-09-13T00:00:00.000Z', '9999-12-31T23:59:59.999Z'))
})

test('a mark is newer than every earlier one, also within a millisecond and when the clock went back', () => {
  const nowMs = Date.parse('2026-11-27T06:00:00.000Z')
  const after = (values: Record<string, string>) => nextMark(createTimesOf(object(values)), nowMs)
  equal(after({}), '2026-11-27T06:00:00.000Z')
  equal(after({ [annotations.createFailed]: '2026-11-27T06:00:00.000Z' }), '2026-11-27T06:00:00.001Z')
  equal(after({ [annotations.createSucceeded]: '2026-11-27T09:00:00Z' }), '2026-11-27T09:00:00.001Z')
  ok(after({ [annotations.createPending]: '+275760-09-13T00:00:00.000Z' }))
})

test("an object's poll interval is used if it is a duration, down to the minimum", () => {
  const bounds = { defaultMs: 60_000, minimumMs: 5_000 }
  const interval = (text: string) => pollIntervalOf(object({ [annotations.pollInterval]: text }), bounds)
  equal(pollIntervalOf({ metadata: {} }, bounds), 60_000)
  equal(interval('1h30m'), 5_400_000)
  equal(interval('1s'), 5_000)
  for (const text of ['', '0s', '-1h', 'soon', '10']) equal(interval(text), 60_000)
})
