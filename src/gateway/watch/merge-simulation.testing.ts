import { deepEqual, ok } from 'node:assert/strict'
import { nextRevision, revisionEpochMs, seededRandom } from '../../kubernetes/util/index.ts'
import { EventMerge } from './merge-events.ts'

const steps = 300

/** Of a partition: what it has assigned, and what is on its way to the gateway. */
class Partition {
  readonly log: number[] = []
  readonly #number: number
  readonly #skewMs: number
  #clock = 0
  #sent: { isBookmark: boolean; revision: number }[] = []

  constructor(number: number, skewMs: number) {
    this.#number = number
    this.#skewMs = skewMs
  }

  write(nowMs: number): void {
    this.#clock = nextRevision(this.#clock, revisionEpochMs + nowMs + this.#skewMs, this.#number)
    this.log.push(this.#clock)
    this.#sent.push({ isBookmark: false, revision: this.#clock })
  }

  progress(revision: number): void {
    this.#clock = Math.max(this.#clock, revision)
    this.#sent.push({ isBookmark: true, revision: this.#clock })
  }

  receive() {
    return this.#sent.shift()
  }

  /** Everything that was on its way is lost. */
  reopen(from: number): void {
    this.#sent = this.log.filter(revision => revision > from).map(revision => ({ isBookmark: false, revision }))
  }
}

/**
 * Random partitions with clocks that differ, connections that delay and break, and progress that is asked for.
 * @returns the number of events.
 * @throws {AssertionError} if the merged log does not have every event once, in order.
 */
export function simulateMerge(seed: number): number {
  const draw = seededRandom(seed)
  const random = (below: number) => Math.floor(draw() * below)
  const names = ['a', 'b', 'c', 'd'].slice(0, 1 + random(4))
  const partitions = new Map(names.map((name, number) => [name, new Partition(number, random(2_000) - 1_000)]))
  const merge = new EventMerge(names, 0, { maxBufferedBytes: () => 1e9 })
  const received: number[] = []
  const settle = () => {
    for (const { revision } of merge.take()) received.push(revision)
    for (const { source, revision } of merge.progressRequests()) partitions.get(source)?.progress(revision)
  }
  const deliver = (name: string, partition: Partition) => {
    const item = partition.receive()
    if (!item) return false
    if (item.isBookmark) merge.advance(name, item.revision)
    else merge.add(name, { revision: item.revision, line: new Uint8Array(1) })
    return true
  }
  for (let nowMs = 1_000; nowMs < 1_000 + steps; nowMs += random(3)) {
    const name = names[random(names.length)] as string
    const partition = partitions.get(name) as Partition
    const what = random(20)
    if (what < 8) partition.write(nowMs)
    else if (what < 19) deliver(name, partition)
    else {
      partition.reopen(merge.resumeFrom(name))
      merge.reopened(name)
    }
    settle()
  }
  // The rest arrives.
  for (let isBusy = true; isBusy; settle()) {
    isBusy = false
    for (const [name, partition] of partitions) while (deliver(name, partition)) isBusy = true
  }
  const all = [...partitions.values()].flatMap(({ log }) => log).sort((a, b) => a - b)
  deepEqual(received, all, `seed ${seed}`)
  ok(all.length > 10)
  return all.length
}
