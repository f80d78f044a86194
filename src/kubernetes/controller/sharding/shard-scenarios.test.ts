import { deepEqual } from 'node:assert/strict'
import { join } from 'node:path'
import { describe } from 'node:test'
import { TranscriptLines, type TranscriptPlayer, testTranscripts } from '../../../../test/support/transcripts.ts'
import { parseDuration } from '../../object/index.ts'
import { ShardSimulation } from './shard-simulation.testing.ts'

/**
 * Commands: `start NAME`, `stop NAME` (SIGTERM), `kill NAME`, `pause NAME` (SIGSTOP), `resume NAME`, `cut NAME` and `heal NAME` (its network),
 * `jump NAME 1m` (its monotonic clock), `late NAME 10s 20s` (its watch is 10 s late for 20 s), `delete LEASE`, `recreate LEASE` (the same with
 * another UID), `idle` (buckets without an owner), `advance 10s`.
 */
class ShardPlayer implements TranscriptPlayer {
  readonly #lines = new TranscriptLines(() => this.#simulation.nowMs)
  readonly #simulation = new ShardSimulation({
    seed: 1,
    members: 3,
    longCallRate: 0,
    log: (_atMs, text, isRoutine) => (isRoutine ? this.#lines.addRoutine(text) : this.#lines.add(text)),
  })

  play(command: string, [name = '', amount = '0s', duration = '0s']: string[]): void {
    const simulation = this.#simulation
    const ms = parseDuration(amount)
    if (command === 'advance') simulation.advance(parseDuration(name))
    else if (command === 'start') simulation.start(name)
    else if (command === 'delete') simulation.deleteLease(name)
    else if (command === 'recreate') simulation.recreateLease(name)
    else if (command === 'idle') this.#lines.add(`${simulation.idle.length} buckets have no owner`)
    else if (command === 'stop') simulation.member(name).stop()
    else if (command === 'kill') simulation.member(name).kill()
    else if (command === 'pause') simulation.member(name).pause()
    else if (command === 'resume') simulation.member(name).resume()
    else if (command === 'cut') simulation.member(name).cut()
    else if (command === 'heal') simulation.member(name).heal()
    else if (command === 'jump') simulation.member(name).jump(ms)
    else if (command === 'late') simulation.member(name).delayWatch(ms, parseDuration(duration))
    else throw new Error(`unknown command ${command}`)
  }

  takeLines(): string[] {
    return this.#lines.take()
  }

  close(): void {
    deepEqual(this.#simulation.violations, [])
  }
}

describe('sharding on virtual time', () => testTranscripts(join(import.meta.dirname, 'testdata'), () => new ShardPlayer()))
