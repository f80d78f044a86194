import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { decideOrphans, type OrphanSince } from './decide-orphans.ts'

const decide = (nowMs: number, since: ReadonlyMap<string, OrphanSince>, { alive = false, registered = false, starting = false } = {}) =>
  decideOrphans({
    running: [{ name: 'w', pool: 'p' }],
    isRegistered: () => registered,
    isStarting: () => starting,
    isAlive: () => alive,
    since,
    nowMs,
  })

test('a process without a Worker is asked to stop after 30 s and killed after another 30 s', () => {
  const first = decide(0, new Map())
  deepEqual([first.stop, first.requeueAfterMs], [[], 30_000])
  deepEqual(decide(29_999, first.since).stop, [])
  const second = decide(30_000, first.since)
  deepEqual(second.stop, [{ name: 'w', force: false }])
  deepEqual(decide(59_999, second.since).stop, [])
  deepEqual(decide(60_000, second.since).stop, [{ name: 'w', force: true }])
})

test('a worker that renews its Lease or has a Run is asked to stop and never killed (invariant 8)', () => {
  const second = decide(30_000, decide(0, new Map(), { alive: true }).since, { alive: true })
  deepEqual(decide(60_000, second.since, { alive: true }).stop, [{ name: 'w', force: false }])
})

test('a worker that is registered or starting is not an orphan', () => {
  const first = decide(0, new Map())
  deepEqual(decide(60_000, first.since, { registered: true }), { stop: [], since: new Map(), requeueAfterMs: undefined })
  deepEqual(decide(60_000, first.since, { starting: true }), { stop: [], since: new Map(), requeueAfterMs: undefined })
})
