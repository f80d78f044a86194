/**
 * `npm run kyma -- --kymas N`: starts the API server and the operator as separate processes, creates N Kymas of 18
 * components, shows progress, and prints the resources used. `--help` lists all settings.
 */
import { writeFileSync } from 'node:fs'
import { loadavg } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type Client, createClient, installKinds } from '../../src/kubernetes/client/index.ts'
import { isAtRest, readShards } from '../../src/kubernetes/controller/index.ts'
import type { KubeObject, Resource } from '../../src/kubernetes/index.ts'
import { Operator, startServerProcess } from './children.ts'
import { componentResource, defaultComponents, kymaResource } from './kinds.ts'
import { Progress } from './progress.ts'
import { parseBackoff, ring, type Settings } from './settings.ts'
import { cpuSecondsOf, memoryOf, type Report } from './stats.ts'
import { StepWatcher } from './step-watcher.ts'

const help = `npm run kyma -- [options]
  --kymas N          number of Kymas; default 100
  --kubeconfig FILE  use this cluster instead of an embedded server
  --json FILE        write the summary as JSON
  --qps N --burst N  client-side rate limit of the operator; default none
  --backoff MIN..MAX backoff after failures, such as 1s..1000s; default 5ms..1000s
  --workers N        concurrent reconciles of components; default 64
  --kyma-workers N   concurrent reconciles of Kymas; default half of --workers, at least 4
  --creates N        components of one Kyma that one reconcile creates; default 1
  --connections N    connections for writes; default 2 with the embedded server, else 16
  --churn            afterwards change 1% of the Kymas per minute, for 5 minutes
  --resync           afterwards reconcile every object
  --shards N         replicas of the operator that share the Kymas, from 1 to 62; default 1
  --restart          kill the operator, with --shards one of them, at half time and start another one
  --render           render each chart once and cache the result
  --render-each      render the chart for every component
  --faults RATE      fraction of the operator's writes that fail with 500, from 0 to 1; default 0
  --resync-every MS  resync interval; default never
  --verify           check that no step is skipped and no component is created twice; always on with --restart
  --no-predicates    reconcile a Kyma at every change of a component, as the original operator did
  --collect MS       how long changes of components are batched before their Kyma is reconciled; default 200
  --progress MS      minimum interval between status writes of a pending Kyma; default 10000
  --hot N            objects of each cache that are kept parsed; default 128
  --order ORDER      order in which components are created and reconciled: longest-first (default) or listed
  --second MS        length of one second of the simulated installation; default 1000, less for a shorter run
  --operator-flags F flags of Node for the operator, separated by spaces, such as --cpu-prof
  --server-flags F   flags of Node for the embedded server, separated by spaces
`

const { values } = parseArgs({
  options: {
    kymas: { type: 'string', default: '100' },
    kubeconfig: { type: 'string' },
    json: { type: 'string' },
    qps: { type: 'string' },
    burst: { type: 'string' },
    backoff: { type: 'string' },
    workers: { type: 'string', default: '64' },
    'kyma-workers': { type: 'string' },
    creates: { type: 'string', default: '1' },
    connections: { type: 'string' },
    churn: { type: 'boolean', default: false },
    resync: { type: 'boolean', default: false },
    restart: { type: 'boolean', default: false },
    shards: { type: 'string', default: '1' },
    render: { type: 'boolean', default: false },
    'render-each': { type: 'boolean', default: false },
    faults: { type: 'string', default: '0' },
    'resync-every': { type: 'string' },
    verify: { type: 'boolean', default: false },
    'no-predicates': { type: 'boolean', default: false },
    collect: { type: 'string', default: '200' },
    progress: { type: 'string', default: '10000' },
    hot: { type: 'string', default: '128' },
    order: { type: 'string', default: 'longest-first' },
    second: { type: 'string', default: '1000' },
    'operator-flags': { type: 'string', default: '' },
    'server-flags': { type: 'string', default: '' },
    help: { type: 'boolean', default: false },
  },
})
if (values.help) {
  console.log(help)
  process.exit(0)
}

const count = positive('kymas', values.kymas)
const replicas = replicasOf(values.shards)
const namespace = 'default'
const halfTimeMs = 34_000

// Keeps the result of type stripping, so that neither process loads the stripper: saves 50 MB each from the second run on.
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, '..', '..', 'node_modules', '.cache', 'node')

