import { SharedLog, type Subscriber } from '../../src/gateway/watch/shared-log.ts'
import { watchLines } from '../../src/gateway/watch/watch-lines.ts'
import { readWatchSelection } from '../../src/gateway/watch/watch-selection.ts'
import type { Bench } from '../run.ts'

const objectBytes = 2_000

/** What one event of a shared watch costs the gateway before it is sent: reading its line, and finding the clients that it concerns. */
export async function select({ clients, events }: { readonly clients: number; readonly events: number }): Promise<Bench> {
  const text = 'x'.repeat(objectBytes)
  const lines: Buffer[] = []
  for (let number = 1; number <= events; number++) {
    const values = { labels: { app: 'a' }, fields: { 'spec.workerName': `w-${number % clients}`, 'status.phase': 'Queued' } }
    const selected = JSON.stringify({ namespace: 'n', name: `r-${number}`, uid: `u-${number}`, after: values, before: true })
    lines.push(Buffer.from(`S${number} ${selected.length} ${selected}{"type":"MODIFIED","object":{"text":"${text}"}}\n`))
  }
  const rows: Bench['rows'] = []
  for (const [what, selectors] of Object.entries({
    'one client of each value': (number: number) => ({ fieldSelector: `spec.workerName=w-${number}` }),
    'a label selector each': (number: number) => ({ labelSelector: `app=other-${number}` }),
  })) {
    let delivered = 0
    const log = new SharedLog(0, { maxEvents: 10_000, maxBytes: 16 * 1024 * 1024 })
    for (let number = 0; number < clients; number++) {
      const subscriber: Subscriber = {
        selection: readWatchSelection(new URLSearchParams(selectors(number))),
        from: new Map([['a', 0]]),
        deliver(some) {
          delivered += some.length
        },
      }
      log.add(subscriber)
    }
    const startMs = performance.now()
    const chunks = (async function* () {
      for (let at = 0; at < lines.length; at += 20) yield Buffer.concat(lines.slice(at, at + 20))
    })()
    for await (const some of watchLines(chunks)) {
      log.push(
        some.flatMap(line =>
          line.kind === 'event' && line.selected
            ? [{ revision: line.revision, line: line.line, leaving: undefined, selected: line.selected, source: 'a' }]
            : [],
        ),
      )
    }
    const seconds = (performance.now() - startMs) / 1_000
    const expected = what.startsWith('one') ? events : 0
    if (delivered !== expected) throw new Error(`${what}: ${delivered} lines were delivered, not ${expected}`)
    rows.push({ what, clients, events, 'events/s': Math.round(events / seconds), 'µs per event': (seconds / events) * 1e6 })
  }
  return { title: 'Selection of shared watches', about: `Events of ${objectBytes} bytes, without sockets, in one thread.`, rows }
}
