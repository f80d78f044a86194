/** What a request is counted by, in kube-apiserver's terms. Values must come from a bounded set, never from arbitrary client input. */
export type RequestLabels = {
  /** `GET`, `LIST`, `WATCH`, `POST`, `PUT`, `PATCH`, `APPLY`, `DELETE` or `DELETECOLLECTION`. */
  readonly verb: string
  readonly group: string
  readonly version: string
  readonly resource: string
  readonly subresource: string
  /** Empty when the request is counted without its resource. */
  readonly scope: 'resource' | 'namespace' | 'cluster' | ''
  readonly isDryRun: boolean
}

/** kube-apiserver's buckets of `apiserver_request_duration_seconds`. */
export const bucketSeconds = [0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60] as const

/** The counts of all requests with the same labels. */
export type RequestSeries = {
  readonly labels: RequestLabels
  readonly countByCode: ReadonlyMap<number, number>
  /** Requests in each bucket alone; the last is for all that took longer. */
  readonly buckets: Float64Array
  readonly sumSeconds: number
  readonly openWatches: number
}

type MutableSeries = { -readonly [K in keyof RequestSeries]: RequestSeries[K] } & { readonly countByCode: Map<number, number> }

/** Beyond this many series, requests are counted without their resource: short-lived CustomResourceDefinitions must not fill the memory (invariant 10). */
const defaultMaxSeries = 20_000

/**
 * Counts requests. The counts are read at a scrape (see `request-metrics-text.ts`): observing through prom-client costs 1.3 µs
 * per request for a counter and a histogram of 8 labels, this one lookup in a Map 0.2 µs.
 */
export class RequestMetrics {
  readonly #series = new Map<string, MutableSeries>()
  readonly #maxSeries: number
  readonly #inFlight = { mutating: 0, readOnly: 0 }
  readonly #peak = { mutating: 0, readOnly: 0 }

  constructor({ maxSeries = defaultMaxSeries }: { maxSeries?: number } = {}) {
    this.#maxSeries = maxSeries
  }

  /** {@link requestFinished} must follow. */
  requestStarted(isMutating: boolean): void {
    const kind = isMutating ? 'mutating' : 'readOnly'
    if (++this.#inFlight[kind] > this.#peak[kind]) this.#peak[kind] = this.#inFlight[kind]
  }

  requestFinished(isMutating: boolean): void {
    this.#inFlight[isMutating ? 'mutating' : 'readOnly']--
  }

  /** Counts a response with status `code` after `seconds`. */
  observe(labels: RequestLabels, code: number, seconds: number): void {
    const series = this.#of(labels)
    series.countByCode.set(code, (series.countByCode.get(code) ?? 0) + 1)
    let bucket = 0
    while (bucket < bucketSeconds.length && seconds > bucketSeconds[bucket]!) bucket++
    series.buckets[bucket]!++
    series.sumSeconds += seconds
  }

  /** Counts an open watch; the returned function must be called when it ends. */
  watchOpened(labels: RequestLabels): () => void {
    const series = this.#of(labels)
    series.openWatches++
    return () => {
      series.openWatches--
    }
  }

  series(): Iterable<RequestSeries> {
    return this.#series.values()
  }

  /** The most requests in flight at the same time since the last call. */
  takePeaks(): { mutating: number; readOnly: number } {
    const peaks = { ...this.#peak }
    Object.assign(this.#peak, this.#inFlight)
    return peaks
  }

  #of(labels: RequestLabels): MutableSeries {
    const { verb, group, version, resource, subresource, scope, isDryRun } = labels
    const key = `${verb} ${group} ${version} ${resource} ${subresource} ${scope} ${isDryRun}`
    let series = this.#series.get(key)
    if (!series) {
      if (this.#series.size >= this.#maxSeries && resource !== '') {
        return this.#of({ ...labels, group: '', version: '', resource: '', subresource: '' })
      }
      series = { labels, countByCode: new Map(), buckets: new Float64Array(bucketSeconds.length + 1), sumSeconds: 0, openWatches: 0 }
      this.#series.set(key, series)
    }
    return series
  }
}
