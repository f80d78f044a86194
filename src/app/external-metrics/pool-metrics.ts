import type { WorkerPool } from '../../api/index.ts'
import { type LabelSelector, matchesLabels, rfc3339, StatusError } from '../../kubernetes/object/index.ts'
import { group, groupVersion } from './names.ts'

type Counts = { readonly queued: number; readonly busy: number; readonly workers: number; readonly desired: number }

/** Each is an absolute number for a pool: the sum over all its workers. An HPA must use it with a target of type AverageValue. */
const metrics: Readonly<Record<string, (counts: Counts) => number>> = {
  /** The number of workers that the pool should have. The only one that an HPA needs: busy workers and those that would start a queued Run, within `min` and `max`. */
  oarlock_pool_desired_workers: ({ desired }) => desired,
  oarlock_pool_busy_workers: ({ busy }) => busy,
  oarlock_pool_registered_workers: ({ workers }) => workers,
  oarlock_runs_queued: ({ queued }) => queued,
}

export const metricNames: readonly string[] = Object.keys(metrics)

export type ExternalMetricValue = {
  readonly metricName: string
  readonly metricLabels: Readonly<Record<string, string>>
  readonly timestamp: string
  readonly value: string
}

/** Names in a message: a server may have thousands of pools. */
const maxNamed = 10

/** Those of the WorkerPool object, and two that it cannot replace. */
const metricLabelsOf = ({ metadata, spec }: WorkerPool): Record<string, string> => ({
  ...metadata.labels,
  pool: metadata.name,
  mode: spec.mode,
})

/**
 * The values of a metric for the pools that a selector matches, one for each. HPAs add them up.
 * @throws {StatusError} NotFound for an unknown metric, or if no pool matches: an HPA reports the message and keeps its replicas, where it could
 * not distinguish an empty list from a typing error. ServiceUnavailable for a pool whose numbers are not known (invariant 12).
 */
export function externalMetricValues(
  pools: readonly WorkerPool[],
  { metric, selector, nowMs }: { readonly metric: string; readonly selector: LabelSelector; readonly nowMs: number },
): ExternalMetricValue[] {
  const compute = Object.hasOwn(metrics, metric) ? metrics[metric] : undefined
  if (!compute) throw new StatusError('NotFound', `metric ${JSON.stringify(metric)} of ${group} not found: use ${metricNames.join(', ')}`)
  const matching = pools.filter(pool => matchesLabels(selector, metricLabelsOf(pool)))
  if (matching.length === 0) {
    const known = pools.map(({ metadata }) => metadata.name).sort()
    const more = known.length > maxNamed ? ` and ${known.length - maxNamed} more` : ''
    const named = known.length === 0 ? 'there are none' : `their names are ${known.slice(0, maxNamed).join(', ')}${more}`
    throw new StatusError('NotFound', `no WorkerPool matches the selector: use pool=NAME, mode=MODE or labels of WorkerPools; ${named}`)
  }
  const timestamp = rfc3339(nowMs)
  return matching.map(pool => ({
    metricName: metric,
    metricLabels: metricLabelsOf(pool),
    timestamp,
    value: String(compute(countsOf(pool))),
  }))
}

export const externalMetricValueList = (items: readonly ExternalMetricValue[]): object => ({
  kind: 'ExternalMetricValueList',
  apiVersion: groupVersion,
  metadata: {},
  items,
})

function countsOf({ metadata, status }: WorkerPool): Counts {
  const { queued, busy, workers, desired } = status ?? {}
  if (queued === undefined || busy === undefined || workers === undefined || desired === undefined)
    throw new StatusError('ServiceUnavailable', `workerpool ${JSON.stringify(metadata.name)} has no status yet: the leader writes it`)
  return { queued, busy, workers, desired }
}
