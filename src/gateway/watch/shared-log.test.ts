import { deepEqual, equal, ok, throws } from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { SelectedValues } from '../../kubernetes/util/index.ts'
import { EventRing } from './event-ring.ts'
import { type SharedEvent, selectEvent } from './select-event.ts'
import { SharedLog, type Subscriber } from './shared-log.ts'
import { readWatchSelection, UnknownField } from './watch-selection.ts'

type Version = { worker?: string; app?: string }

const line = (type: string, note: string) => Buffer.from(`{"type":"${type}","object":"${note}"}\n`)
const values = ({ worker = '', app }: Version) => ({
  labels: app === undefined ? undefined : { app },
  fields: { 'spec.workerName': worker },
})

/** An event of the object `name`, from `before` to `after`. */
function event(revision: number, name: string, before: Version | undefined, after: Version | undefined, source = 'a'): SharedEvent {
  const type = after ? (before ? 'MODIFIED' : 'ADDED') : 'DELETED'
  const selected: SelectedValues = {
    ...{ namespace: 'n', name, uid: `uid-${name}` },
    ...(after && { after: values(after) }),
    ...(before && { before: JSON.stringify(before) === JSON.stringify(after) ? (true as const) : values(before) }),
  }
  const leaving = after && before && selected.before !== true ? line('DELETED', `${revision} as before`) : undefined
  return { revision, source, line: line(type, String(revision)), leaving, selected }
}

const select = (selectors: Record<string, string>) => readWatchSelection(new URLSearchParams(selectors))
const text = (bytes: Uint8Array | undefined) => bytes && Buffer.from(bytes).toString().trim()

class Client implements Subscriber {
  readonly lines: string[] = []
  readonly selection: Subscriber['selection']
  readonly from: ReadonlyMap<string, number>

  constructor(selectors: Record<string, string>, from: Record<string, number>) {
    this.selection = select(selectors)
    this.from = new Map(Object.entries(from))
  }

  deliver(lines: readonly Uint8Array[]): void {
    for (const each of lines) for (const one of (text(each) ?? '').split('\n')) this.lines.push(one)
  }
}

describe('selectEvent', () => {
  const worker = select({ fieldSelector: 'spec.workerName=w1' })
  for (const { name, before, after, selection = worker, want } of [
    { name: 'a new object inside', before: undefined, after: { worker: 'w1' }, want: '{"type":"ADDED","object":"5"}' },
    { name: 'a new object outside', before: undefined, after: { worker: 'w2' }, want: undefined },
    { name: 'a change inside', before: { worker: 'w1' }, after: { worker: 'w1' }, want: '{"type":"MODIFIED","object":"5"}' },
    { name: 'a change outside', before: { worker: 'w2' }, after: { worker: 'w2' }, want: undefined },
    { name: 'an object that enters', before: {}, after: { worker: 'w1' }, want: '{"type":"ADDED","object":"5"}' },
    { name: 'an object that leaves', before: { worker: 'w1' }, after: { worker: 'w2' }, want: '{"type":"DELETED","object":"5 as before"}' },
    { name: 'a deletion inside', before: { worker: 'w1' }, after: undefined, want: '{"type":"DELETED","object":"5"}' },
    { name: 'a deletion outside', before: { worker: 'w2' }, after: undefined, want: undefined },
    {
      name: 'a label that appears',
      ...{ before: { app: 'x' }, after: { app: 'y' }, selection: select({ labelSelector: 'app in (y,z)' }) },
      want: '{"type":"ADDED","object":"5"}',
    },
    {
      name: 'a selection that excludes a value',
      ...{ before: { worker: 'w1' }, after: { worker: 'w2' }, selection: select({ fieldSelector: 'spec.workerName!=w1' }) },
      want: '{"type":"ADDED","object":"5"}',
    },
    { name: 'no selection', before: {}, after: { worker: 'w2' }, selection: select({}), want: '{"type":"MODIFIED","object":"5"}' },
  ] as { name: string; before?: Version; after?: Version; selection?: typeof worker; want: string | undefined }[])
    test(`${name}: ${want ?? 'nothing'}`, () => equal(text(selectEvent(event(5, 'x', before, after), selection)), want))

  test('a field that the partition does not send is no decision', () => {
    throws(() => selectEvent(event(5, 'x', {}, {}), select({ fieldSelector: 'spec.other=1' })), UnknownField)
    equal(
      text(selectEvent(event(5, 'x', {}, {}), select({ fieldSelector: 'metadata.name=x,metadata.namespace=n' })))?.slice(9, 17),
      'MODIFIED',
    )
  })

  test('a shard has each object once', () => {
    const range = (start: string, end: string) => select({ shardSelector: `shardRange(object.metadata.uid, '${start}', '${end}')` })
    const halves = [range('0x0000000000000000', '0x8000000000000000'), range('0x8000000000000000', '0x10000000000000000')]
    for (let number = 0; number < 50; number++) {
      const change = event(5, `o-${number}`, {}, {})
      equal(halves.filter(half => selectEvent(change, half)).length, 1)
    }
  })
})

