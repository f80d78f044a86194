import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { decideOrphans, type OrphanSince } from './decide-orphans.ts'

const look = (nowMs: number, since: ReadonlyMap<string, OrphanSince>, { alive = false, registered = false, starting = false } = {}) =>
  decideOrphans({
    running: [{ name: 'w', pool: 'p' }],
    isRegistered: () => registered,
    isStarting: () => starting,
    isAlive: () => alive,
    since,
    nowMs,
  })

test('a process without a Worker is asked to stop after 30 s and killed after another 30 s', () => {
  const seen = look(0, new Map())
  deepEqual([seen.stop, seen.requeueAfterMs], [[], 30_000])
  deepEqual(look(29_999, seen.since).stop, [])
  const asked = look(30_000, seen.since)
  deepEqual(asked.stop, [{ name: 'w', force: false }])
  deepEqual(look(59_999, asked.since).stop, [])
  deepEqual(look(60_000, asked.since).stop, [{ name: 'w', force: true }])
})

test('a worker that renews its Lease or has a Run is asked to stop and never killed (invariant 8)', () => {
  const asked = look(30_000, look(0, new Map(), { alive: true }).since, { alive: true })
  deepEqual(look(60_000, asked.since, { alive: true }).stop, [{ name: 'w', force: false }])
})

test('a worker that is registered or starting is not an orphan', () => {
  const seen = look(0, new Map())
  deepEqual(look(60_000, seen.since, { registered: true }), { stop: [], since: new Map(), requeueAfterMs: undefined })
  deepEqual(look(60_000, seen.since, { starting: true }), { stop: [], since: new Map(), requeueAfterMs: undefined })
})
