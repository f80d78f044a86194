import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Worker } from '../../../api/index.ts'
import { testRun, testWorker } from '../objects.testing.ts'
import { requirementsOf } from '../queue/index.ts'
import { noLoad, type WorkerLoad, withRun } from '../worker-load.ts'
import { WorkerInventory } from './worker-inventory.ts'

const first = () => 0
const poolNames = ['p', 'q']
const requirementsIn = (pool: string) =>
  [{}, { resources: { memory: '3Gi' } }, { engine: 'terraform' as const }, { placement: { workerLabels: { gpu: 'yes' } } }].map(stack =>
    requirementsOf(testRun('r', { pool, stack }).spec),
  )

/** Assigns all free slots Worker by Worker, then tries one more assignment in each pool. */
function slots(inventory: WorkerInventory): string[] {
  const slotsOf = (pool: string) => {
    const [requirements] = requirementsIn(pool)
    const from = ['a', 'b', 'c', 'd'].map(of => {
      let count = 0
      while (inventory.assignTo(of, requirements!) !== undefined) count++
      return `${pool}/${of} ${count}`
    })
    return [...from, `${pool} ${inventory.assign(requirements!, [], first)}`]
  }
  return poolNames.flatMap(slotsOf)
}

/** The results of all queries. */
const queryAll = (inventory: WorkerInventory) =>
  poolNames.map(pool => ({
    ...inventory.count(pool),
    idleOnes: inventory
      .idle(pool)
      .map(({ metadata }) => metadata.name)
      .sort(),
    engines: [...(inventory.engines(pool) as ReadonlyMap<string, number>)].sort(),
    has: requirementsIn(pool).map(requirements => inventory.hasFit(requirements)),
    nominated: requirementsIn(pool).map(requirements => inventory.nominate(requirements)),
    isKnown: [...inventory.pools()].includes(pool),
  }))

const name = fc.constantFrom('a', 'b', 'c', 'd')
const target = fc.record({ pool: fc.constantFrom(...poolNames), requirements: fc.nat(3) })
const worker = fc.record({
  name,
  pool: fc.constantFrom(...poolNames),
  slots: fc.integer({ min: 1, max: 3 }),
  lifecycle: fc.constantFrom('OneShot' as const, 'Warm' as const),
  phase: fc.constantFrom<('Ready' | 'Busy' | 'Draining')[]>('Ready', 'Ready', 'Ready', 'Busy', 'Draining'),
  drain: fc.constantFrom(false, false, false, true),
  labels: fc.constantFrom<Record<string, string>>({}, { gpu: 'yes' }, { 'topology.kubernetes.io/zone': 'z' }),
  status: fc.constantFrom<Partial<Worker['status']>[]>(
    {},
    { capacity: { memory: '8Gi' } },
    { engines: { terraform: '1.11.0' } },
    { engines: {} },
  ),
})
const step = fc.oneof(
  worker.map(made => ({ kind: 'set' as const, made })),
  name.map(of => ({ kind: 'delete' as const, of })),
  fc.record({ kind: fc.constant('load' as const), of: name, active: fc.nat(2), more: fc.nat(1) }),
  fc.record({ kind: fc.constant('reserve' as const), of: name, pool: fc.constantFrom(...poolNames) }),
  target.map(({ pool, requirements }) => ({ kind: 'assign' as const, pool, requirements })),
  fc.record({ kind: fc.constant('assignTo' as const), of: name, pool: fc.constantFrom(...poolNames), requirements: fc.nat(3) }),
  fc.constant({ kind: 'begin' as const }),
)

test('property: after any sequence of changes and assignments it equals an inventory built from scratch', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), steps => {
      const inventory = new WorkerInventory()
      const workers = new Map<string, Worker>()
      const loads = new Map<string, WorkerLoad>()
      const count = (assigned: string | undefined, requirements: ReturnType<typeof requirementsOf>) => {
        if (assigned === undefined) return
        const before = loads.get(assigned) ?? noLoad
        const { spec } = workers.get(assigned)!
        assert.ok((spec.lifecycle === 'OneShot' ? before.total : before.active) < spec.slots, `${assigned} has no free slot`)
        loads.set(assigned, withRun(before, 1, requirements))
      }
      for (const one of steps) {
        if (one.kind === 'set') {
          const { name: of, ...options } = one.made
          workers.set(of, testWorker(of, options))
          inventory.set(workers.get(of)!, loads.get(of))
        } else if (one.kind === 'delete') {
          workers.delete(one.of)
          loads.delete(one.of)
          inventory.delete(one.of)
        } else if (one.kind === 'load') {
          const load = { active: one.active, total: one.active + one.more, cpuMillis: 0, memoryBytes: one.active * 2 ** 30 }
          if (workers.has(one.of)) loads.set(one.of, load)
          inventory.setLoad(one.of, load)
        } else if (one.kind === 'reserve') {
          const isReserved = inventory.reserve(one.pool, one.of)
          if (isReserved)
            assert.equal(inventory.assignTo(one.of, requirementsIn(one.pool)[0]!), undefined, 'a reserved Worker is not assigned')
        } else if (one.kind === 'begin') inventory.beginCycle()
        else {
          const requirements = requirementsIn(one.pool)[one.requirements]!
          count(one.kind === 'assign' ? inventory.assign(requirements, [], first) : inventory.assignTo(one.of, requirements), requirements)
        }
      }
      inventory.beginCycle()
      const rebuilt = WorkerInventory.of(workers.values(), loads)
      assert.deepEqual(queryAll(inventory), queryAll(rebuilt))
      assert.deepEqual(slots(inventory), slots(rebuilt))
    }),
    { numRuns: 500 },
  )
})
