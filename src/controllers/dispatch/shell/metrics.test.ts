import { deepEqual, equal, match } from 'node:assert/strict'
import { test } from 'node:test'
import { Registry } from 'prom-client'
import { workerBusyReason } from '../../../api/index.ts'
import { testRun } from '../objects.testing.ts'
import { registerMetrics } from './metrics.ts'

const noGauges = { queued: () => new Map<string, number>(), active: () => [], workers: () => [], slots: () => [], pools: () => [] }

test('label values that users choose are bounded (invariant 10)', async () => {
  const registry = new Registry()
  const metrics = registerMetrics(registry, noGauges)
  for (let i = 0; i < 1_000; i++) {
    metrics.runEnded(testRun(`r${i}`, { pool: `p${i % 3}`, phase: 'Succeeded' }), `tenant-${i}`)
    metrics.scaled(`pool-${i}`, 'up', 'Queue', 1)
  }
  const text = await registry.metrics()
  const seriesOf = (name: string) => text.split('\n').filter(line => line.startsWith(`${name}{`)).length
  // 50 tenants have a series in one pool each, and the others share one in each of the three pools.
  equal(seriesOf('oarlock_runs_total'), 50 + 3)
  // The three pools of the Runs are among the first 200.
  equal(seriesOf('oarlock_pool_scale_total'), 198)
  match(text, /oarlock_runs_total\{pool="p\d",tenant="other",type="Apply",phase="Succeeded"\} \d+/)
})

test('records the usage and the loss of a Run by pool', async () => {
  const registry = new Registry()
  const metrics = registerMetrics(registry, noGauges)
  const run = testRun('r', { phase: 'Lost' })
  metrics.runEnded({ ...run, status: { ...run.status!, usage: { cpuSeconds: 2, peakMemoryBytes: 100 * 1_024 * 1_024, peakPids: 3 } } }, 't')
  // Its memory was not measured.
  metrics.runEnded({ ...run, status: { ...run.status!, usage: { cpuSeconds: 0.2, peakMemoryBytes: 0, peakPids: 0 } } }, 't')
  const text = await registry.metrics()
  match(text, /oarlock_runs_lost_total\{pool="default"\} 2/)
  match(text, /oarlock_run_cpu_seconds_bucket\{le="5",pool="default"\} 2/)
  match(text, /oarlock_run_peak_memory_bytes_bucket\{le="134217728",pool="default"\} 1/)
  equal(/oarlock_run_peak_memory_bytes_bucket\{le="67108864",pool="default"\} 1/.test(text), false)
})

test('a Run that its worker rejected counts as a conflict, and not as a loss', async () => {
  const registry = new Registry()
  const metrics = registerMetrics(registry, noGauges)
  metrics.runEnded({ ...testRun('r'), status: { phase: 'Lost', reason: workerBusyReason } }, 't')
  const text = await registry.metrics()
  match(text, /oarlock_dispatch_conflicts_total\{pool="default"\} 1/)
  equal(text.includes('oarlock_runs_lost_total{pool="default"}'), false)
})

test('counts hits, waits and downloads of providers, the seconds that they saved, and downloaded bytes', async () => {
  const registry = new Registry()
  const metrics = registerMetrics(registry, noGauges)
  const none = { cached: 0, waited: 0, downloaded: 0, downloadedBytes: 0, seconds: 0, downloadSeconds: 0 }
  const end = (providers: Partial<typeof none> | undefined) => {
    const run = testRun('r', { phase: 'Succeeded' })
    metrics.runEnded({ ...run, status: { ...run.status!, ...(providers && { providers: { ...none, ...providers } }) } }, 't')
  }
  end({ downloaded: 2, downloadedBytes: 1_000, seconds: 11, downloadSeconds: 10 })
  end({ cached: 2, seconds: 0.5, downloadSeconds: 10 })
  end({ cached: 1, waited: 1, seconds: 6, downloadSeconds: 10 })
  // Waited longer than the download takes: nothing was saved.
  end({ waited: 1, seconds: 20, downloadSeconds: 5 })
  end(undefined)
  const lines = (await registry.metrics()).split('\n').filter(line => /^oarlock_(run_providers|provider_)/.test(line))
  const engine = testRun('r').spec.stack.engine
  deepEqual(lines.sort(), [
    'oarlock_provider_downloaded_bytes_total{pool="default"} 1000',
    'oarlock_provider_seconds_saved_total{pool="default"} 13.5',
    'oarlock_provider_seconds_total{pool="default"} 37.5',
    `oarlock_run_providers_total{pool="default",engine="${engine}",source="Cached"} 3`,
    `oarlock_run_providers_total{pool="default",engine="${engine}",source="Downloaded"} 2`,
    `oarlock_run_providers_total{pool="default",engine="${engine}",source="Waited"} 2`,
  ])
})

test('counts hits, waits and installs of dependencies, the seconds that they saved, and installed bytes', async () => {
  const registry = new Registry()
  const metrics = registerMetrics(registry, noGauges)
  const end = (source: 'Cached' | 'Waited' | 'Installed', seconds: number, manager = 'npm') => {
    const run = testRun('r', { phase: 'Succeeded' })
    const dependencies = { digest: 'a'.repeat(64), manager, source, seconds, installSeconds: 30, bytes: 1_000 }
    metrics.runEnded({ ...run, status: { ...run.status!, dependencies } }, 't')
  }
  end('Installed', 31)
  end('Cached', 0.5)
  end('Cached', 0.5)
  end('Waited', 20)
  // Waited longer than the install takes: nothing was saved.
  end('Waited', 40)
  for (let i = 0; i < 100; i++) end('Installed', 0, `manager-${i}`)
  const text = await registry.metrics()
  const value = (series: string) =>
    Number(
      text
        .split('\n')
        .find(line => line.startsWith(`${series} `))
        ?.split(' ')[1],
    )
  equal(value('oarlock_run_dependencies_total{pool="default",manager="npm",source="Installed"}'), 1)
  equal(value('oarlock_run_dependencies_total{pool="default",manager="npm",source="Cached"}'), 2)
  equal(value('oarlock_run_dependencies_total{pool="default",manager="npm",source="Waited"}'), 2)
  equal(value('oarlock_run_dependencies_total{pool="default",manager="other",source="Installed"}'), 81)
  equal(value('oarlock_dependency_seconds_saved_total{pool="default"}'), 29.5 + 29.5 + 10)
  equal(value('oarlock_dependency_seconds_total{pool="default",source="Waited"}'), 60)
  equal(value('oarlock_dependency_installed_bytes_total{pool="default"}'), 101_000)
})