test('a ring forgets the oldest events above its limits, and tells from where it is complete', () => {
  const ring = new EventRing(10, { maxEvents: 3, maxBytes: 1e6 })
  for (let revision = 11; revision <= 16; revision++) ring.push(event(revision, 'x', {}, {}))
  equal(ring.floor, 13)
  deepEqual(
    ring.since(14)?.map(({ revision }) => revision),
    [15, 16],
  )
  deepEqual(ring.since(13)?.length, 3)
  equal(ring.since(12), undefined)
  const small = new EventRing(0, { maxEvents: 1e6, maxBytes: 100 })
  for (let revision = 1; revision <= 5_000; revision++) small.push(event(revision, 'x', {}, {}))
  ok(small.bytes <= 100 && small.size > 0)
  equal(small.since(small.floor)?.length, small.size)
})

test('a client gets what it has missed, then every event, and none that it has (guarantees 1 and 2)', () => {
  const log = new SharedLog(0, { maxEvents: 4, maxBytes: 1e6 })
  log.push([event(1, 'x', undefined, {}, 'a'), event(2, 'y', undefined, {}, 'b'), event(3, 'x', {}, {}, 'a'), event(4, 'y', {}, {}, 'b')])
  const client = new Client({}, { a: 3, b: 1 })
  ok(log.add(client))
  log.push([event(5, 'z', undefined, {}, 'a')])
  deepEqual(
    client.lines.map(each => /"object":"(\d+)/.exec(each)?.[1]),
    ['2', '4', '5'],
  )
  equal(log.add(new Client({}, { a: 0, b: 9 })), false)
  // Ahead of the log: what comes is not new to it.
  const ahead = new Client({}, { a: 7, b: 7 })
  ok(log.add(ahead))
  log.push([event(6, 'z', {}, {}, 'a'), event(8, 'z', {}, {}, 'a')])
  deepEqual(ahead.lines, ['{"type":"MODIFIED","object":"8"}'])
  log.remove(client)
  log.push([event(9, 'z', {}, {}, 'a')])
  equal(client.lines.length, 5)
  equal(log.size, 1)
})

test('an object that moves from one client to another is deleted at one, and added at the other (guarantee 3)', () => {
  const log = new SharedLog(0, { maxEvents: 100, maxBytes: 1e6 })
  const clients = ['w1', 'w2', 'w3'].map(name => new Client({ fieldSelector: `spec.workerName=${name}` }, { a: 0 }))
  for (const client of clients) log.add(client)
  const labeled = new Client({ labelSelector: 'app=x' }, { a: 0 })
  log.add(labeled)
  log.push([event(1, 'x', undefined, { worker: 'w1' }), event(2, 'x', { worker: 'w1' }, { worker: 'w2', app: 'x' })])
  deepEqual(
    [...clients, labeled].map(({ lines }) => lines),
    [
      ['{"type":"ADDED","object":"1"}', '{"type":"DELETED","object":"2 as before"}'],
      ['{"type":"ADDED","object":"2"}'],
      [],
      ['{"type":"ADDED","object":"2"}'],
    ],
  )
})

test('a client that is removed while others get an event gets nothing more', () => {
  const log = new SharedLog(0, { maxEvents: 100, maxBytes: 1e6 })
  const second = new Client({}, { a: 0 })
  const first = new Client({}, { a: 0 })
  first.deliver = () => log.remove(second)
  log.add(first)
  log.add(second)
  log.push([event(1, 'x', undefined, {})])
  deepEqual(second.lines, [])
})
