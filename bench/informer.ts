/** How many watch events a second an informer takes in, and what the objects it keeps cost. `--objects N --hot N` for other numbers. */
import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { parseArgs } from 'node:util'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { createClient } from '../src/client/index.ts'
import { Informer } from '../src/controller/index.ts'
import { describeResource } from '../src/kube/index.ts'
import { widget } from './load/generator.ts'
import type { Bench } from './run.ts'

const resource = describeResource({ group: 'bench.oarlock.dev', version: 'v1', kind: 'Widget', plural: 'widgets', scope: 'Namespaced' })
const events = 200_000

export async function bench(args: string[]): Promise<Bench> {
  const { values } = parseArgs({
    args,
    strict: false,
    allowPositionals: true,
    options: { objects: { type: 'string', default: '40000' }, hot: { type: 'string', default: '2000' } },
  })
  const count = Number(values.objects)
  setFlagsFromString('--expose-gc')
  const gc = runInNewContext('gc') as () => void
  const used = () => {
    gc()
    const { heapUsed, external } = process.memoryUsage()
    return heapUsed + external
  }

  const objectOf = (index: number, version: number) => {
    const { metadata, ...body } = widget(`widget-${index}`) as { metadata: object }
    const uid = `${String(index).padStart(8, '0')}-0000-4000-8000-000000000000`
    return {
      ...body,
      metadata: {
        ...metadata,
        namespace: 'default',
        uid,
        resourceVersion: String(version),
        creationTimestamp: '2026-11-21T10:00:00Z',
        generation: 1,
      },
    }
  }
  let watch: ServerResponse | undefined
  const server: Server = createServer((request, response) => {
    const { searchParams } = new URL(request.url ?? '/', 'http://x')
    if (searchParams.has('watch')) {
      response.writeHead(200, { 'content-type': 'application/json' })
      response.flushHeaders()
      watch = response
      return
    }
    const from = Number(searchParams.get('continue') ?? 0)
    const items = Array.from({ length: Math.min(500, count - from) }, (_, index) => objectOf(from + index, 1_000 + from + index))
    const next = from + items.length
    response.end(
      JSON.stringify({
        apiVersion: resource.apiVersion,
        kind: 'WidgetList',
        metadata: { resourceVersion: '1000000', ...(next < count && { continue: String(next) }) },
        items,
      }),
    )
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const client = await createClient({ cluster: { server: `http://127.0.0.1:${(server.address() as AddressInfo).port}` } })
  const rows: Bench['rows'] = []
  try {
    const objectBytes = JSON.stringify(objectOf(1, 1)).length
    const before = used()
    const informer = new Informer({ client, resource, hotObjects: Number(values.hot) })
    const stop = new AbortController()
    const began = performance.now()
    const running = informer.start(stop.signal)
    await informer.whenSynced()
    const syncSeconds = (performance.now() - began) / 1_000
    const perObject = (used() - before) / count
    while (!watch) await new Promise(resolve => setTimeout(resolve, 5))

    // The lines are made before, and sent in chunks as a busy server sends them; the sender shares our process and core.
    const chunks: Buffer[] = []
    for (let index = 0; index < events; ) {
      let text = ''
      for (let line = 0; line < 50; line++, index++)
        text += `${JSON.stringify({ type: 'MODIFIED', object: objectOf(index % count, 2_000_000 + index) })}\n`
      chunks.push(Buffer.from(text))
    }
    const done = Promise.withResolvers<void>()
    let seen = 0
    informer.onChange({
      updated: () => {
        if (++seen === events) done.resolve()
      },
    })
    const cpuBefore = process.cpuUsage()
    const eventsBegan = performance.now()
    for (const chunk of chunks) {
      if (!watch.write(chunk)) await new Promise(resolve => (watch as ServerResponse).once('drain', resolve))
    }
    await done.promise
    const seconds = (performance.now() - eventsBegan) / 1_000
    const { user, system } = process.cpuUsage(cpuBefore)
    rows.push({
      'object bytes (JSON)': objectBytes,
      objects: count,
      'kept parsed': Number(values.hot),
      'list, s': syncSeconds,
      'heap + external per object, bytes': Math.round(perObject),
      'events per second': events / seconds,
      'CPU µs per event (sender included)': (user + system) / events,
    })
    stop.abort()
    await running
  } finally {
    await client.close()
    server.closeAllConnections()
    server.close()
  }
  return {
    title: 'Informer',
    about: `List and ${events} watch events over HTTP on the loopback interface, sender and reader in one process.`,
    rows,
  }
}
