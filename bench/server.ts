/**
 * The embedded server under load: `npm run bench -- server [--parts a,b] [--requests N] [--peer]`, N for each row of `writes`, default 10,000.
 * Parts: writes (and gets; the default), lists, watch, fanout, crds, objects (memory and start with 72,000 of them), idle-watches, idle-connections, all.
 * The column `bar` is the target: in the unit of the row, or `x` times as good as the peer.
 * With --peer the same load also goes to kube-apiserver + etcd, fsync on, and every figure has its ratio.
 */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs, promisify } from 'node:util'
import { parse } from 'yaml'
import type { LoadOrder, LoadReport } from './load/generator.ts'
import type { IdleOrder } from './load/idle-watches.ts'
import type { ListOrder, ListReport } from './load/list-load.ts'
import { type Endpoint, RawConnection } from './load/raw-connection.ts'
import type { WatchOrder, WatchReport } from './load/watch-load.ts'
import type { Bench } from './run.ts'
import { cpuSecondsOf, rssMbOf, startServerProcess } from './server-process.ts'

const writerCounts = [1, 16, 50, 200]
const readsPerWrite = 5

/** The CRD that every server bench writes to: a status subresource and a typed spec. */
export const widgetCrd = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'widgets.bench.oarlock.dev' },
  spec: {
    group: 'bench.oarlock.dev',
    scope: 'Namespaced',
    names: { kind: 'Widget', plural: 'widgets', singular: 'widget', listKind: 'WidgetList' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: {
              spec: {
                type: 'object',
                properties: {
                  text: { type: 'string' },
                  parts: {
                    type: 'array',
                    items: {
                      type: 'object',
                      properties: { name: { type: 'string' }, image: { type: 'string' }, size: { type: 'integer' } },
                    },
                  },
                },
              },
              status: { type: 'object', properties: { phase: { type: 'string' } } },
            },
          },
        },
      },
    ],
  },
}

/** The endpoint and the credentials in a kubeconfig of the embedded server. */
export function endpointOf(kubeconfigPath: string): Endpoint {
  const config = parse(readFileSync(kubeconfigPath, 'utf8'))
  const url = new URL(config.clusters[0].cluster.server)
  const ca = Buffer.from(config.clusters[0].cluster['certificate-authority-data'], 'base64').toString()
  return { host: url.hostname, port: Number(url.port), ca, token: config.users[0].user.token }
}

const runLoad = async <Order, Report>(script: string, order: Order): Promise<Report> => {
  const path = join(import.meta.dirname, 'load', script)
  const { stdout } = await promisify(execFile)(process.execPath, [path, JSON.stringify(order)], { maxBuffer: 1 << 26 })
  return JSON.parse(stdout) as Report
}

export const generateLoad = (order: LoadOrder) => runLoad<LoadOrder, LoadReport>('generator.ts', order)

/** The server under load: the embedded one or the peer. */
type Subject = {
  endpoint: Endpoint
  rssMb(): number
  cpuSeconds(): number
  /** Restarts it on its data; undefined where that is not measured. */
  restart?: () => Promise<{ seconds: number; rssMb: number }>
  stop(): Promise<void>
}

