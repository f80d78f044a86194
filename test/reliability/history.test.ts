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
  return { key: 'k', type, value, beganAt: clock++, endedAt: clock++, result: 'done', seen, ...more }
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
const gone = operation('delete', 'd', undefined, { uid: 'u' })
const whole = [event('ADDED', 1, 'a'), event('MODIFIED', 2, 'b')]

test('accepts histories of a correct server, whether unacknowledged writes happened or not', () => {
  deepEqual(check([a, b, unknown], [watch(whole)]), [])
  deepEqual(check([a, b, unknown], [watch(whole), watch([], 5, [['k', version(2, 'b')]])]), [])
  deepEqual(check([a, b, unknown], [watch(whole), watch([], 5, [['k', version(3, 'c')]])]), [])
  deepEqual(check([a, b, gone], [watch([...whole, event('DELETED', 3, 'b')]), watch([], 5)]), [])
})

for (const { name, operations, watches, says } of [
  {
    name: 'an acknowledged write that is lost',
    operations: [a, b],
    watches: () => [watch(whole), watch([], 5, [['k', version(1, 'a')]])],
    says: /a list shows 1, but 2 was acknowledged/,
  },
  { name: 'an object that is lost', operations: [a, b], watches: () => [watch([], 5)], says: /shows nothing, but b was acknowledged/ },
  {
    name: 'a write that was done twice',
    operations: [a, b],
    watches: () => [watch([...whole, event('MODIFIED', 3, 'b')])],
    says: /b was written twice/,
  },
  {
    name: 'one revision with two contents',
    operations: [a, b],
    watches: () => [watch([], 2, [['k', version(2, 'x')]])],
    says: /revision 2 is b and, in a list, x/,
  },
  {
    name: 'a watch with a gap',
    operations: [a, b, operation('patch', 'e', version(3, 'e'))],
    watches: () => [watch([event('ADDED', 1, 'a'), event('MODIFIED', 3, 'e')])],
    says: /leaves out k at 2/,
  },
  {
    name: 'a watch that goes back',
    operations: [a, b],
    watches: () => [watch([event('ADDED', 2, 'b'), event('MODIFIED', 1, 'a')])],
    says: /shows 1 after 2/,
  },
  {
    name: 'a watch that adds what is there',
    operations: [a, b],
    watches: () => [watch([event('ADDED', 1, 'a'), event('ADDED', 2, 'b')])],
    says: /ADDED of k, which is there/,
  },
  {
    name: 'an update of a version that was not the last',
    operations: [a, b, operation('update', 'f', version(3, 'f'), { basedOn: 1 })],
    watches: () => [],
    says: /based on 1, but 2 came between/,
  },
  {
    name: 'a refused write that is there',
    operations: [a, b, operation('patch', 'g', undefined, { result: 'refused' })],
    watches: () => [watch([], 5, [['k', version(4, 'g')]])],
    says: /g was refused, and is there/,
  },
  {
    name: 'a deleted object that is back',
    operations: [a, gone],
    watches: () => [watch([], 5, [['k', version(1, 'a')]])],
    says: /whose deletion was acknowledged/,
  },
  {
    name: 'a read of what was before an acknowledged write',
    operations: [a, b, operation('get', '', version(1, 'a'))],
    watches: () => [],
    says: /a get shows 1, but 2/,
  },
]) {
  test(`detects ${name}`, () => match(check(operations, watches()).join('\n'), says))
}
