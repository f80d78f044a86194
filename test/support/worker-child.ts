/** A worker process for tests that pause it, block it or cut its network: settings in argv, commands as messages. */

import { runWorker } from '../../src/execution/worker/index.ts'
import { createClient } from '../../src/kubernetes/client/index.ts'

export type WorkerChildSettings = {
  name: string
  server: string
  caCertificate: string
  token: string
  runsDir: string
  cacheDir: string
  lease: { durationMs: number; renewMs: number; interruptMs: number; terminateMs: number; killMs: number }
}

const settings = JSON.parse(process.argv[2] ?? '{}') as WorkerChildSettings
const { name, server, caCertificate, token, runsDir, cacheDir, lease } = settings
process.on('message', (message: { blockMs: number }) => {
  for (const endMs = performance.now() + message.blockMs; performance.now() < endMs; ) {
    // Blocks the event loop.
  }
  process.send?.('unblocked')
})
const client = await createClient({ cluster: { server, caCertificate, token } })
const print = (fields: object, message: string): void => console.error(`${name}: ${message} ${JSON.stringify(fields)}`)
const log = process.env.OARLOCK_TEST_VERBOSE ? { info: print, warn: print } : { info: () => {}, warn: () => {} }
const { exitCode } = await runWorker({
  ...{ name, pool: 'default', once: true, client, storeUrl: server, caCertificate, token, runsDir, cacheDir, allowPaths: [], log, lease },
  storeCaCertificate: caCertificate,
  signal: new AbortController().signal,
})
await client.close()
process.exit(exitCode)
