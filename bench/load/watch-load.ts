/**
 * Watchers and writers in a process of their own: reads one `WatchOrder` as JSON from argv[2], prints one `WatchReport`.
 * Every watcher has a connection; events are counted by their line ends, and every tenth watcher reads the timestamp of the writer.
 */
import { collection, widget } from './generator.ts'
import { type Endpoint, RawConnection } from './raw-connection.ts'

export type WatchOrder = {
  endpoint: Endpoint
  watchers: number
  /** Writes to send. 0: only hold the watches open for `holdMs`. */
  writes: number
  /** Writes a second; 0: as fast as `writers` connections get responses. */
  perSecond: number
  writers: number
  namespace: string
  holdMs: number
}
export type WatchReport = { deliveries: number; deliveriesPerSecond: number; writesPerSecond: number; p50Ms: number; p99Ms: number }

const newline = 10
const stamp = Buffer.from('"text":"@')

async function main(order: WatchOrder): Promise<WatchReport> {
  const { endpoint, watchers, writes, writers, perSecond, namespace, holdMs } = order
  const latencies: number[] = []
  let deliveries = 0
  let lastAtMs = 0
  const expected = watchers * writes
  const all = Promise.withResolvers<void>()
  const onChunk = (isRead: boolean) => (chunk: Buffer) => {
    const nowMs = performance.now()
    // A timestamp split between two chunks is not read.
    if (isRead) {
      for (let at = chunk.indexOf(stamp); at >= 0; at = chunk.indexOf(stamp, at + 1)) {
        const end = chunk.indexOf('"', at + stamp.length)
        if (end > 0) latencies.push(nowMs - Number(chunk.toString('latin1', at + stamp.length, end)))
      }
    }
    for (let at = chunk.indexOf(newline); at >= 0; at = chunk.indexOf(newline, at + 1)) {
      // Lines of chunked encoding end with CR LF, lines of events with LF alone.
      if (at === 0 || chunk[at - 1] !== 13) deliveries++
    }
    lastAtMs = nowMs
    if (deliveries >= expected) all.resolve()
  }
  const prefix = `w${Date.now()}`
  const connections: RawConnection[] = []
  const path = collection(namespace)
  const first = await RawConnection.open(endpoint)
  const { resourceVersion } = JSON.parse((await first.request('GET', `${path}?limit=1`)).body.toString()).metadata
  for (let at = 0; at < watchers; at += 50) {
    const opened = await Promise.all(Array.from({ length: Math.min(50, watchers - at) }, () => RawConnection.open(endpoint)))
    for (const connection of opened) {
      connection.stream(`${path}?watch=1&resourceVersion=${resourceVersion}`, onChunk(connections.length % 10 === 0))
      connections.push(connection)
    }
  }
  // The last watch is open when a later request has its response.
  await first.request('GET', `${path}?limit=1`)
  if (holdMs > 0) {
    console.error('held')
    await new Promise(resolve => setTimeout(resolve, holdMs))
  }

  const startedMs = performance.now()
  let sent = 0
  const write = async (connection: RawConnection) => {
    const body = { ...widget(`${prefix}-${sent++}`), spec: { text: `@${performance.now()}` } }
    const { status } = await connection.request('POST', path, JSON.stringify(body))
    if (status !== 201) throw new Error(`a create was answered with ${status}`)
  }
  const writing = await Promise.all(Array.from({ length: writes > 0 ? writers : 0 }, () => RawConnection.open(endpoint)))
  await Promise.all(
    writing.map(async connection => {
      while (sent < writes) {
        const dueMs = perSecond > 0 ? startedMs + (sent / perSecond) * 1_000 : 0
        const waitMs = dueMs - performance.now()
        if (waitMs > 1) {
          await new Promise(resolve => setTimeout(resolve, waitMs))
          continue
        }
        await write(connection)
      }
    }),
  )
  const writtenMs = performance.now() - startedMs
  if (writes > 0) await Promise.race([all.promise, new Promise(resolve => setTimeout(resolve, 30_000))])
  const seconds = Math.max(lastAtMs - startedMs, 1) / 1_000
  for (const connection of [first, ...connections, ...writing]) connection.close()
  latencies.sort((a, b) => a - b)
  const at = (share: number) => latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))] ?? 0
  return {
    deliveries,
    deliveriesPerSecond: deliveries / seconds,
    writesPerSecond: (writes / writtenMs) * 1_000,
    p50Ms: at(0.5),
    p99Ms: at(0.99),
  }
}

if (import.meta.main) {
  console.log(JSON.stringify(await main(JSON.parse(process.argv[2] as string))))
  process.exit()
}
