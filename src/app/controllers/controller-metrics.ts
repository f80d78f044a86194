import type { Registry } from 'prom-client'
import type { ControllerFigures } from '../../api/index.ts'

/** A sample of a metric of `kubernetes/controller/metrics.ts`. */
type Sample = {
  readonly labels: Readonly<Record<string, string | number | undefined>>
  readonly value: number
  readonly metricName?: string
}

/**
 * The controllers of this process, also those that have had nothing to do yet, with how long their reconciles take, as its metrics have them. Those
 * that do not reconcile single objects have no such metrics, and are not among them.
 */
export async function readControllerMetrics(registry: Registry): Promise<ControllerFigures[]> {
  const samples = async (name: string): Promise<readonly Sample[]> => (await registry.getSingleMetric(name)?.get())?.values ?? []
  const [known, times, errors, depths] = await Promise.all(
    [
      'controller_runtime_max_concurrent_reconciles',
      'controller_runtime_reconcile_time_seconds',
      'controller_runtime_reconcile_errors_total',
      'workqueue_depth',
    ].map(samples),
  )
  const sumOf = (all: readonly Sample[] | undefined, controller: string) =>
    (all ?? []).filter(({ labels }) => labels.controller === controller).reduce((sum, { value }) => sum + value, 0)
  const names = new Set((known ?? []).map(({ labels }) => String(labels.controller)))
  return [...names].map(name => {
    const own = (times ?? []).filter(({ labels }) => labels.controller === name)
    const reconciles = own.find(({ metricName }) => metricName?.endsWith('_count'))?.value ?? 0
    const buckets = own.flatMap(({ labels: { le }, value, metricName }) =>
      metricName?.endsWith('_bucket') ? [{ upToSeconds: le === '+Inf' ? Number.POSITIVE_INFINITY : Number(le), count: value }] : [],
    )
    return {
      ...{ name, reconciles, errors: sumOf(errors, name), queued: sumOf(depths, name) },
      ...quantile('p50Ms', buckets, reconciles * 0.5),
      ...quantile('p99Ms', buckets, reconciles * 0.99),
    }
  })
}

/** The bound of the first bucket that has the rank: an upper limit, as exact as the buckets are. Nothing if there is none. */
function quantile(name: 'p50Ms' | 'p99Ms', buckets: readonly { readonly upToSeconds: number; readonly count: number }[], rank: number) {
  const bucket = rank > 0 ? buckets.find(({ count }) => count >= rank) : undefined
  return bucket && Number.isFinite(bucket.upToSeconds) ? { [name]: bucket.upToSeconds * 1_000 } : {}
}
