import { deepEqual, equal, ok } from 'node:assert/strict'
import type { SelectedValues } from '../../kubernetes/util/index.ts'
import { nextRevision, revisionEpochMs, seededRandom } from '../../kubernetes/util/index.ts'
import { EventMerge } from './merge-events.ts'
import type { SharedEvent } from './select-event.ts'
import { SharedLog, type Subscriber } from './shared-log.ts'
import { readWatchSelection, type WatchSelection } from './watch-selection.ts'

const steps = 300
const maxEvents = 12

type Values = { readonly worker: string; readonly app: string }
type Change = { readonly revision: number; readonly name: string; readonly before: Values | undefined; readonly after: Values | undefined }

const lineOf = (type: string, { revision, name }: Change, values: Values) =>
  Buffer.from(`{"type":"${type}","object":${JSON.stringify({ name, revision, ...values })}}\n`)

const valuesOf = ({ worker, app }: Values) => ({ labels: { app }, fields: { 'spec.workerName': worker } })
const same = (a: Values | undefined, b: Values | undefined) => JSON.stringify(a) === JSON.stringify(b)

/** As the server marks an event (`watch/selected-values.ts`), with the type for a client that selects everything. */
function sentOf(change: Change) {
  const { revision, name, before, after } = change
  const selected: SelectedValues = {
    ...{ namespace: 'n', name, uid: name },
    ...(after && { after: valuesOf(after) }),
    ...(before && { before: same(before, after) ? (true as const) : valuesOf(before) }),
  }
  const type = after ? (before ? 'MODIFIED' : 'ADDED') : 'DELETED'
  const leaving = before && after && !same(before, after) ? { leaving: lineOf('DELETED', change, before) } : {}
  return { revision, line: lineOf(type, change, (after ?? before) as Values), selected, ...leaving }
}

class Partition {
  readonly log: Change[] = []
  readonly objects = new Map<string, Values>()
  readonly #number: number
  readonly #skewMs: number
  #clock = 0
  #sent: ({ bookmark: number } | { change: Change })[] = []

  constructor(number: number, skewMs: number) {
    this.#number = number
    this.#skewMs = skewMs
  }

  get clock(): number {
    return this.#clock
  }

  write(name: string, after: Values | undefined, nowMs: number): void {
    const before = this.objects.get(name)
    if (!before && !after) return
    this.#clock = nextRevision(this.#clock, revisionEpochMs + nowMs + this.#skewMs, this.#number)
    const change = { revision: this.#clock, name, before, after }
    this.log.push(change)
    if (after) this.objects.set(name, after)
    else this.objects.delete(name)
    this.#sent.push({ change })
  }

  raise(revision: number): void {
    this.#clock = Math.max(this.#clock, revision)
  }

  progress(revision: number): void {
    this.raise(revision)
    this.#sent.push({ bookmark: this.#clock })
  }

  receive() {
    return this.#sent.shift()
  }

  /** It has crashed: everything that was on its way is lost, and its clock continues from what it had reserved. */
  reopen(from: number): void {
    this.#sent = this.log.filter(({ revision }) => revision > from).map(change => ({ change }))
  }
}

class Client implements Subscriber {
  readonly from = new Map<string, number>()
  readonly cache = new Map<string, string>()
  readonly selection: WatchSelection
  readonly selects: (values: Values) => boolean
  readonly seed: number
  #last = 0

  constructor(seed: number, selectors: Record<string, string>, selects: (values: Values) => boolean) {
    this.seed = seed
    this.selection = readWatchSelection(new URLSearchParams(selectors))
    this.selects = selects
  }

  deliver(lines: readonly Uint8Array[]): void {
    for (const bytes of lines) for (const line of Buffer.from(bytes).toString().trim().split('\n')) this.receive(JSON.parse(line))
  }

