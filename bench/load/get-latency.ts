/** Sends one get after another: `argv[2]` is the {@link Endpoint}, `argv[3]` the path. Every message is answered with the latencies in ms since the last one. */
import { setTimeout as delay } from 'node:timers/promises'
import { type Endpoint, RawConnection } from './raw-connection.ts'

const pauseMs = 2

const [, , endpoint = '', path = ''] = process.argv
const connection = await RawConnection.open(JSON.parse(endpoint) as Endpoint)
let latencies: number[] = []
process.on('message', () => {
  process.send?.(latencies)
  latencies = []
})
process.on('disconnect', () => process.exit())
for (;;) {
  const startMs = performance.now()
  const { status } = await connection.request('GET', path)
  if (status !== 200) throw new Error(`the get was answered with ${status}`)
  latencies.push(performance.now() - startMs)
  await delay(pauseMs)
}
