/** Journal entries of Pulumi: from the request of a worker to the answer that they are durable, through a state store that runs as in production. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, statSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { StateClient } from '../../src/stores/state/index.ts'
import type { Endpoints } from '../../test/reliability/endpoint-server.ts'
import type { Bench } from '../run.ts'

const resources = 1_000
/** What an update of 100 resources sends (CLI 3.260): 675 KB, so 6.7 KB for the two entries of each. */
const bytesPerResource = 6_700

/** With `parallel` resources at a time, a request has this many entries: the CLI waits 50 ms for more. */
const shapes = [
  { name: '1 entry per request', entriesPerRequest: 1 },
  { name: '16 entries per request', entriesPerRequest: 16 },
  { name: '100 entries per request', entriesPerRequest: 100 },
]

export async function measureJournal(): Promise<Bench['rows']> {
  const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-bench-pulumi-'))
  const child = fork(join(import.meta.dirname, '..', '..', 'test', 'reliability', 'endpoint-server.ts'), ['stores', dataDir], {
    execArgv: ['--disable-warning=ExperimentalWarning'],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  const exited = once(child, 'exit')
  const endWithUs = () => child.kill('SIGTERM')
  process.once('exit', endWithUs)
  try {
    const ended = exited.then(([code]) => Promise.reject(new Error(`the stores exited with code ${code}`)))
    const [endpoints] = (await Promise.race([once(child, 'message'), ended])) as [Endpoints]
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0'
    const client = new StateClient({
      ...{ baseUrl: endpoints.addresses.stores ?? '', token: endpoints.credentials.worker ?? '' },
      ...{ namespace: 'apps', stack: 'app', runName: 'run-1', epoch: 1 },
    })
    await client.lock()
    const rows = [row('fdatasync of 8 KiB on this disk, alone', syncTimesMs(dataDir))]
    let update = 0
    for (const { name, entriesPerRequest } of shapes) rows.push(...(await measureUpdate(client, ++update, name, entriesPerRequest)))
    const mb = (path: string) => Math.round((statSync(path, { throwIfNoEntry: false })?.size ?? 0) / 1e5) / 10
    const file = join(dataDir, 'stores', 'state', 'state.db')
    rows.push({
      what: `MB of the database after ${shapes.length} updates, with its log`,
      n: 1,
      'p50 ms': '',
      'p99 ms': '',
      'max ms': '',
      MB: mb(file) + mb(`${file}-wal`),
    })
    await client.close()
    return rows
  } finally {
    process.off('exit', endWithUs)
    child.kill('SIGKILL')
    await exited
    rmSync(dataDir, { recursive: true, force: true })
  }
}

/** One update that creates all resources, its completion, and a read of the state before it. */
async function measureUpdate(client: StateClient, update: number, name: string, entriesPerRequest: number): Promise<Bench['rows']> {
  const entries = Array.from({ length: resources }, (_, index) => entriesOf(update, index)).flat()
  const timesMs: number[] = []
  for (let at = 0; at < entries.length; at += entriesPerRequest) {
    const batch = Buffer.from(`{"entries":[${entries.slice(at, at + entriesPerRequest).join(',')}]}`)
    timesMs.push(await timeMs(() => client.appendJournal(update, batch, { cliVersion: '3.260.0' })))
  }
  const readMs = await timeMs(() => client.readPulumiState())
  const completeMs = await timeMs(() => client.completeJournal(update))
  return [
    row(name, timesMs, Math.round(entries.join('').length / 1e5) / 10),
    row(`  read of the state with the open journal (${resources} resources)`, [readMs]),
    row('  completion of the update', [completeMs]),
  ]
}

/** Begin and success of a resource that is created, or replaced by the next update. */
function entriesOf(update: number, index: number): string[] {
  const urn = `urn:pulumi:dev::shop::aws:s3/bucket:Bucket::bucket-${index}`
  const inputs = { bucket: `shop-${index}`, tags: { owner: 'team', update }, policy: text(index, bytesPerResource / 2 - 700) }
  const state = {
    urn,
    custom: true,
    id: `shop-${index}`,
    type: 'aws:s3/bucket:Bucket',
    inputs,
    outputs: { arn: `arn:${index}`, ...inputs, policy: text(index + 1, 200) },
  }
  const entry = (kind: number, sequence: number, more: object) =>
    JSON.stringify({
      version: 1,
      kind,
      sequenceID: index * 2 + sequence,
      operationID: index + 1,
      removeOld: null,
      removeNew: null,
      ...more,
    })
  const { outputs: _, id: __, ...planned } = state
  return [
    entry(0, 1, { operation: { resource: planned, type: 'creating' } }),
    entry(1, 2, { state, ...(update > 1 && { removeOld: index }) }),
  ]
}

/** Text that compresses as policies and user data do, to about a quarter. */
function text(seed: number, length: number): string {
  let value = seed + 1
  const words = Array.from({ length: Math.ceil(length / 8) }, () => {
    value = (Math.imul(value, 1_103_515_245) + 12_345) & 0x7fffffff
    return `"w${(value >> 8) % 5_000}",`.padEnd(8)
  })
  return words.join('').slice(0, length)
}

function syncTimesMs(directory: string): number[] {
  const path = join(directory, 'sync')
  const file = openSync(path, 'w')
  const times = Array.from({ length: 200 }, () => {
    const startMs = performance.now()
    writeSync(file, Buffer.alloc(8_192, 1))
    fdatasyncSync(file)
    return performance.now() - startMs
  })
  closeSync(file)
  return times
}

async function timeMs(work: () => Promise<unknown>): Promise<number> {
  const startMs = performance.now()
  await work()
  return performance.now() - startMs
}

function row(what: string, timesMs: number[], mb?: number): Bench['rows'][number] {
  const sorted = timesMs.toSorted((a, b) => a - b)
  const at = (share: number) => Math.round((sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0) * 100) / 100
  return { what, n: timesMs.length, 'p50 ms': at(0.5), 'p99 ms': at(0.99), 'max ms': at(1), MB: mb ?? '' }
}
