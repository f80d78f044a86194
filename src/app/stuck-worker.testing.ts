/** A worker as far as its health is concerned, for `worker-health.test.ts`: told a path, its event loop stands still until a file is there. */
import { existsSync } from 'node:fs'
import { startWorkerHealth } from './worker-health.ts'

const { address } = await startWorkerHealth({ host: '127.0.0.1', port: 0 }, () => ({ live: [], ready: ['drains'], started: [] }), {
  stuckAfterMs: 1_500,
})
const pause = new Int32Array(new SharedArrayBuffer(4))
process.on('message', (path: string) => {
  while (!existsSync(path)) Atomics.wait(pause, 0, 0, 20)
  process.send?.('turns again')
})
process.send?.(address.port)
