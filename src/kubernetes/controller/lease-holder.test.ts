import { deepEqual, equal, ok, throws } from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { VirtualClock } from '../../../test/support/virtual-clock.ts'
import type { LeaseBody } from '../client/index.ts'
import { alreadyExists, conflict, type KubeObject } from '../object/index.ts'
import { LeaseHolder, type LeaseStore } from './index.ts'

const durations = { leaseDurationMs: 15_000, renewDeadlineMs: 10_000, retryPeriodMs: 2_000 }

/** The server: one Lease with strict versions on virtual time. Requests and responses take `delayMs()` each. */
class Cluster {
  readonly time = new VirtualClock()
  lease: KubeObject<LeaseBody> | undefined
  #version = 0
  readonly leaders = new Set<string>()
  readonly history: string[] = []
  most = 0

  store(contender: Contender): LeaseStore {
    const { time } = this
    const travel = async <T>(run: () => T): Promise<T> => {
      if (contender.isCutOff) throw new Error('no route')
      await time.sleep(contender.delayMs())
      let result: { value: T } | { error: unknown }
      try {
        result = { value: run() }
      } catch (error) {
        result = { error }
      }
      await time.sleep(contender.delayMs())
      await contender.running()
      if ('error' in result) throw result.error
      return result.value
    }
    const write = (spec: LeaseBody['spec']): KubeObject<LeaseBody> => {
      const metadata = { name: 'ctl', namespace: 'a', uid: 'u', resourceVersion: String(++this.#version), creationTimestamp: '' }
      this.lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec }
      return this.lease
    }
    const name = { group: 'coordination.k8s.io', plural: 'leases' }
    return {
      read: () => travel(() => this.lease),
      create: lease =>
        travel(() => {
          if (this.lease) throw alreadyExists(name, 'ctl')
          return write(lease.spec)
        }),
      update: lease =>
        travel(() => {
          if (lease.metadata.resourceVersion !== this.lease?.metadata.resourceVersion) throw conflict(name, 'ctl', 'moved on')
          return write(lease.spec)
        }),
    }
  }

  contender(identity: string, delayMs = 5): Contender {
    return new Contender(this, identity, delayMs)
  }
}

/** One process: its clock may have another origin, and it may be stopped (SIGSTOP) or cut off from the server. */
class Contender {
  readonly identity: string
  readonly holder: LeaseHolder
  readonly #cluster: Cluster
  readonly #stop = new AbortController()
  readonly run: Promise<void>
  isCutOff = false
  delayMs: () => number
  #pausedUntilMs = 0

  constructor(cluster: Cluster, identity: string, delayMs: number) {
    this.identity = identity
    this.delayMs = () => delayMs
    this.#cluster = cluster
    const { time } = cluster
    const originMs = identity.length * 1_000_000
    // No timer wakes a stopped process until it continues.
    const sleep = async (ms: number, signal?: AbortSignal) => {
      await time.sleep(ms, signal)
      await this.running()
    }
    const clock = { nowMs: () => time.nowMs() + originMs, sleep }
    const parts = {
      leaseName: 'ctl',
      namespace: 'a',
      identity,
      ...durations,
      clock,
      random: () => 0.5,
      wallMs: () => time.nowMs() * 7 - originMs + 1e9,
    }
    this.holder = new LeaseHolder({ ...parts, store: cluster.store(this) })
    this.run = this.holder.run(this.#stop.signal, {
      onGained: () => void cluster.history.push(`${time.nowMs()} ${identity} leads`),
      onLost: () => void cluster.history.push(`${time.nowMs()} ${identity} lost`),
    })
  }

  pause(ms: number): void {
    this.#pausedUntilMs = Math.max(this.#pausedUntilMs, this.#cluster.time.nowMs() + ms)
  }

