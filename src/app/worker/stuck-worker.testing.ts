/** The health endpoint of a worker, for `worker-health.test.ts`: sent a path, it blocks its event loop until that file exists. */
import { existsSync } from 'node:fs'
import { startWorkerHealth } from './worker-health.ts'

const { address } = await startWorkerHealth({ host: '127.0.0.1', port: 0 }, () => ({ live: [], ready: ['drains'], started: [] }), {
  stuckAfterMs: 1_500,
})
const pause = new Int32Array(new SharedArrayBuffer(4))
process.on('message', (path: string) => {
  while (!existsSync(path)) Atomics.wait(pause, 0, 0, 20)
  process.send?.('unblocked')
})
process.send?.(address.port)
