import { setImmediate } from 'node:timers/promises'
import { bucketSeconds, type RequestLabels, type RequestMetrics, type RequestSeries } from './request-metrics.ts'

/** About 1 MB of text. It takes 2 to 10 ms, during which other requests wait. */
const seriesPerTurn = 200

/**
 * The counts of requests in Prometheus' text format. Of all metrics only these have thousands of series, for which prom-client builds an
 * object and several strings per line without yielding. The text is produced per series, and other requests are served in between.
 */
export async function requestMetricsText(requests: RequestMetrics): Promise<Buffer[]> {
  const totals = new Family(
    'apiserver_request_total',
    'counter',
    'Requests for resources by verb, dry run, group, version, resource, scope and HTTP code.',
  )
  const durations = new Family(durationName, 'histogram', 'Duration of requests for resources in seconds; for watches, until their end.')
  const openWatches = new Family('apiserver_longrunning_requests', 'gauge', 'Open watches.')
  const families = [totals, durations, openWatches]
  let count = 0
  for (const series of requests.series()) {
    const shared = sharedLabels(series.labels)
    if (series.countByCode.size > 0) {
      const labels = `dry_run="${series.labels.isDryRun ? 'All' : ''}",${shared}`
      totals.text += totalText(series, labels)
      durations.text += durationText(series, labels)
    }
    if (series.labels.verb === 'WATCH') openWatches.text += `${openWatches.name}{${shared}} ${series.openWatches}\n`
    if (++count % seriesPerTurn === 0) {
      for (const family of families) family.encode()
      await setImmediate()
    }
  }
  return families.flatMap(family => [...family.encode(), Buffer.from('\n')])
}

/** The lines of one metric, which must be contiguous. */
class Family {
  readonly name: string
  text: string
  readonly #encoded: Buffer[] = []

  constructor(name: string, type: string, help: string) {
    this.name = name
    this.text = `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`
  }

  /** Encodes what was added: encoding all text at the end would block for longer than producing it. */
  encode(): readonly Buffer[] {
    this.#encoded.push(Buffer.from(this.text))
    this.text = ''
    return this.#encoded
  }
}

function totalText({ countByCode }: RequestSeries, labels: string): string {
  let text = ''
  for (const [code, count] of countByCode) text += `apiserver_request_total{code="${code}",${labels}} ${count}\n`
  return text
}

const durationName = 'apiserver_request_duration_seconds'
const bucketEnds = [...bucketSeconds, '+Inf'].map(le => `,le="${le}"} `)

function durationText({ buckets, sumSeconds }: RequestSeries, labels: string): string {
  const bucket = `${durationName}_bucket{${labels}`
  let text = ''
  let count = 0
  for (let i = 0; i < bucketEnds.length; i++) {
    count += buckets[i]!
    text += `${bucket}${bucketEnds[i]}${count}\n`
  }
  return `${text}${durationName}_sum{${labels}} ${sumSeconds}\n${durationName}_count{${labels}} ${count}\n`
}

// No value needs an escape: groups, versions and resources are DNS names, and the others are constants.
function sharedLabels({ group, resource, scope, subresource, verb, version }: RequestLabels): string {
  return `component="apiserver",group="${group}",resource="${resource}",scope="${scope}",subresource="${subresource}",verb="${verb}",version="${version}"`
}