/** As for the operator below: without a bound V8 lets the server's heap grow to several times its live size under load. */
const serverFlags = ['--max-semi-space-size=16', `--max-old-space-size=${Math.max(512, Math.ceil(count / 8))}`]
const server = values.kubeconfig ? undefined : await startServerProcess([...serverFlags, ...flags(values['server-flags'])])
const kubeconfig = values.kubeconfig ?? (server?.kubeconfigPath as string)
if (server) console.error(`kubeconfig ${kubeconfig}`)
const client = await createClient({ kubeconfig, userAgent: 'kyma-starter', connections: server ? 2 : undefined })
const settings: Settings = {
  kubeconfig,
  shards: undefined,
  workers: positive('workers', values.workers),
  kymaWorkers: values['kyma-workers']
    ? positive('kyma-workers', values['kyma-workers'])
    : Math.max(4, Math.round(positive('workers', values.workers) / 2)),
  backoff: values.backoff ? parseBackoff(values.backoff) : {},
  rateLimit:
    values.qps === undefined ? undefined : { qps: positive('qps', values.qps), burst: positive('burst', values.burst ?? values.qps) },
  // The embedded server handles the requests of one connection concurrently; other servers may not.
  connections: values.connections ? positive('connections', values.connections) : server ? 2 : undefined,
  render: values['render-each'] ? 'each' : values.render ? 'once' : 'no',
  faults: Number(values.faults),
  resyncMs: values['resync-every'] === undefined ? undefined : positive('resync-every', values['resync-every']),
  createsAtOnce: positive('creates', values.creates),
  noPredicates: values['no-predicates'],
  collectMs: Number(values.collect),
  progressMs: Number(values.progress) * (positive('second', values.second) / 1_000),
  hotObjects: positive('hot', values.hot),
  longestFirst: order(values.order) === 'longest-first',
  secondMs: positive('second', values.second),
}

/**
 * A small young generation, because most objects live long; and a bound on the heap, from which V8 derives how much garbage it
 * tolerates: without one it waits until the heap is four times its live size.
 */
const operatorFlags = [
  '--max-semi-space-size=8',
  `--max-old-space-size=${Math.max(256, Math.ceil(count / 16))}`,
  ...flags(values['operator-flags']),
]

let operator: Operator | undefined
const end = async () => {
  await operator?.stop()
  await client.close()
  await server?.stop()
}
process.once('SIGINT', () => void end().then(() => process.exit(130)))
process.once('SIGTERM', () => void end().then(() => process.exit(143)))

let failures = 1
try {
  failures = await experiment()
} finally {
  await end()
}
process.exit(failures > 0 ? 1 : 0)

async function experiment(): Promise<number> {
  await installKinds(client, [kymaResource, componentResource])
  const watcher = values.verify || values.restart ? new StepWatcher(client, namespace) : undefined
  await watcher?.whenReady
  operator = new Operator(settings, operatorFlags, replicas)
  await operator.synced
  if (replicas > 1) await untilShared()

  const serverCpuBefore = server ? cpuSecondsOf(server.pid) : Number.NaN
  const startedAt = Date.now()
  const progress = new Progress(count, startedAt, () => (server ? memoryOf(server.pid).rssMb : Number.NaN))
  progress.follow(() => operator?.report)
  let createdAt = startedAt
  const creating = createKymas(client, count).then(() => {
    createdAt = Date.now()
  })
  let restartSeconds: number | undefined
  if (values.restart) {
    await new Promise(resolve => setTimeout(resolve, halfTimeMs * (settings.secondMs / 1_000)))
    restartSeconds = await operator.restartOne()
  }
  await creating
  await operator.until(report => report.succeeded >= count)
  progress.stop()
  // One more report, so that peaks and counters are final.
  await operator.nextReport()
  const report = operator.report as Report
  const seconds = (report.lastSuccessAt - startedAt) / 1_000

  const findings = await verify(client, count)
  const statusWrites = report.componentStatusWrites + report.kymaStatusWrites
  const creates = report.creates
  const operatorCpuSeconds = report.cpuSeconds
  const summary: Record<string, number | string | undefined> = {
    kymas: count,
    seconds,
    succeeded: findings.succeeded,
    failed: count - findings.succeeded,
    createSeconds: (createdAt - startedAt) / 1_000,
    components: findings.components,
    componentsSucceeded: findings.componentsSucceeded,
    creates,
    createdTwice: findings.twice + report.alreadyThere * (values.restart || settings.faults > 0 ? 0 : 1),
    statusWrites,
    kymaStatusWrites: report.kymaStatusWrites,
    operatorRssMb: report.rssMb,
    operatorPeakRssMb: report.peakRssMb,
    replicas: replicas > 1 ? replicas : undefined,
    replicaRssMb: replicas > 1 ? operator.rssMb.map(rssMb => rssMb.toFixed(0)).join(' ') : undefined,
    operatorCpuSeconds,
    operatorCpuMicrosPerStatusWrite: (operatorCpuSeconds / statusWrites) * 1e6,
    operatorCpuMicrosPerWrite: (operatorCpuSeconds / (statusWrites + creates)) * 1e6,
    serverRssMb: server ? memoryOf(server.pid).rssMb : undefined,
    serverPeakRssMb: server ? memoryOf(server.pid).peakRssMb : undefined,
    serverCpuSeconds: server ? cpuSecondsOf(server.pid) - serverCpuBefore : undefined,
    operatorErrors: report.errors,
    lastError: report.lastError,
    renderedKb: settings.render === 'no' ? undefined : report.renderedKb,
    reconciles: report.reconciles,
    loadAverage: loadavg()[0],
    restartSeconds,
    stepsSeen: watcher?.steps,
    stepsSkipped: watcher?.skipped,
    seenTwice: watcher?.madeTwice,
  }
  if (values.resync) summary.resyncSeconds = await operator.resync()
  if (values.churn) Object.assign(summary, await churn())
  await watcher?.stop()
  print(summary)
  if (values.restart) console.log('\ncreates and other counters lack what the killed operator did after its last report')
  if (values.json) writeFileSync(values.json, `${JSON.stringify(summary, null, 2)}\n`)
  return Number(summary.failed) + Number(summary.createdTwice) + (watcher ? watcher.skipped + watcher.madeTwice : 0)
}

