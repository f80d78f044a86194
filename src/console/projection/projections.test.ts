import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { formatRing, unknownRing } from '../../kubernetes/controller/sharding/ring.ts'
import type { ProjectionSources } from './projections.ts'
import { Projections } from './projections.ts'

const nothing = { onChange: () => () => {}, get: () => undefined, list: () => [] }
const nowMs = Date.parse('2026-06-01T10:00:00Z')
const label = 'sharding.oarlock.dev/ring'

const lease = (name: string, holderIdentity: string, more: object = {}) => ({
  metadata: {
    namespace: 'oarlock-system',
    name,
    uid: name,
    resourceVersion: '7',
    labels: { [label]: 'stacks' },
    creationTimestamp: '2026-06-01T09:00:00Z',
    ...more,
  },
  spec: { holderIdentity, renewTime: new Date(nowMs).toISOString(), leaseDurationSeconds: 15, leaseTransitions: 1 },
})

test('members of a ring show how many buckets they hold, and another number when the ring has changed; outside a ring a Lease without a holder is listed', () => {
  const ringOf = (ofFirst: number) => {
    const ring = unknownRing(3)
    for (const slots of [ring.homes, ring.targets, ring.holders]) slots.fill(1).fill(0, 0, ofFirst)
    const members = new Map(['a.1', 'b.1'].map((session, slot) => [slot, { session, uid: `stacks-${slot}`, since: 1 }]))
    return lease('stacks-ring', 'a.1', { annotations: { [label]: formatRing({ ...ring, members }) } })
  }
  const objects = new Map<string, object>([
    ['stacks-ring', ringOf(1_000)],
    ['stacks-0', lease('stacks-0', 'a.1')],
    ['stacks-1', lease('stacks-1', 'b.1')],
    ['other', lease('other', 'c', { labels: {} })],
    ['released', lease('released', '', { labels: {} })],
    ['stacks-2', lease('stacks-2', '')],
  ])
  let report: (object: object) => void = () => {}
  const leases = {
    ...nothing,
    list: () => [...objects.values()],
    onChange: ({ changed }: { changed(change: { type: string; object: object }): void }) => {
      report = object => changed({ type: 'updated', object })
      for (const object of objects.values()) report(object)
    },
  }
  const names = ['stacks', 'runs', 'workers', 'pools', 'tenants', 'namespaces'] as const
  const sources = { ...Object.fromEntries(names.map(name => [name, nothing])), leases } as unknown as ProjectionSources
  const { tables } = new Projections(sources)
  const shown = () => [...tables.controllers.values()].map(({ name, ring, buckets }) => [name, ring, buckets]).sort()
  const members = (first: number) => [
    ['other', undefined, undefined],
    ['released', undefined, undefined],
    ['stacks-0', 'stacks', first],
    ['stacks-1', 'stacks', 1_024 - first],
  ]
  deepEqual(
    shown().filter(([name]) => name !== 'stacks-ring'),
    members(1_000),
  )
  objects.set('stacks-ring', ringOf(24))
  report(objects.get('stacks-ring') as object)
  deepEqual(
    shown().filter(([name]) => name !== 'stacks-ring'),
    members(24),
  )
})

test('a namespace belongs to the Tenant that claims it, or else to one of its own name, as in the queue', () => {
  const named = (name: string, spec: object = {}) => ({ metadata: { name, uid: name, creationTimestamp: '2026-06-01T09:00:00Z' }, spec })
  const listOf = (objects: { metadata: { name: string } }[]) => ({
    ...nothing,
    list: () => objects,
    get: (name: string) => objects.find(({ metadata }) => metadata.name === name),
  })
  const names = ['stacks', 'runs', 'workers', 'pools', 'leases'] as const
  const sources = {
    ...Object.fromEntries(names.map(name => [name, nothing])),
    tenants: listOf([named('shop', { namespaces: ['web'] }), named('lab')]),
    namespaces: listOf(['web', 'lab', 'other'].map(name => named(name))),
  } as unknown as ProjectionSources
  const projections = new Projections(sources)
  deepEqual(
    ['web', 'lab', 'other'].map(namespace => projections.tenantOf(namespace)),
    ['shop', 'lab', undefined],
  )
})

test('the controllers of another process are listed after the Lease that it holds, until it holds it no more', () => {
  let report: (type: string, object: object) => void = () => {}
  const leases = {
    ...nothing,
    onChange: ({ changed }: { changed(change: { type: string; object: object }): void }) => {
      report = (type, object) => changed({ type, object })
    },
  }
  const names = ['stacks', 'runs', 'workers', 'pools', 'tenants', 'namespaces'] as const
  const sources = { ...Object.fromEntries(names.map(name => [name, nothing])), leases } as unknown as ProjectionSources
  const { tables } = new Projections(sources)
  const stack = { name: 'stack', reconciles: 100, errors: 2, queued: 0, p99Ms: 300 }
  const held = (holder: string, ...figures: object[]) =>
    lease('oarlock-controller', holder, { labels: {}, annotations: { 'oarlock.dev/controller-figures': JSON.stringify(figures) } })
  const shown = () =>
    [...tables.controllers.values()].sort((a, b) => (a.key < b.key ? -1 : 1)).map(({ name, holder, p99Ms }) => [name, holder, p99Ms])
  report('added', lease('oarlock-controller-2', 'b', { labels: {} }))
  report('added', held('a', stack, { ...stack, name: 'pool' }))
  deepEqual(shown(), [
    ['oarlock-controller', 'a', undefined],
    ['pool', 'a', 300],
    ['stack', 'a', 300],
    ['oarlock-controller-2', 'b', undefined],
  ])
  deepEqual(
    [...tables.controllers.values()].map(({ renewedMs }) => renewedMs),
    [nowMs, nowMs, nowMs, nowMs],
  )
  report('updated', held('b', { ...stack, p99Ms: 50 }))
  deepEqual(shown().slice(0, 2), [
    ['oarlock-controller', 'b', undefined],
    ['stack', 'b', 50],
  ])
  report('updated', held('', stack))
  deepEqual(shown().length, 2)
  report('updated', held('a', stack))
  report('deleted', held('a', stack))
  deepEqual(shown(), [['oarlock-controller-2', 'b', undefined]])
  // Each worker may write its own Lease.
  report('added', {
    ...held('a', stack),
    metadata: { ...held('a', stack).metadata, name: 'worker-1', labels: { 'oarlock.dev/pool': 'default' } },
  })
  deepEqual(shown(), [['oarlock-controller-2', 'b', undefined]])
})
