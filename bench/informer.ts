/** Watch events per second that an informer processes, and memory per cached object. `--objects N --hot N` set the numbers. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { createClient } from '../src/kubernetes/client/index.ts'
import { Informer } from '../src/kubernetes/controller/index.ts'
import { type SenderMessage, widgetKind } from './load/event-sender.ts'
import type { Bench } from './run.ts'

const events = 400_000

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
    // Twice: the first collection only releases what a finished response held.
    gc()
    gc()
    const { heapUsed, external } = process.memoryUsage()
    return heapUsed + external
  }

  const sender = fork(join(import.meta.dirname, 'load', 'event-sender.ts'), [String(count), String(events)])
  const reported = async <Kind extends SenderMessage['kind']>(kind: Kind) => {
    for (;;) {
      const [message] = (await once(sender, 'message')) as [SenderMessage]
      if (message.kind === kind) return message as Extract<SenderMessage, { kind: Kind }>
    }
  }
  const { port, objectBytes } = await reported('listening')
  const client = await createClient({ cluster: { server: `http://127.0.0.1:${port}` } })
  const rows: Bench['rows'] = []
  try {
    const before = used()
    const informer = new Informer({ client, resource: widgetKind, hotObjects: Number(values.hot) })
    const stop = new AbortController()
    const began = performance.now()
    const watched = reported('watched')
    const running = informer.start(stop.signal)
    await informer.whenSynced()
    const syncSeconds = (performance.now() - began) / 1_000
    const perObject = (used() - before) / count
    await watched

    const done = Promise.withResolvers<void>()
    let seen = 0
    // Like a controller that watches its own kind.
    informer.onChange({
      changed: ({ type }) => {
        if (type === 'updated' && ++seen === events) done.resolve()
      },
    })
    const cpuBefore = process.cpuUsage()
    const eventsBegan = performance.now()
    sender.send('go')
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
      'CPU µs per event': (user + system) / events,
    })
    stop.abort()
    await running
  } finally {
    await client.close()
    sender.disconnect()
  }
  return {
    title: 'Informer',
    about: `List and ${events} watch events over HTTP on the loopback interface, sender in a separate process.`,
    rows,
  }
}
