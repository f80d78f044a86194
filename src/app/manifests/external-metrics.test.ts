import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { externalMetricsManifests } from './external-metrics.ts'

test('no role of Kubernetes includes the metrics of all pools: they need a binding of their own', () => {
  const aggregated = externalMetricsManifests.filter(({ metadata }) =>
    Object.keys(metadata.labels ?? {}).some(label => label.startsWith('rbac.authorization.k8s.io/aggregate-to-')),
  )
  deepEqual(aggregated, [])
})
