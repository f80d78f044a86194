/**
 * The load generator, a process of its own: reads one `LoadOrder` as JSON from argv[2], runs it, prints one `LoadReport`.
 * Each writer has one connection and sends its next request after the last response (closed loop).
 */
import { type Endpoint, RawConnection } from './raw-connection.ts'

export type LoadOrder = {
  endpoint: Endpoint
  /** create: new objects; status: status patches, update: whole objects, get: reads; the last three on existing objects. */
  operation: 'create' | 'status' | 'update' | 'get'
  writers: number
  requests: number
  /** Number of objects; reads start over after the last one. Default: one per request. */
  objects?: number
  namespace: string
  /** Prefix of object names, so that runs do not collide. */
  prefix: string
}
export type LoadReport = { perSecond: number; p50Ms: number; p99Ms: number; maxMs: number; failed: number }

export const collection = (namespace: string) => `/apis/bench.oarlock.dev/v1/namespaces/${namespace}/widgets`

/** A custom resource of about 1.1 KB. */
export function widget(name: string): Record<string, unknown> {
  const parts = Array.from({ length: 12 }, (_, index) => ({
    name: `part-${index}`,
    image: `registry.example/part:${index}.0.1`,
    size: index,
  }))
  return {
    apiVersion: 'bench.oarlock.dev/v1',
    kind: 'Widget',
    metadata: { name, labels: { app: 'bench' } },
    spec: { parts, text: 'x'.repeat(120) },
  }
}

async function versionsOf(connection: RawConnection, namespace: string): Promise<Map<string, string>> {
  const versions = new Map<string, string>()
  let token = ''
  do {
    const { body } = await connection.request('GET', `${collection(namespace)}?limit=2000${token && `&continue=${token}`}`)
    const { items, metadata } = JSON.parse(body.toString()) as {
      items: { metadata: { name: string; resourceVersion: string } }[]
      metadata: { continue?: string }
    }
    for (const item of items) versions.set(item.metadata.name, item.metadata.resourceVersion)
    token = metadata.continue ?? ''
  } while (token)
  return versions
}

async function main(order: LoadOrder): Promise<LoadReport> {
  const { operation, writers, requests, objects = requests, prefix, namespace, endpoint } = order
  const connections = await Promise.all(Array.from({ length: writers }, () => RawConnection.open(endpoint)))
  // An update of a custom resource must name a version.
  const versions = operation === 'update' ? await versionsOf(connections[0] as RawConnection, namespace) : new Map<string, string>()
  // An unchanged value would be a no-op.
  const run = Date.now()
  const latencies: number[] = []
  let sent = 0
  let failed = 0

  const send = (connection: RawConnection, index: number) => {
    const name = `${prefix}-${index % objects}`
    const path = `${collection(namespace)}/${name}`
    switch (operation) {
      case 'create':
        return connection.request('POST', collection(namespace), JSON.stringify(widget(name)))
      case 'status':
        return connection.request('PATCH', `${path}/status`, `{"status":{"phase":"p${run}-${sent}"}}`, 'application/merge-patch+json')
      case 'update': {
        const object = widget(name)
        const metadata = { ...(object.metadata as object), resourceVersion: versions.get(name) }
        return connection.request(
          'PUT',
          path,
          JSON.stringify({ ...object, metadata, spec: { parts: [], text: `t${run}-${sent}${'x'.repeat(900)}` } }),
        )
      }
      case 'get':
        return connection.request('GET', path)
    }
  }

  const started = performance.now()
  await Promise.all(
    connections.map(async connection => {
      while (sent < requests) {
        const index = sent++
        const begin = performance.now()
        const { status } = await send(connection, index)
        latencies.push(performance.now() - begin)
        if (status >= 300) failed += 1
      }
    }),
  )
  const seconds = (performance.now() - started) / 1_000
  for (const connection of connections) connection.close()

  latencies.sort((a, b) => a - b)
  const at = (share: number) => latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))] ?? 0
  return { perSecond: requests / seconds, p50Ms: at(0.5), p99Ms: at(0.99), maxMs: at(1), failed }
}

if (import.meta.main) console.log(JSON.stringify(await main(JSON.parse(process.argv[2] as string))))