  receive({ type, object: { name, revision, worker, app } }: { type: string; object: Values & { name: string; revision: number } }): void {
    ok(revision > this.#last, `seed ${this.seed}: ${revision} after ${this.#last}`)
    this.#last = revision
    if (type === 'ADDED') ok(!this.cache.has(name), `seed ${this.seed}: ${name} is ADDED twice`)
    else ok(this.cache.has(name), `seed ${this.seed}: ${name} is ${type}, and the client does not have it`)
    if (type === 'DELETED') this.cache.delete(name)
    else this.cache.set(name, `${worker} ${app}`)
  }

  /** What the client has read before it joined. */
  setInitial(name: string, { worker, app }: Values): void {
    this.cache.set(name, `${worker} ${app}`)
  }

  startAfter(revision: number): void {
    this.#last = revision
  }
}

/**
 * Random partitions, and clients that join a shared watch at random moments, with a selection: whatever is delayed, breaks or is forgotten, each client's
 * versions rise strictly, and its cache is the list of its selection at its version (guarantees of `SharedLog`, invariant 6).
 * @returns how many clients have joined, and how many were too late.
 * @throws {AssertionError} if a cache is not the list.
 */
export function simulateSharedWatch(seed: number): { readonly joins: number; readonly tooLate: number } {
  let joins = 0
  let tooLate = 0
  const draw = seededRandom(seed)
  const random = (below: number) => Math.floor(draw() * below)
  const names = ['a', 'b', 'c', 'd'].slice(0, 1 + random(4))
  const partitions = new Map(names.map((name, number) => [name, new Partition(number, random(2_000) - 1_000)]))
  const merge = new EventMerge(names, 0, { maxBufferedBytes: () => 1e9 })
  const log = new SharedLog(0, { maxEvents, maxBytes: 1e9 })
  const clients: Client[] = []
  const settle = () => {
    log.push(merge.take() as SharedEvent[])
    for (const { source, revision } of merge.progressRequests()) partitions.get(source)?.progress(revision)
  }
  const deliver = (name: string, partition: Partition) => {
    const item = partition.receive()
    if (!item) return false
    if ('bookmark' in item) merge.advance(name, item.bookmark)
    else merge.add(name, sentOf(item.change))
    return true
  }
  const makeClient = () => {
    const worker = `w${random(3)}`
    const kinds = [
      () => new Client(seed, {}, () => true),
      () => new Client(seed, { fieldSelector: `spec.workerName=${worker}` }, values => values.worker === worker),
      () => new Client(seed, { fieldSelector: `spec.workerName!=${worker}` }, values => values.worker !== worker),
      () => new Client(seed, { labelSelector: 'app=x' }, values => values.app === 'x'),
      () =>
        new Client(
          seed,
          { labelSelector: 'app!=x', fieldSelector: `spec.workerName=${worker}` },
          values => values.app !== 'x' && values.worker === worker,
        ),
    ]
    return (kinds[random(kinds.length)] as () => Client)()
  }
  /** Reads the objects of each partition at another moment, or at one version what was there then; then joins, as `serve-watch.ts` does. */
  const join = () => {
    const client = makeClient()
    const at = Math.max(0, ...[...partitions.values()].map(({ clock }) => clock))
    const isContinued = random(2) === 0
    for (const [name, partition] of partitions) {
      if (isContinued) partition.raise(at)
      client.from.set(name, isContinued ? at : partition.clock)
      for (const [object, values] of partition.objects) if (client.selects(values)) client.setInitial(object, values)
    }
    // Events between the versions of the partitions may be below the highest of them.
    client.startAfter(Math.min(...client.from.values()))
    return client
  }
  /** Its caught up state is older by the time it joins. */
  let waiting: Client | undefined
  for (let nowMs = 1_000; nowMs < 1_000 + steps; nowMs += random(3)) {
    const name = names[random(names.length)] as string
    const partition = partitions.get(name) as Partition
    const what = random(24)
    if (what < 8) {
      const after = random(6) === 0 ? undefined : { worker: `w${random(3)}`, app: random(2) ? 'x' : 'y' }
      partition.write(`${name}-${random(5)}`, after, nowMs)
    } else if (what < 18) deliver(name, partition)
    else if (what === 18) {
      partition.reopen(merge.resumeFrom(name))
      merge.reopened(name)
    } else if (what === 19 && clients.length > 0) {
      const [left] = clients.splice(random(clients.length), 1)
      if (left) log.remove(left)
    } else if (what === 20) waiting ??= join()
    else if (what === 21 && waiting) {
      joins++
      if (log.add(waiting)) clients.push(waiting)
      else {
        tooLate++
        equal(Math.min(...waiting.from.values()) < log.floor, true, 'only who has missed something is rejected')
      }
      waiting = undefined
    }
    settle()
  }
  // The rest arrives.
  for (let isBusy = true; isBusy; settle()) {
    isBusy = false
    for (const [name, partition] of partitions) while (deliver(name, partition)) isBusy = true
  }
  for (const client of clients) {
    const expected = [...partitions.values()]
      .flatMap(({ objects }) => [...objects])
      .filter(([, values]) => client.selects(values))
      .map(([name, { worker, app }]) => [name, `${worker} ${app}`])
    deepEqual([...client.cache].sort(), expected.sort(), `seed ${seed}`)
  }
  equal(log.size, clients.length)
  return { joins, tooLate }
}
