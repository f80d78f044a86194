import { deepEqual, equal, match } from 'node:assert/strict'
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
