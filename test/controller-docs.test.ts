import { deepEqual, ok } from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { Registry } from 'prom-client'
import * as managedExports from '../src/controllers/managed/index.ts'
import * as controllerExports from '../src/kubernetes/controller/index.ts'
import { metricsOn } from '../src/kubernetes/controller/metrics.ts'
import * as testingExports from '../src/kubernetes/testing/index.ts'

const guide =
  readFileSync('docs/controller-library.md', 'utf8') + readFileSync('docs/sharding.md', 'utf8') + readFileSync('docs/managed.md', 'utf8')
/** What the first column of a table names; the tables' other columns may mention anything. */
const named = new Set(
  [...guide.matchAll(/^\| ([^|]+) \|/gm)].flatMap(([, cell]) => [...(cell as string).matchAll(/`(\w+)`/g)].map(([, name]) => name)),
)

for (const { type, file } of [
  { type: 'ManagerOptions', file: 'src/kubernetes/controller/manager.ts' },
  { type: 'Selection', file: 'src/kubernetes/controller/selection.ts' },
  { type: 'InformerOptions<Body>', file: 'src/kubernetes/controller/informer.ts' },
  { type: 'ControllerOptions<Body>', file: 'src/kubernetes/controller/controller.ts' },
  { type: 'ShardOptions', file: 'src/kubernetes/controller/sharding/options.ts' },
  {
    type: 'ManagedOptions<Body extends ManagedBody = ManagedBody, Connection = unknown, State = unknown>',
    file: 'src/controllers/managed/managed-options.ts',
  },
  { type: 'ClientOptions', file: 'src/kubernetes/client/client.ts' },
  { type: 'Faults', file: 'src/kubernetes/testing/fault-client.ts' },
]) {
  test(`docs/controller-library.md has a row for each option of ${type}`, () => {
    const source = readFileSync(file, 'utf8')
    const start = source.indexOf(`export type ${type} = `)
    ok(start >= 0, `${type} in ${file}`)
    const body = source.slice(start, source.indexOf('\n}', start))
    const options = [...body.matchAll(/^ {2}(\w+)\??[:(]/gm)].map(([, name]) => name as string)
    ok(options.length >= 3, options.join())
    deepEqual(
      options.filter(name => !named.has(name)),
      [],
    )
  })
}

for (const [library, exports] of Object.entries({ controller: controllerExports, managed: managedExports, testing: testingExports })) {
  test(`docs/controller-library.md describes each export of oarlock/${library}`, () => {
    const names = Object.keys(exports).filter(name => !new RegExp(`\\b${name}\\b`).test(guide))
    deepEqual(names, [])
  })
}

test('docs/controller-library.md has every metric, with its labels', async () => {
  const registry = new Registry()
  await metricsOn(registry)
  const metrics = await registry.getMetricsAsJSON()
  ok(metrics.length > 15)
  const rows = guide.split('\n').filter(line => line.startsWith('|'))
  const labelsOf = (name: string) => (registry.getSingleMetric(name) as unknown as { labelNames: string[] }).labelNames
  const missing = metrics.filter(
    ({ name }) => !rows.some(row => row.includes(`\`${name}\``) && labelsOf(name).every(label => row.includes(`\`${label}\``))),
  )
  deepEqual(
    missing.map(({ name }) => name),
    [],
  )
})