/** Every minute 1 % of the Kymas lose a component, or get it back. */
async function churn(): Promise<Record<string, number>> {
  const minutes = 5
  const each = Math.max(1, Math.round(count / 100))
  const kymas = client.resource(kymaResource)
  const before = operator?.report as Report
  let changed = 0
  for (let minute = 0; minute < minutes; minute++) {
    for (let index = 0; index < each; index++, changed++) {
      // Every second minute restores what the previous one removed.
      const name = kymaName((Math.floor(minute / 2) * each + index) % count)
      const { spec } = await kymas.get(name, { namespace })
      const hasOry = spec.components.some(component => component.name === 'ory')
      const components = hasOry ? spec.components.filter(({ name }) => name !== 'ory') : [...defaultComponents]
      await kymas.patch(name, { spec: { components } }, { type: 'merge', namespace })
      await new Promise(resolve => setTimeout(resolve, 60_000 / each))
    }
    console.error(`churn: ${changed} Kymas changed`)
  }
  await operator?.until(report => report.succeeded >= count && report.queueDepth === 0)
  const report = operator?.report as Report
  return {
    churnedKymas: changed,
    churnStatusWrites: report.componentStatusWrites + report.kymaStatusWrites - before.componentStatusWrites - before.kymaStatusWrites,
    churnCpuSeconds: report.cpuSeconds - before.cpuSeconds,
    churnRssMb: report.rssMb,
  }
}

function kymaName(index: number): string {
  return `kyma-${String(index).padStart(5, '0')}`
}

async function createKymas(client: Client, count: number): Promise<void> {
  const kymas = client.resource(kymaResource)
  let next = 0
  const worker = async () => {
    for (let index = next++; index < count; index = next++) {
      await kymas.create({ metadata: { name: kymaName(index), namespace }, spec: { components: [...defaultComponents] } })
    }
  }
  await Promise.all(Array.from({ length: 128 }, worker))
}

/** Reads the final state from the server, not from the operator. */
async function verify(client: Client, count: number) {
  let succeeded = 0
  let components = 0
  let componentsSucceeded = 0
  let twice = 0
  const seen = new Set<string>()
  await eachPage(client, kymaResource, kyma => {
    if (kyma.status?.status === 'success') succeeded++
  })
  await eachPage(client, componentResource, component => {
    components++
    if (component.status?.status === 'success') componentsSucceeded++
    const owner = component.metadata.ownerReferences?.[0]?.uid
    const identity = `${owner}/${component.spec.componentName}`
    if (seen.has(identity)) twice++
    seen.add(identity)
  })
  if (components !== count * defaultComponents.length)
    console.error(`expected ${count * defaultComponents.length} components, found ${components}`)
  return { succeeded, components, componentsSucceeded, twice }
}

async function eachPage<Body>(client: Client, resource: Resource<Body>, visit: (object: KubeObject<Body>) => void): Promise<void> {
  let token: string | undefined
  do {
    const page = await client.resource(resource).list({ namespace, limit: 2_000, continue: token })
    for (const item of page.items) visit(item)
    token = page.metadata.continue
  } while (token)
}

/** Resolves when each replica has a share of the buckets and none moves: what follows is measured with a ring at rest. */
async function untilShared(): Promise<void> {
  for (;;) {
    if (isAtRest(await readShards(client, ring), replicas)) return
    await new Promise(resolve => setTimeout(resolve, 100))
  }
}

function print(summary: Record<string, number | string | undefined>): void {
  console.log('')
  for (const [name, value] of Object.entries(summary)) {
    if (value === undefined) continue
    console.log(`${name.padEnd(34)} ${typeof value === 'number' ? Math.round(value * 100) / 100 : value}`)
  }
}

function positive(name: string, text: string): number {
  const value = Number(text)
  if (!Number.isFinite(value) || value <= 0) throw new RangeError(`--${name} must be a number > 0, got ${JSON.stringify(text)}`)
  return value
}

function replicasOf(text: string): number {
  const value = Number(text)
  if (!Number.isInteger(value) || value < 1 || value > 62)
    throw new RangeError(`--shards must be an integer from 1 to 62, got ${JSON.stringify(text)}`)
  return value
}

function order(text: string): 'longest-first' | 'listed' {
  if (text !== 'longest-first' && text !== 'listed')
    throw new TypeError(`--order must be longest-first or listed, got ${JSON.stringify(text)}`)
  return text
}

function flags(text: string): string[] {
  return text.split(' ').filter(flag => flag !== '')
}
