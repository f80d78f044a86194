import { labelText, metric, type Sample } from './exposition.ts'

/** What a request is counted by, in kube-apiserver's words. Values must come from a bounded set, never from what a client invents. */
export type RequestLabels = {
  /** `GET`, `LIST`, `WATCH`, `POST`, `PUT`, `PATCH`, `APPLY`, `DELETE` or `DELETECOLLECTION`. */
  readonly verb: string
  readonly group: string
  readonly version: string
  readonly resource: string
  readonly subresource: string
  readonly scope: 'resource' | 'namespace' | 'cluster'
  readonly isDryRun: boolean
}

/** kube-apiserver's. */
const bucketSeconds = [0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60] as const

type Series = {
  readonly labels: RequestLabels
  readonly byCode: Map<number, number>
  /** Requests in each bucket alone; the last is for all that took longer. */
  readonly buckets: Float64Array
  sumSeconds: number
  open: number
}

/** More than this are counted together: definitions that come and go must not fill the memory (invariant 10). */
const defaultMaxSeries = 20_000

/** Counts requests by what they ask for. Costs one look into a Map for each. */
export class RequestMetrics {
  readonly #series = new Map<string, Series>()
  readonly #maxSeries: number
  readonly #inFlight = { mutating: 0, readOnly: 0 }
  readonly #highest = { mutating: 0, readOnly: 0 }

  constructor({ maxSeries = defaultMaxSeries }: { maxSeries?: number } = {}) {
    this.#maxSeries = maxSeries
  }

  /** A request has begun; {@link requestFinished} must follow. */
  requestStarted(isMutating: boolean): void {
    const kind = isMutating ? 'mutating' : 'readOnly'
    if (++this.#inFlight[kind] > this.#highest[kind]) this.#highest[kind] = this.#inFlight[kind]
  }

  requestFinished(isMutating: boolean): void {
    this.#inFlight[isMutating ? 'mutating' : 'readOnly']--
  }

  /** A request was answered with `code` after `seconds`. */
  observe(labels: RequestLabels, code: number, seconds: number): void {
    const series = this.#of(labels)
    series.byCode.set(code, (series.byCode.get(code) ?? 0) + 1)
    let bucket = 0
    while (bucket < bucketSeconds.length && seconds > bucketSeconds[bucket]!) bucket++
    series.buckets[bucket]!++
    series.sumSeconds += seconds
  }

  /** A watch has begun; call what is returned when it ends. */
  watchOpened(labels: RequestLabels): () => void {
    const series = this.#of(labels)
    series.open++
    return () => {
      series.open--
    }
  }

  #of(labels: RequestLabels): Series {
    const { verb, group, version, resource, subresource, scope, isDryRun } = labels
    const key = `${verb} ${group} ${version} ${resource} ${subresource} ${scope} ${isDryRun}`
    let series = this.#series.get(key)
    if (!series) {
      if (this.#series.size >= this.#maxSeries && resource !== '') {
        return this.#of({ ...labels, group: '', version: '', resource: '', subresource: '' })
      }
      series = { labels, byCode: new Map(), buckets: new Float64Array(bucketSeconds.length + 1), sumSeconds: 0, open: 0 }
      this.#series.set(key, series)
    }
    return series
  }

  /** In Prometheus' format. The highest numbers in flight are those since the last time. */
  render(): string {
    const all = [...this.#series.values()]
    const { mutating, readOnly } = this.#highest
    Object.assign(this.#highest, this.#inFlight)
    return (
      metric(
        'apiserver_request_total',
        'counter',
        'Requests for resources by verb, dry run, group, version, resource, scope and HTTP code.',
        all.flatMap(({ labels, byCode }) => [...byCode].map(([code, value]) => ({ labels: labelText(withCode(labels, code)), value }))),
      ) +
      metric(
        'apiserver_request_duration_seconds',
        'histogram',
        'How long requests for resources took, in seconds; watches until their end.',
        all.filter(({ byCode }) => byCode.size > 0).flatMap(series => [...durationSamples(series)]),
      ) +
      metric('apiserver_current_inflight_requests', 'gauge', 'The most requests worked on at once since this was last asked.', [
        { labels: 'request_kind="mutating"', value: mutating },
        { labels: 'request_kind="readOnly"', value: readOnly },
      ]) +
      metric(
        'apiserver_longrunning_requests',
        'gauge',
        'Open watches.',
        all
          .filter(({ labels: { verb } }) => verb === 'WATCH')
          .map(({ labels, open }) => ({ labels: labelText(named(labels)), value: open })),
      )
    )
  }
}

function named({ group, resource, scope, subresource, verb, version }: RequestLabels) {
  return { component: 'apiserver', group, resource, scope, subresource, verb, version }
}

const dryRun = ({ isDryRun }: RequestLabels) => (isDryRun ? 'All' : '')
const withCode = (labels: RequestLabels, code: number) => ({ code: String(code), dry_run: dryRun(labels), ...named(labels) })

function* durationSamples({ labels, buckets, sumSeconds }: Series): Generator<Sample> {
  const text = labelText({ dry_run: dryRun(labels), ...named(labels) })
  let count = 0
  for (const [i, le] of bucketSeconds.entries()) {
    count += buckets[i]!
    yield { suffix: '_bucket', labels: `${text},le="${le}"`, value: count }
  }
  count += buckets[bucketSeconds.length]!
  yield { suffix: '_bucket', labels: `${text},le="+Inf"`, value: count }
  yield { suffix: '_sum', labels: text, value: sumSeconds }
  yield { suffix: '_count', labels: text, value: count }
}
