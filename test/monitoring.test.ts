import { deepEqual, ok } from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { parse } from 'yaml'
import { makeControllers } from '../src/app/controllers/controllers.ts'
import { makeRegistry } from '../src/app/endpoints/metrics.ts'
import { openStores, serveStores } from '../src/app/stores/stores.ts'
import { GatewayMetrics } from '../src/gateway/gateway-metrics.ts'
import { RequestLimits } from '../src/gateway/request/request-limits.ts'
import { ClientWatches } from '../src/gateway/watch/client-watches.ts'
import { createClient } from '../src/kubernetes/client/index.ts'
import { silentLog } from '../src/kubernetes/controller/index.ts'
import { metricsOn } from '../src/kubernetes/controller/metrics.ts'

type Rule = { alert: string; expr: string; annotations: { summary: string } }
type Panel = { title: string; targets: { expr: string; legendFormat: string }[] }

const { groups } = parse(readFileSync('monitoring/alerts.yaml', 'utf8')) as { groups: { rules: Rule[] }[] }
const rules = groups.flatMap(group => group.rules)
const { panels, templating } = JSON.parse(readFileSync('monitoring/grafana-dashboard.json', 'utf8')) as {
  panels: Panel[]
  templating: { list: { query: string }[] }
}
const matches = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map(([, found = '']) => found)
/** With the labels of the result that each text uses. */
const expressions = [
  ...rules.map(({ alert, expr, annotations }) => ({ name: alert, expr, shown: matches(annotations.summary, /\$labels\.(\w+)/g) })),
  ...panels.flatMap(({ title, targets }) =>
    targets.map(({ expr, legendFormat }) => ({ name: title, expr, shown: matches(legendFormat, /\{\{(\w+)\}\}/g) })),
  ),
]

const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-monitoring-'))
/** Labels by the name of each series in the output of `/metrics`. */
const labelsOf = new Map<string, ReadonlySet<string>>()

before(async () => {
  const registry = makeRegistry({ workers: () => 0 })
  // Nothing is requested: the controllers are not started.
  const client = await createClient({ cluster: { server: 'http://127.0.0.1:9' } })
  const options = { client, registry, log: silentLog }
  const { manager } = makeControllers({ ...options, allowPaths: [], cacheDir: dataDir, removeStackData: async () => undefined })
  const stores = await openStores({ dataDir: join(dataDir, 'stores'), log: silentLog })
  serveStores(stores, { ...options, manager })
  const watches = new ClientWatches({ log: () => {} })
  new GatewayMetrics(registry, { limits: new RequestLimits(), watches, partitions: () => [] })
  // As the manager does when it starts.
  await metricsOn(registry)
  await stores.close()
  await client.close()
  for (const type of matches(await registry.metrics(), /^# TYPE (\w+ \w+)$/gm)) {
    const [name = '', kind] = type.split(' ')
    const { labelNames } = registry.getSingleMetric(name) as unknown as { labelNames: string[] }
    labelsOf.set(name, new Set(labelNames))
    if (kind === 'histogram') labelsOf.set(`${name}_bucket`, new Set([...labelNames, 'le']))
  }
})
after(() => rmSync(dataDir, { recursive: true, force: true }))

test('every metric that alerts and dashboard name is served, with the labels that they use', () => {
  ok(rules.length > 5 && panels.length > 5)
  const errors = expressions.flatMap(({ name, expr, shown }) => {
    const metrics = matches(expr, /\b((?:oarlock|controller)_\w+)/g)
    const selected = [...expr.matchAll(/\b((?:oarlock|controller)_\w+)\{([^}]*)\}/g)].flatMap(([, metric = '', matchers = '']) =>
      matches(matchers, /(\w+)\s*(?:=~|!~|!=|=)/g).map(label => ({ metric, label })),
    )
    const grouped = matches(expr, /\b(?:by|on) \(([^)]*)\)/g).flatMap(list => list.split(/,\s*/))
    const used = [...selected, ...metrics.flatMap(metric => grouped.map(label => ({ metric, label })))]
    return [
      ...(metrics.length === 0 ? [`${name}: names no metric`] : []),
      ...metrics.filter(metric => !labelsOf.has(metric)).map(metric => `${name}: ${metric} is not served`),
      ...used
        .filter(({ metric, label }) => !labelsOf.get(metric)?.has(label))
        .map(({ metric, label }) => `${name}: ${metric} has no label ${label}`),
      ...shown.filter(label => !grouped.includes(label)).map(label => `${name}: label ${label} is not in the result`),
    ]
  })
  deepEqual(errors, [])
  const variables = [...JSON.stringify(templating).matchAll(/label_values\((\w+), (\w+)\)/g)]
  ok(variables.length > 0)
  for (const [, metric = '', label = ''] of variables) ok(labelsOf.get(metric)?.has(label), `${metric}: ${label}`)
})

test('docs/monitoring.md describes every alert, and each metric of Stacks, states, dependencies, providers and gateways with its labels', () => {
  const page = readFileSync('docs/monitoring.md', 'utf8')
  deepEqual(
    rules.map(({ alert }) => alert).filter(alert => !page.includes(`| \`${alert}\` |`)),
    [],
  )
  const described = [...labelsOf].filter(
    ([name]) =>
      !name.endsWith('_bucket') && /^oarlock_(gateway|stack|state|dependency_|provider_|run_(dependencies|providers)_)/.test(name),
  )
  ok(described.length > 15)
  const format = (name: string, labels: ReadonlySet<string>) => (labels.size === 0 ? name : `${name}{${[...labels].join(',')}}`)
  deepEqual(
    described.filter(([name, labels]) => !page.includes(`\`${format(name, labels)}\``)).map(([name]) => name),
    [],
  )
})

test('the package contains alerts and dashboard', () => {
  const { files } = JSON.parse(readFileSync('package.json', 'utf8')) as { files: string[] }
  ok(files.includes('monitoring'))
})