async function startOurs(): Promise<Subject> {
  const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-bench-'))
  let server = await startServerProcess(dataDir)
  const subject: Subject = {
    endpoint: endpointOf(server.kubeconfigPath),
    rssMb: () => server.rssMb(),
    cpuSeconds: () => server.cpuSeconds(),
    async restart() {
      await server.stop()
      const startedMs = performance.now()
      server = await startServerProcess(dataDir)
      const seconds = (performance.now() - startedMs) / 1_000
      subject.endpoint = endpointOf(server.kubeconfigPath)
      return { seconds, rssMb: server.rssMb() }
    },
    async stop() {
      await server.stop()
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
  return subject
}

async function startTheirs(): Promise<Subject> {
  const { startPeer } = await import('../test/conformance/peer.ts')
  const peer = await startPeer({ fsync: true })
  const { hostname, port } = new URL(peer.url)
  const sum = (of: (pid: number) => number) => peer.pids.reduce((total, pid) => total + of(pid), 0)
  return {
    endpoint: { host: hostname, port: Number(port), ca: '', token: peer.tokens.admin as string },
    rssMb: () => sum(rssMbOf),
    cpuSeconds: () => sum(cpuSecondsOf),
    stop: () => peer.close(),
  }
}

async function prepare({ endpoint }: Subject): Promise<void> {
  const connection = await RawConnection.open(endpoint)
  const { status, body } = await connection.request('POST', crdPath, JSON.stringify(widgetCrd))
  if (status !== 201) throw new Error(`the server rejected the CRD of the bench: ${status} ${body}`)
  for (let i = 0; i < 300; i++) {
    const found = await connection.request('GET', '/apis/bench.oarlock.dev/v1/namespaces/default/widgets?limit=1')
    if (found.status === 200) break
    await new Promise(resolve => setTimeout(resolve, 100))
  }
  connection.close()
}

/** `bar`: the target, in the unit of the row, or as a multiple of the peer's figure. */
type Row = { what: string; value: number; unit: string; bar: string; isLessBetter: boolean; load?: number }
const more = (what: string, unit: string, value: number, bar = ''): Row => ({ what, unit, value, bar, isLessBetter: false })
const less = (what: string, unit: string, value: number, bar = ''): Row => ({ what, unit, value, bar, isLessBetter: true })

const namespace = 'default'
const manyObjects = 72_000

const parts: Record<string, (subject: Subject, requests: number) => AsyncGenerator<Row>> = {
  async *writes(subject, most) {
    const { endpoint } = subject
    yield less('idle: memory', 'MB RSS', subject.rssMb(), '≤ 90')
    for (const writers of writerCounts) {
      for (const operation of ['create', 'status', 'update', 'get'] as const) {
        // Reads are so fast that handshakes and the start of the load generator would dominate the measurement.
        const requests = writers === 1 ? Math.min(2_000, most) : operation === 'get' ? most * readsPerWrite : most
        const cpuBefore = subject.cpuSeconds()
        const report = await generateLoad({
          endpoint,
          operation,
          objects: Math.min(requests, most),
          writers,
          requests,
          namespace,
          prefix: `w${writers}`,
        })
        const cpuMicros = ((subject.cpuSeconds() - cpuBefore) / requests) * 1e6
        const what = `${operation}, ${writers} ${operation === 'get' ? 'readers' : 'writers'}`
        if (report.failed > 0) throw new Error(`${what}: ${report.failed} of ${requests} requests failed`)
        const hasBar = operation === 'get' || writers > 1
        yield more(what, 'per second', report.perSecond, hasBar ? (operation === 'get' ? '≥ 6 x' : '≥ 8 x') : '')
        yield less(what, 'p99 ms', report.p99Ms, hasBar ? '≥ 1 x' : '')
        yield less(what, 'CPU µs each', cpuMicros)
      }
    }
    yield less('after that: memory', 'MB RSS', subject.rssMb())
  },

  async *lists(subject) {
    yield* fill(subject, 'l', 10_000)
    yield* lists(subject, '10,000', 'l-0')
  },

  async *watch({ endpoint }) {
    const order: WatchOrder = { endpoint, watchers: 100, writes: 5_000, perSecond: 500, writers: 16, namespace, holdMs: 0 }
    const report = await runLoad<WatchOrder, WatchReport>('watch-load.ts', order)
    yield more('500 writes/s, 100 watchers', 'writes per second', report.writesPerSecond, '≥ 500')
    yield less('500 writes/s, 100 watchers', 'p50 ms', report.p50Ms)
    yield less('500 writes/s, 100 watchers', 'p99 ms', report.p99Ms, '≤ 10')
  },

  async *fanout(subject) {
    const { endpoint } = subject
    // With few watchers, half of the work is the writes.
    for (const watchers of [100, 400]) {
      const what = `fan-out to ${watchers} watchers, as many writes as go`
      const order: WatchOrder = { endpoint, watchers, writes: 1_000_000 / watchers, perSecond: 0, writers: 50, namespace, holdMs: 0 }
      const cpuBefore = subject.cpuSeconds()
      const report = await runLoad<WatchOrder, WatchReport>('watch-load.ts', order)
      yield more(what, 'deliveries per second', report.deliveriesPerSecond, '≥ 500,000')
      yield more(what, 'writes per second', report.writesPerSecond)
      yield less(what, 'CPU µs each', ((subject.cpuSeconds() - cpuBefore) / report.deliveries) * 1e6)
    }
  },

  async *crds({ endpoint }) {
    const connection = await RawConnection.open(endpoint)
    const times: number[] = []
    for (let i = 0; i < 11; i++) times.push(await timeToUse(connection, i))
    connection.close()
    const [first = 0, ...others] = times
    yield less('a CRD is usable after its creation, the first one', 'ms', first, '≤ 50')
    yield less('a CRD is usable after its creation, median of the next 10', 'ms', others.sort((a, b) => a - b)[5] ?? 0, '≤ 50')
  },

  async *objects(subject) {
    yield* fill(subject, 'o', manyObjects)
    yield less('72,000 objects: memory', 'MB RSS', subject.rssMb(), '≤ 300')
    yield* lists(subject, '72,000', 'o-0')
    yield less('72,000 objects, listed: memory', 'MB RSS', subject.rssMb())
    if (!subject.restart) return
    const { seconds, rssMb } = await subject.restart()
    yield less('72,000 objects: start', 's', seconds, '≤ 3')
    yield less('72,000 objects: memory after start', 'MB RSS', rssMb)
  },

  async *'idle-watches'(subject) {
    yield* idleWatches(subject, 10_000, 100, '10,000 idle watches, 100 on each HTTP/2 connection')
  },

  async *'idle-connections'(subject) {
    yield* idleWatches(subject, 2_000, 0, '2,000 idle watches, each its own TLS connection')
  },
}

const crdPath = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'

/** Creates a CRD of its own name and returns how long it takes until its resources can be listed. */
async function timeToUse(connection: RawConnection, index: number): Promise<number> {
  const kind = `Gadget${index}`
  const plural = `${kind.toLowerCase()}s`
  const names = { kind, plural, singular: kind.toLowerCase(), listKind: `${kind}List` }
  const definition = { ...widgetCrd, metadata: { name: `${plural}.bench.oarlock.dev` }, spec: { ...widgetCrd.spec, names } }
  const startedMs = performance.now()
  const { status, body } = await connection.request('POST', crdPath, JSON.stringify(definition))
  if (status !== 201) throw new Error(`the server rejected a CRD of the bench: ${status} ${body}`)
  for (;;) {
    const found = await connection.request('GET', `/apis/bench.oarlock.dev/v1/namespaces/${namespace}/${plural}?limit=1`)
    if (found.status === 200) return performance.now() - startedMs
    await new Promise(resolve => setTimeout(resolve, 1))
  }
}

async function* idleWatches(subject: Subject, watches: number, perConnection: number, what: string): AsyncGenerator<Row> {
  const { endpoint } = subject
  const rssBefore = subject.rssMb()
  const order: IdleOrder = { endpoint, namespace, watches, perConnection }
  const child = spawn(process.execPath, [join(import.meta.dirname, 'load', 'idle-watches.ts'), JSON.stringify(order)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  await once(child.stdout, 'data')
  // An idle process does not collect the garbage of opening them.
  await new Promise(resolve => setTimeout(resolve, 3_000))
  const cpuBefore = subject.cpuSeconds()
  await new Promise(resolve => setTimeout(resolve, 5_000))
  yield less(what, 'KB each', ((subject.rssMb() - rssBefore) * 1_000) / watches, '≤ 30')
  yield less(what, '% of a core', ((subject.cpuSeconds() - cpuBefore) / 5) * 100, 'none')
  child.stdin.end()
  await once(child, 'exit')
  await new Promise(resolve => setTimeout(resolve, 1_000))
}

async function* fill(subject: Subject, prefix: string, requests: number): AsyncGenerator<Row> {
  const { endpoint } = subject
  const report = await generateLoad({ endpoint, operation: 'create', writers: 50, requests, namespace, prefix })
  if (report.failed > 0) throw new Error(`${report.failed} creates failed`)
  yield more(`create ${requests.toLocaleString('en-US')}`, 'per second', report.perSecond)
  yield less(`create ${requests.toLocaleString('en-US')}`, 'p99 ms', report.p99Ms)
}

async function* lists({ endpoint }: Subject, size: string, probe: string): AsyncGenerator<Row> {
  for (const [limit, how] of [
    [0, 'whole'],
    [500, 'pages of 500'],
  ] as const) {
    const report = await runLoad<ListOrder, ListReport>('list-load.ts', { endpoint, namespace, limit, times: 3, probe })
    yield less(`list of ${size}, ${how}`, 'ms', report.ms, limit === 0 && size === '72,000' ? '≤ 400' : '')
    yield less(`list of ${size}, ${how}: first byte`, 'ms', report.firstByteMs, '≤ 50')
    yield less(`list of ${size}, ${how}: longest concurrent get`, 'ms', report.pauseMs, '≤ 50')
  }
}

export async function bench(args: string[] = []): Promise<Bench> {
  const { values } = parseArgs({
    args,
    strict: false,
    allowPositionals: true,
    options: { parts: { type: 'string', default: 'writes' }, peer: { type: 'boolean' }, requests: { type: 'string', default: '10000' } },
  })
  const requests = Number(values.requests)
  if (!Number.isSafeInteger(requests) || requests < 1) throw new Error(`--requests must be a whole number from 1, got ${values.requests}`)
  const names = values.parts === 'all' ? Object.keys(parts) : String(values.parts).split(',')
  for (const name of names) {
    if (!Object.hasOwn(parts, name)) {
      throw new Error(`part ${JSON.stringify(name)} is not one of all, ${Object.keys(parts).join(', ')}`)
    }
  }
  const starts = values.peer ? [startOurs, startTheirs] : [startOurs]
  const rows: Bench['rows'] = []
  // Each part runs on an empty server of each kind in turn, so that noise affects both equally.
  for (const name of names) {
    const measured: Row[][] = []
    for (const start of starts) {
      const subject = await start()
      try {
        // The part crds creates the first CRD itself.
        if (name !== 'crds') await prepare(subject)
        const rowsOfPart: Row[] = []
        for await (const row of parts[name]!(subject, requests)) {
          console.error(`${start === startOurs ? 'oarlock' : 'peer'}: ${row.what}: ${row.value.toFixed(1)} ${row.unit}`)
          rowsOfPart.push({ ...row, load: loadavg()[0] })
        }
        measured.push(rowsOfPart)
      } finally {
        await subject.stop()
      }
    }
    const [ours = [], theirs] = measured
    for (const { what, unit, value, bar, isLessBetter, load = 0 } of ours) {
      const peer = theirs?.find(row => row.what === what && row.unit === unit)?.value
      rows.push({
        what,
        unit,
        bar,
        oarlock: value,
        ...(theirs && {
          'kube-apiserver + etcd': peer ?? '',
          'times better': peer === undefined ? '' : isLessBetter ? peer / value : value / peer,
        }),
        'load average': load,
      })
    }
  }
  return {
    title: 'Embedded API server: a 1.1 KB custom resource, durable',
    about:
      'TLS, fsync on, load generator in its own process on the same machine; rows of one part are measured after each other on one server',
    rows,
  }
}
