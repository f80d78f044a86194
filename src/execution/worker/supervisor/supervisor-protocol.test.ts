import { deepEqual } from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { test } from 'node:test'
import { onJsonLines } from './supervisor-protocol.ts'

function read(...chunks: string[]): unknown[] {
  const stream = new EventEmitter()
  const read: unknown[] = []
  onJsonLines(
    stream,
    message => read.push(message),
    () => read.push('invalid'),
  )
  for (const chunk of chunks) stream.emit('data', chunk)
  return read
}

for (const [name, chunks, want] of [
  ['reads messages that are divided and joined by the socket', ['{"a":', '1}\n{"b":2}\n{"c"', ':3}\n'], [{ a: 1 }, { b: 2 }, { c: 3 }]],
  ['reads nothing after a line that is not JSON', ['{"a":1}\nGET / HTTP/1.1\n{"b":2}\n', '{"c":3}\n'], [{ a: 1 }, 'invalid']],
  ['a value that is no object is no message', ['null\n'], ['invalid']],
  ['invariant 10: a line without an end is invalid above 1 MiB', ['x'.repeat(1 << 20), 'x', 'x'], ['invalid']],
] as [string, string[], unknown[]][]) {
  test(name, () => deepEqual(read(...chunks), want))
}
