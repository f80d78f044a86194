import { deepEqual, match } from 'node:assert/strict'
import { test } from 'node:test'
import { check, type Operation, type Version, type WatchedEvent, type WatchLog } from './history.ts'

const version = (revision: number, value: string, uid = 'u'): Version => ({ revision, value, uid })
const event = (type: WatchedEvent['type'], revision: number, value: string): WatchedEvent => ({
  key: 'k',
  type,
  ...version(revision, value),
})

let clock = 0
function operation(type: Operation['type'], value: string, seen: Version | undefined, more: Partial<Operation> = {}): Operation {
  return { key: 'k', type, value, startedAt: clock++, endedAt: clock++, result: 'done', seen, ...more }
}
const watch = (events: WatchedEvent[], revision = 0, listed: [string, Version][] = []): WatchLog => ({
  revision,
  listed: new Map(listed),
  events,
  listedAt: revision === 0 ? -1 : clock++,
})

const a = operation('create', 'a', version(1, 'a'))
const b = operation('update', 'b', version(2, 'b'), { basedOn: 1 })
const unknown = operation('patch', 'c', undefined, { result: 'unknown', endedAt: undefined })
const deletion = operation('delete', 'd', undefined, { uid: 'u' })
const whole = [event('ADDED', 1, 'a'), event('MODIFIED', 2, 'b')]

test('accepts histories of a correct server, whether unacknowledged writes happened or not', () => {
  deepEqual(check([a, b, unknown], [watch(whole)]), [])
  deepEqual(check([a, b, unknown], [watch(whole), watch([], 5, [['k', version(2, 'b')]])]), [])
  deepEqual(check([a, b, unknown], [watch(whole), watch([], 5, [['k', version(3, 'c')]])]), [])
  deepEqual(check([a, b, deletion], [watch([...whole, event('DELETED', 3, 'b')]), watch([], 5)]), [])
})

for (const { name, operations, watches, expected } of [
  {
    name: 'an acknowledged write that is lost',
    operations: [a, b],
    watches: () => [watch(whole), watch([], 5, [['k', version(1, 'a')]])],
    expected: /a list shows 1, but 2 was acknowledged/,
  },
  { name: 'an object that is lost', operations: [a, b], watches: () => [watch([], 5)], expected: /shows nothing, but b was acknowledged/ },
  {
    name: 'a write that happened twice',
    operations: [a, b],
    watches: () => [watch([...whole, event('MODIFIED', 3, 'b')])],
    expected: /b was written twice/,
  },
  {
    name: 'one revision with two contents',
    operations: [a, b],
    watches: () => [watch([], 2, [['k', version(2, 'x')]])],
    expected: /revision 2 is b and, in a list, x/,
  },
  {
    name: 'a watch with a gap',
    operations: [a, b, operation('patch', 'e', version(3, 'e'))],
    watches: () => [watch([event('ADDED', 1, 'a'), event('MODIFIED', 3, 'e')])],
    expected: /omits k at 2/,
  },
  {
    name: 'a watch whose revisions decrease',
    operations: [a, b],
    watches: () => [watch([event('ADDED', 2, 'b'), event('MODIFIED', 1, 'a')])],
    expected: /shows 1 after 2/,
  },
  {
    name: 'a watch that adds an existing object',
    operations: [a, b],
    watches: () => [watch([event('ADDED', 1, 'a'), event('ADDED', 2, 'b')])],
    expected: /ADDED of k, which exists/,
  },
  {
    name: 'an update of a version that was not the newest',
    operations: [a, b, operation('update', 'f', version(3, 'f'), { basedOn: 1 })],
    watches: () => [],
    expected: /based on 1, but 2 came between/,
  },
  {
    name: 'a rejected write that is present',
    operations: [a, b, operation('patch', 'g', undefined, { result: 'rejected' })],
    watches: () => [watch([], 5, [['k', version(4, 'g')]])],
    expected: /g was rejected, but is present/,
  },
  {
    name: 'a deleted object that reappears',
    operations: [a, deletion],
    watches: () => [watch([], 5, [['k', version(1, 'a')]])],
    expected: /whose deletion was acknowledged/,
  },
  {
    name: 'a read of a version before an acknowledged write',
    operations: [a, b, operation('get', '', version(1, 'a'))],
    watches: () => [],
    expected: /a get shows 1, but 2/,
  },
]) {
  test(`detects ${name}`, () => match(check(operations, watches()).join('\n'), expected))
}