  async running(): Promise<void> {
    while (this.#cluster.time.nowMs() < this.#pausedUntilMs)
      await this.#cluster.time.sleep(this.#pausedUntilMs - this.#cluster.time.nowMs())
  }

  async stop(): Promise<void> {
    this.#stop.abort()
    await this.#cluster.time.advance(100)
    await this.run
  }
}

test('the first leads, the second waits and takes over immediately after a graceful stop', async () => {
  const cluster = new Cluster()
  const one = cluster.contender('one')
  await cluster.time.advance(100)
  const two = cluster.contender('three')
  await cluster.time.advance(60_000)
  deepEqual([one.holder.isHeld, two.holder.isHeld], [true, false])
  await one.stop()
  equal(cluster.lease?.spec?.holderIdentity, '')
  await cluster.time.advance(3_000)
  deepEqual([one.holder.isHeld, two.holder.isHeld], [false, true])
  equal(cluster.lease?.spec?.leaseTransitions, 1)
  await two.stop()
})

test('invariant 2: a leader cut off from the server stops before the other starts, although their clocks disagree', async () => {
  const cluster = new Cluster()
  const one = cluster.contender('one')
  await cluster.time.advance(100)
  const two = cluster.contender('three')
  await cluster.time.advance(20_000)
  one.isCutOff = true
  const cutMs = cluster.time.nowMs()
  await cluster.time.advance(30_000)
  const [lost, gained] = cluster.history.slice(-2).map(line => ({ atMs: Number(line.split(' ')[0]), line })) as [
    { atMs: number; line: string },
    { atMs: number; line: string },
  ]
  ok(lost.line.endsWith('one lost') && gained.line.endsWith('three leads'), cluster.history.join())
  ok(lost.atMs - cutMs <= 10_000 && gained.atMs - lost.atMs >= 3_000, cluster.history.join())
  one.isCutOff = false
  await cluster.time.advance(60_000)
  deepEqual([one.holder.isHeld, two.holder.isHeld], [false, true])
  await one.stop()
  await two.stop()
})

test('invariant 2: a leader that was paused detects at its first check that it no longer leads', async () => {
  const cluster = new Cluster()
  const one = cluster.contender('one')
  await cluster.time.advance(100)
  const two = cluster.contender('three')
  await cluster.time.advance(5_000)
  one.pause(40_000)
  await cluster.time.advance(39_000)
  deepEqual([one.holder.isHeld, two.holder.isHeld], [false, true])
  await cluster.time.advance(30_000)
  deepEqual([one.holder.isHeld, two.holder.isHeld], [false, true])
  await one.stop()
  await two.stop()
})

test('invariant 2: a response later than the deadline makes no leader, because the Lease counts from the sending', async () => {
  const cluster = new Cluster()
  // Reads until 16 s, the create is sent then, is done at 24 s and answered at 32 s.
  const one = cluster.contender('one', 8_000)
  await cluster.time.advance(25_000)
  const two = cluster.contender('three')
  await cluster.time.advance(60_000)
  deepEqual(
    cluster.history.map(line => line.replace(/^\d+ /, '')),
    ['three leads'],
  )
  equal(two.holder.isHeld, true)
  one.delayMs = () => 5
  await cluster.time.advance(20_000)
  await one.stop()
  await two.stop()
})

test('invariant 2: under random pauses, partitions and delays there are never two leaders, and afterwards there is one', async () => {
  const fault = fc.record({
    who: fc.constantFrom(0, 1, 2),
    what: fc.constantFrom('pause' as const, 'cut' as const, 'slow' as const),
    afterMs: fc.integer({ min: 0, max: 20_000 }),
    forMs: fc.integer({ min: 100, max: 40_000 }),
    delayMs: fc.integer({ min: 5, max: 12_000 }),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(fault, { maxLength: 8 }), async faults => {
      const cluster = new Cluster()
      const { time } = cluster
      const contenders = ['one', 'three', 'fifth'].map(identity => cluster.contender(identity))
      const check = () =>
        ok(contenders.filter(({ holder }) => holder.isHeld).length <= 1, `two leaders at ${time.nowMs()}: ${cluster.history.join()}`)
      for (const { who, what, afterMs, forMs, delayMs } of faults) {
        for (let rest = afterMs; rest > 0; rest -= 500) {
          await time.advance(Math.min(rest, 500))
          check()
        }
        const contender = contenders[who] as Contender
        if (what === 'pause') contender.pause(forMs)
        if (what === 'cut') {
          contender.isCutOff = true
          time.after(forMs, () => {
            contender.isCutOff = false
          })
        }
        if (what === 'slow') {
          contender.delayMs = () => delayMs
          time.after(forMs, () => {
            contender.delayMs = () => 5
          })
        }
      }
      for (let step = 0; step < 200; step++) {
        await time.advance(500)
        check()
      }
      equal(contenders.filter(({ holder }) => holder.isHeld).length, 1, `no leader after the calm: ${cluster.history.join()}`)
      for (const contender of contenders) await contender.stop()
    }),
    { numRuns: 40 },
  )
})

test('rejects durations that cannot be safe', () => {
  const parts = { leaseName: 'ctl', namespace: 'a', identity: 'x', store: new Cluster().store({} as Contender) }
  throws(() => new LeaseHolder({ ...parts, renewDeadlineMs: 15_000 }), /leaseDurationMs 15000 must be > renewDeadlineMs 15000/)
})
