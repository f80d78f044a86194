import { deepEqual, equal, ok } from 'node:assert/strict'
import { describe, test } from 'node:test'
import { bucketCount } from './bucket.ts'
import { decideRing } from './decide-ring.ts'
import { type Defect, ShardSimulation, simulatedDurations, simulateFaults } from './shard-simulation.testing.ts'

const seeds = 500
const parts = 5

describe('invariants 2 and 7 under kills, pauses, cuts, clock jumps, late watches, lost responses and deleted Leases', () => {
  for (let part = 0; part < parts; part++)
    test(`part ${part + 1} of ${parts}: no bucket has two owners, and none is without one for longer than Lease + 2 s after the last fault`, () => {
      for (let seed = part; seed < seeds; seed += parts) deepEqual(simulateFaults(seed).violations, [], `seed ${seed}`)
    })
})

const defects: { name: string; defect: Defect; want: RegExp }[] = [
  {
    name: 'a ring that does not wait for acknowledgements',
    defect: {
      decideRing(facts) {
        const ring = decideRing(facts)
        return ring && { ...ring, holders: ring.targets.slice(), releasing: new Uint8Array(bucketCount) }
      },
    },
    want: /both believe/,
  },
  {
    name: 'a member that trusts its Lease longer than others do',
    defect: { durations: { leaseDurationMs: 25_000, renewDeadlineMs: 20_000, recordedSeconds: 15 } },
    want: /both believe/,
  },
  {
    name: 'a member that acknowledges while reconciles are running',
    defect: { report: progress => ({ ...progress, busy: [] }) },
    want: /which was never stopped, after the next owner's/,
  },
  {
    name: 'a member that does not check before each call',
    defect: { mayWrite: () => true },
    want: /calls of .* after the next owner's|never stopped/,
  },
  {
    name: 'a member that never acknowledges that it stopped',
    defect: { report: progress => ({ ...progress, stopped: 0 }) },
    want: /have no owner/,
  },
]

for (const { name, defect, want } of defects)
  test(`the simulation finds ${name}`, () => {
    const found: string[] = []
    for (let seed = 0; seed < 100 && !found.some(text => want.test(text)); seed++) found.push(...simulateFaults(seed, defect).violations)
    ok(
      found.some(text => want.test(text)),
      found[0] ?? 'no violation in 100 seeds',
    )
  })

test('the simulation finds a bucket that loses its owner long after the last fault', () => {
  const simulation = new ShardSimulation({ seed: 1, members: 3 })
  for (let member = 0; member < 3; member++) simulation.start(`m${member}`)
  simulation.advance(60_000)
  deepEqual(simulation.violations, [])
  const member = simulation.member('m0')
  // It ends its work although the ring has not ordered it, and begins nothing more.
  member.tenures.apply(undefined, member.clockMs)
  member.tenures.apply = () => ({ begun: [], ended: [] })
  simulation.beliefsChanged(member)
  simulation.advance(10_000)
  ok(/have no owner/.test(simulation.violations[0] ?? ''), simulation.violations[0] ?? 'no violation')
})

test('a rolling restart of 5 members moves each bucket at most twice, and leaves none idle for 2 s', () => {
  for (let seed = 0; seed < 5; seed++) {
    const simulation = new ShardSimulation({ seed, members: 5, longCallRate: 0 })
    for (let member = 0; member < 5; member++) simulation.start(`m${member}`)
    simulation.advance(30_000)
    simulation.moves.fill(0)
    for (let member = 0; member < 5; member++) {
      simulation.member(`m${member}`).stop(30_000)
      simulation.advance(3_000)
      simulation.start(`n${member}`)
      simulation.advance(10_000)
    }
    deepEqual(simulation.violations, [])
    deepEqual(simulation.idle, [])
    ok(Math.max(...simulation.moves) <= 2, `seed ${seed}: ${Math.max(...simulation.moves)} moves`)
    ok(simulation.longestIdleMs < 2_000, `seed ${seed}: idle for ${simulation.longestIdleMs} ms`)
  }
})

test('after the crash of one of 5 members no bucket is idle for longer than Lease + 2 s', () => {
  for (let seed = 0; seed < 10; seed++) {
    const simulation = new ShardSimulation({ seed, members: 5 })
    for (let member = 0; member < 5; member++) simulation.start(`m${member}`)
    simulation.advance(30_000 + seed * 137)
    simulation.member(`m${seed % 5}`).kill()
    simulation.advance(60_000)
    deepEqual(simulation.idle, [])
    ok(simulation.longestIdleMs < simulatedDurations.leaseDurationMs + 2_000, `${simulation.longestIdleMs} ms`)
  }
})

test('after the server was restored from a backup with lower versions, all members stop, and all buckets have one owner again', () => {
  for (let seed = 0; seed < 20; seed++) {
    const simulation = new ShardSimulation({ seed, members: 4 })
    for (let member = 0; member < 3; member++) simulation.start(`m${member}`)
    simulation.advance(30_000)
    simulation.backUp()
    // The ring of the backup gives buckets of the fourth member to others.
    simulation.start('m3')
    simulation.advance(20_000 + seed * 137)
    equal(simulation.idle.length, 0)
    simulation.restore()
    const { leaseDurationMs, retryPeriodMs } = simulatedDurations
    simulation.advance(leaseDurationMs + retryPeriodMs * 2 + 2_000)
    deepEqual(simulation.violations, [], `seed ${seed}`)
    equal(simulation.idle.length, 0, `seed ${seed}: buckets without an owner`)
    equal(new Set(simulation.owners).size, 4, `seed ${seed}: members with buckets`)
    simulation.advance(60_000)
    deepEqual(simulation.violations, [], `seed ${seed}`)
  }
})

test('a member at rest writes its renewals only', () => {
  const simulation = new ShardSimulation({ seed: 1, members: 5 })
  for (let member = 0; member < 5; member++) simulation.start(`m${member}`)
  simulation.advance(30_000)
  const before = simulation.writes
  simulation.advance(100_000)
  ok(simulation.writes - before <= (5 * 100_000) / simulatedDurations.retryPeriodMs, `${simulation.writes - before} writes`)
})
