/** A server for `bench/informer.ts`, in a process of its own: a list in pages, and `events` lines on the watch when its parent sends a message. */
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describeResource } from '../../src/kubernetes/object/index.ts'
import { widget } from './generator.ts'

export const widgetKind = describeResource({
  group: 'bench.oarlock.dev',
  version: 'v1',
  kind: 'Widget',
  plural: 'widgets',
  scope: 'Namespaced',
})

/** Its messages to the parent. */
export type SenderMessage = { kind: 'listening'; port: number; objectBytes: number } | { kind: 'watched' }

function objectOf(index: number, version: number) {
  const { metadata, ...body } = widget(`widget-${index}`) as { metadata: object }
  const uid = `${String(index).padStart(8, '0')}-0000-4000-8000-000000000000`
  const more = { namespace: 'default', uid, resourceVersion: String(version), creationTimestamp: '2026-11-21T10:00:00Z', generation: 1 }
  return { ...body, metadata: { ...metadata, ...more } }
}

function serve(count: number, events: number): void {
  const report = (message: SenderMessage) => void process.send?.(message)
  let watch: ServerResponse | undefined
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://x')
    if (pathname === '/version') return void response.writeHead(404).end()
    if (searchParams.has('watch')) {
      response.writeHead(200, { 'content-type': 'application/json' })
      response.flushHeaders()
      watch = response
      return report({ kind: 'watched' })
    }
    const from = Number(searchParams.get('continue') ?? 0)
    const items = Array.from({ length: Math.min(500, count - from) }, (_, index) => objectOf(from + index, 1_000 + from + index))
    const next = from + items.length
    const metadata = { resourceVersion: '1000000', ...(next < count && { continue: String(next) }) }
    response.end(JSON.stringify({ apiVersion: widgetKind.apiVersion, kind: 'WidgetList', metadata, items }))
  })
  server.listen(0, '127.0.0.1', () =>
    report({ kind: 'listening', port: (server.address() as AddressInfo).port, objectBytes: JSON.stringify(objectOf(1, 1)).length }),
  )
  // Built before they are sent, and in chunks as a busy server sends them.
  const chunks: Buffer[] = []
  for (let index = 0; index < events; ) {
    let text = ''
    for (let line = 0; line < 50; line++, index++)
      text += `${JSON.stringify({ type: 'MODIFIED', object: objectOf(index % count, 2_000_000 + index) })}\n`
    chunks.push(Buffer.from(text))
  }
  process.once('message', async () => {
    for (const chunk of chunks) {
      if (watch && !watch.write(chunk)) await new Promise<void>(resolve => (watch as ServerResponse).once('drain', resolve))
    }
  })
  process.once('disconnect', () => process.exit(0))
}

if (import.meta.main) serve(Number(process.argv[2]), Number(process.argv[3]))
