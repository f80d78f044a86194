import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Worker } from '../../../api/index.ts'
import { testRun, testWorker } from '../objects.testing.ts'
import { requirementsOf } from '../queue/index.ts'
import { noLoad, type WorkerLoad, withRun } from '../worker-load.ts'
import { WorkerInventory } from './worker-inventory.ts'

const poolNames = ['p', 'q']
const needsIn = (pool: string) =>
  [{}, { resources: { memory: '3Gi' } }, { engine: 'terraform' as const }, { placement: { workerLabels: { gpu: 'yes' } } }].map(stack =>
    requirementsOf(testRun('r', { pool, stack }).spec),
  )

/** Gives away whatever there is, Worker by Worker, then whatever should not be there any more. */
function slots(inventory: WorkerInventory): string[] {
  const slotsOf = (pool: string) => {
    const [requirements] = needsIn(pool)
    const from = ['a', 'b', 'c', 'd'].map(of => {
      let count = 0
      while (inventory.assignTo(of, requirements!) !== undefined) count++
      return `${pool}/${of} ${count}`
    })
    return [...from, `${pool} ${inventory.assign(requirements!, undefined)}`]
  }
  return poolNames.flatMap(slotsOf)
}

/** All that can be asked. */
const answers = (inventory: WorkerInventory) =>
  poolNames.map(pool => ({
    ...inventory.count(pool),
    idleOnes: inventory
      .idle(pool)
      .map(({ metadata }) => metadata.name)
      .sort(),
    engines: [...(inventory.engines(pool) as ReadonlyMap<string, number>)].sort(),
    has: needsIn(pool).map(requirements => inventory.hasFit(requirements)),
    promising: needsIn(pool).map(requirements => inventory.nominate(requirements)),
    isKnown: [...inventory.pools()].includes(pool),
  }))

const name = fc.constantFrom('a', 'b', 'c', 'd')
const which = fc.record({ pool: fc.constantFrom(...poolNames), requirements: fc.nat(3) })
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
  fc.record({ kind: fc.constant('withhold' as const), of: name, pool: fc.constantFrom(...poolNames) }),
  which.map(({ pool, requirements }) => ({ kind: 'take' as const, pool, requirements })),
  fc.record({ kind: fc.constant('takeFrom' as const), of: name, pool: fc.constantFrom(...poolNames), requirements: fc.nat(3) }),
  fc.constant({ kind: 'begin' as const }),
)

test('property: whatever comes, goes, changes pools and is given away, the same as if everything were counted anew', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), steps => {
      const inventory = new WorkerInventory(() => 0)
      const workers = new Map<string, Worker>()
      const loads = new Map<string, WorkerLoad>()
      const given = (taken: string | undefined, requirements: ReturnType<typeof requirementsOf>) => {
        if (taken === undefined) return
        const before = loads.get(taken) ?? noLoad
        const { spec } = workers.get(taken)!
        assert.ok((spec.lifecycle === 'OneShot' ? before.total : before.active) < spec.slots, `${taken} has no slot left`)
        loads.set(taken, withRun(before, 1, requirements))
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
        } else if (one.kind === 'withhold') {
          const isThere = inventory.reserve(one.pool, one.of)
          if (isThere) assert.equal(inventory.assignTo(one.of, needsIn(one.pool)[0]!), undefined, 'nobody gets it')
        } else if (one.kind === 'begin') inventory.beginCycle()
        else {
          const requirements = needsIn(one.pool)[one.requirements]!
          given(one.kind === 'take' ? inventory.assign(requirements, undefined) : inventory.assignTo(one.of, requirements), requirements)
        }
      }
      inventory.beginCycle()
      const anew = WorkerInventory.of(workers.values(), loads, () => 0)
      assert.deepEqual(answers(inventory), answers(anew))
      assert.deepEqual(slots(inventory), slots(anew))
    }),
    { numRuns: 500 },
  )
})
