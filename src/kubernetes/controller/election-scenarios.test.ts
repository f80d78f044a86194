import { deepEqual, equal, ok } from 'node:assert/strict'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { TranscriptLines, type TranscriptPlayer, testTranscripts } from '../../../test/support/transcripts.ts'
import { parseDuration } from '../object/index.ts'
import { type Contender, ElectionCluster } from './election.testing.ts'

/**
 * Commands: `start NAME`, `stop NAME` (SIGTERM), `kill NAME`, `pause NAME` (SIGSTOP) and `pause-in-write NAME`, `resume NAME`, `cut NAME` and
 * `heal NAME` (its network), `slow NAME 3s` (each way), `jump NAME 1m` (its monotonic clock), `wall NAME -1h` (its wall clock),
 * `delete-lease`, `advance 10s`, `unsafe` (from here on two may lead).
 */
class ElectionPlayer implements TranscriptPlayer {
  readonly #cluster: ElectionCluster
  readonly #lines = new TranscriptLines(() => this.#atMs)
  #atMs = 0
  #read = 0
  #isSafe = true

  constructor(cluster = new ElectionCluster()) {
    this.#cluster = cluster
  }

  async play(command: string, [name = '', amount = '0s']: string[]): Promise<void> {
    if (command === 'advance') await advance(this.#cluster, parseDuration(name), this.#isSafe)
    else if (command === 'unsafe') this.#isSafe = false
    else if (command === 'delete-lease') this.#cluster.deleteLease()
    else if (command === 'start') this.#cluster.contender(name)
    else
      this.#fault(
        command,
        this.#cluster.contenders.get(name) as Contender,
        parseDuration(amount.replace('-', '')) * (amount[0] === '-' ? -1 : 1),
      )
  }

  #fault(command: string, contender: Contender, ms: number): void {
    if (command === 'stop') contender.requestStop()
    else if (command === 'kill' || command === 'pause') contender.pause()
    else if (command === 'pause-in-write') contender.pauseInNextWriteMs = ms || Number.POSITIVE_INFINITY
    else if (command === 'resume') contender.resume()
    else if (command === 'cut' || command === 'heal') contender.isCutOff = command === 'cut'
    else if (command === 'slow') contender.delayMs = () => ms
    else if (command === 'jump') contender.jump(ms)
    else if (command === 'wall') contender.wallJumpMs = ms
    else throw new Error(`unknown command ${command}`)
  }

  takeLines(): string[] {
    for (const { atMs, text, isRoutine } of this.#cluster.events.slice(this.#read)) {
      this.#atMs = atMs
      if (isRoutine) this.#lines.addRoutine(text)
      else this.#lines.add(text)
    }
    this.#read = this.#cluster.events.length
    return this.#lines.take()
  }

  close(): void {
    if (this.#isSafe) checkWriters(this.#cluster)
  }
}

/** Advances time from event to event. A leader stops leading between events and starts with one, so that a check at each is enough. */
async function advance(cluster: ElectionCluster, ms: number, isSafe = true): Promise<void> {
  const { time } = cluster
  const untilMs = time.nowMs() + ms
  for (let nowMs = time.nowMs(); ; nowMs = time.nowMs()) {
    await time.advance(Math.min(untilMs, time.nextMs ?? untilMs) - nowMs)
    ok(!isSafe || cluster.leaders.length <= 1, `${cluster.leaders} lead at ${time.nowMs()} ms\n${formatEvents(cluster)}`)
    if (time.nowMs() >= untilMs) return
  }
}

/** Writes of two leaderships never alternate: what an earlier leader sent late is rejected once the next one has written (invariant 7). */
function checkWriters(cluster: ElectionCluster): void {
  const { writers } = cluster
  const order = writers.filter((leadership, index) => leadership !== writers[index - 1])
  deepEqual(order, [...new Set(order)], formatEvents(cluster))
}

const formatEvents = ({ events }: ElectionCluster): string => events.map(({ atMs, text }) => `${atMs} ${text}`).join('\n')

describe('leader election on virtual time', () => testTranscripts(join(import.meta.dirname, 'testdata'), () => new ElectionPlayer()))

const fault = fc.record({
  who: fc.constantFrom('leader', 'leader', 'one', 'two', 'three'),
  what: fc.constantFrom('cut', 'cut', 'slow', 'pause', 'pause-in-write', 'kill', 'stop', 'jump'),
  afterMs: fc.integer({ min: 0, max: 20_000 }),
  forMs: fc.integer({ min: 100, max: 40_000 }),
  delayMs: fc.integer({ min: 5, max: 12_000 }),
})

/** A read that is sent by one leadership returns in the next one of the same process. */
const readAcrossLeaderships: (typeof fault extends fc.Arbitrary<infer Fault> ? Fault : never)[] = [
  { who: 'leader', what: 'cut', afterMs: 48, forMs: 3_993, delayMs: 5 },
  { who: 'leader', what: 'slow', afterMs: 4_345, forMs: 1_627, delayMs: 5_006 },
]

test('invariants 2 and 7: under random faults there are never two leaders, no write of an earlier leader follows one of a later, and afterwards there is a leader', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fault, { maxLength: 10 }), async faults => {
      const cluster = new ElectionCluster()
      const { time, contenders } = cluster
      const player = new ElectionPlayer(cluster)
      for (const name of ['one', 'two', 'three']) await player.play('start', [name])
      for (const { who, what, afterMs, forMs, delayMs } of faults) {
        await advance(cluster, afterMs)
        // A process that was killed or stopped is followed by the next one, which has an identity of its own.
        const target = who === 'leader' ? (cluster.leaders[0] ?? 'one') : who
        const identity = [...contenders.keys()].findLast(name => name.startsWith(target)) as string
        // Only a clock that runs too fast at another candidate than the leader breaks the lease: no monotonic clock does that.
        if (what === 'jump' && !contenders.get(identity)?.holder.isHeld) continue
        await player.play(what, [identity, `${what === 'slow' ? delayMs : forMs}ms`])
        if (what === 'kill' || what === 'stop') await player.play('start', [`${identity}'`])
        else if (what === 'pause') time.after(forMs, () => contenders.get(identity)?.resume())
        else if (what === 'cut') time.after(forMs, () => void player.play('heal', [identity]))
        else if (what === 'slow') time.after(forMs, () => void player.play('slow', [identity, '5ms']))
      }
      await advance(cluster, 60_000)
      equal(cluster.leaders.length, 1, formatEvents(cluster))
      checkWriters(cluster)
    }),
    { numRuns: 60, examples: [[readAcrossLeaderships]] },
  )
})
