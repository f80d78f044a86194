import { deepEqual, doesNotMatch, equal, match, ok } from 'node:assert/strict'
import { test } from 'node:test'
import { consoleLog } from './index.ts'

test('a line has time, level, message and fields; an error has its message, its cause and stack frames', () => {
  const lines: string[] = []
  const log = consoleLog('info', line => lines.push(line)).child({ controller: 'boats' })
  log.debug({}, 'not told')
  log.info({ key: 'a/b\nc' }, 'started')
  log.error({ err: new Error('no crew', { cause: new Error('all ashore') }) }, 'reconcile failed')
  equal(lines.length, 2)
  match(lines[0] ?? '', /^\d{4}-\S+Z INFO started controller="boats" key="a\/b\\nc"\n$/)
  const [first, ...frames] = (lines[1] ?? '').trimEnd().split('\n')
  match(first ?? '', /ERROR reconcile failed controller="boats" err="no crew: all ashore"$/)
  match(frames[0] ?? '', /console-log\.test\.ts/)
})

test('a value that cannot be serialized as JSON does not throw', () => {
  const lines: string[] = []
  const log = consoleLog('debug', line => lines.push(line.replace(/^\S+ /, '')))
  const circle: { self?: object } = {}
  circle.self = circle
  log.warn({ circle, big: 1n, nothing: undefined }, 'odd')
  deepEqual(lines, ['WARN odd circle="[object Object]" big="1" nothing=undefined\n'])
})

test('a message of an error cannot look like stack frames or other lines, and hidden characters are escaped', () => {
  const lines: string[] = []
  const log = consoleLog('info', line => lines.push(line))
  const text = 'x\n    at \r2026-01-01T00:00:00.000Z INFO all boats are safe\u001b[2K\u009b2J\u202e'
  const changed = new Error(text)
  // It is formatted at the first access.
  ok(changed.stack)
  changed.message = 'changed'
  for (const err of [new Error(text), changed]) log.error({ err, name: '\u202eevil\u2028' }, 'reconcile failed')
  const [first = '', ...frames] = lines[0]!.trimEnd().split('\n')
  ok(
    first.endsWith(
      String.raw`err="x\n    at \r2026-01-01T00:00:00.000Z INFO all boats are safe\u001b[2K\u009b2J\u202e" name="\u202eevil\u2028"`,
    ),
    first,
  )
  ok(frames.length > 0)
  for (const frame of frames) match(frame, /^ {4}at .*(:\d+:\d+\)?|\))$/)
  doesNotMatch(lines.join(''), /[^\P{C}\n]/u)
  equal(
    frames.some(frame => frame.includes('safe')),
    false,
  )
  equal(lines[1]!.trimEnd().split('\n').length, 1)
})

test('frames of an error without a message are printed', () => {
  const lines: string[] = []
  consoleLog('info', line => lines.push(line)).error({ err: new Error() }, 'failed')
  match(lines[0] ?? '', /console-log\.test\.ts/)
})
