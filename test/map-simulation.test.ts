/** Changes of the map of partitions, on virtual time: roles, partitions and claims come and go, and gateways with old maps serve clients. */
import { deepEqual, ok } from 'node:assert/strict'
import { test } from 'node:test'
import { type MapCounts, type MapFault, type MapViolation, simulateMapChanges } from './support/gateway/map-simulation.ts'

const seeds = 500

test(`with ${seeds} seeds no write is lost or done twice, no name is in two partitions, the versions of each watch rise, and each cache is the list`, async t => {
  const violations: MapViolation[] = []
  const total: Partial<Record<keyof MapCounts, number>> = {}
  for (let seed = 1; seed <= seeds; seed++) {
    const run = await simulateMapChanges(seed)
    violations.push(...run.violations)
    for (const [what, count] of Object.entries(run.counts) as [keyof MapCounts, number][]) total[what] = (total[what] ?? 0) + count
  }
  t.diagnostic(JSON.stringify(total))
  deepEqual(
    violations.map(({ text }) => text),
    [],
  )
  // Every case has happened, else the runs prove nothing.
  for (const [what, count] of Object.entries(total)) ok(count >= 20, `${what}: ${count}`)
})

/** Each with the kind that finds it, and a seed from which on that is soon. */
for (const [fault, kind, from] of [
  ['a watch stays open when its partitions change', 'cache', 1],
  ['a list does not check that the map is current', 'list', 452],
  ['a partition executes what it does not own', 'list', 1],
  ['a write without an answer is sent again', 'write', 1],
  ['a namespace is created without a claim', 'write', 1],
  ['events are passed on as they arrive', 'order', 1],
  ['a role is used that not all partitions know of', 'list', 221],
  ['a watch continues with a map that is older than that of its partitions', 'cache', 158],
  ['a watch continues from before the removal of a partition', 'cache', 45],
] as [MapFault, MapViolation['kind'], number][])
  test(`the simulation finds that ${fault}`, async () => {
    for (let seed = from; seed < from + 1_500; seed++) {
      const { violations } = await simulateMapChanges(seed, fault)
      if (violations.some(violation => violation.kind === kind)) return
    }
    ok(false, `no seed has a violation of kind ${kind}`)
  })
