import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { backoffMs } from './backoff.ts'
import { type StreamEvent, takeEvents } from './events.ts'

test('events are read whatever the pieces are in which they arrive; a comment has no data', () => {
  const text = ':\n\nid: 1\ndata: {"a":1}\n\nid: 2\ndata: x\ndata: y\n\n'
  const expected: StreamEvent[] = [
    { id: 0, data: undefined },
    { id: 1, data: '{"a":1}' },
    { id: 2, data: 'x\ny' },
  ]
  for (let size = 1; size <= text.length; size++) {
    const found: StreamEvent[] = []
    let rest = ''
    for (let at = 0; at < text.length; at += size) rest = takeEvents(rest + text.slice(at, at + size), event => found.push(event))
    deepEqual(found, expected, `pieces of ${size}`)
    equal(rest, '')
  }
})

test('connections are tried again after 0.25 s at the earliest and 15 s at the latest', () => {
  deepEqual(
    [0, 1, 5, 50].map(failures => [backoffMs(failures, 0), backoffMs(failures, 1)]),
    [
      [250, 500],
      [500, 1_000],
      [7_500, 15_000],
      [7_500, 15_000],
    ],
  )
})
