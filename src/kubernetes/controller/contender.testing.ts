/**
 * A process that contends for leadership, for `leader-process.test.ts`: `node contender.testing.ts SERVER IDENTITY SKEW_MS`.
 * Prints `<session> <nanoseconds of the host's monotonic clock>` repeatedly while it may act.
 */
import { createClient } from '../client/index.ts'
import { Manager, silentLog } from './index.ts'

const [server = '', identity = '', skewMs = '0'] = process.argv.slice(2)
const wallMs = Date.now
// Wrong, then corrected, then wrong again every 300 ms, like a time daemon in conflict with its hypervisor.
Date.now = () => wallMs() + (Math.floor(performance.now() / 300) % 2 === 0 ? Number(skewMs) : 0)

const client = await createClient({ cluster: { server, namespace: 'a' }, requestTimeoutMs: 500 })
const manager = new Manager({
  client,
  log: silentLog,
  leaderElection: {
    leaseName: 'leader',
    namespace: 'a',
    identity,
    leaseDurationMs: 1_000,
    renewDeadlineMs: 700,
    retryPeriodMs: 100,
  },
})
let sessions = 0
manager.add({
  async start(signal) {
    const session = `${identity}-${++sessions}`
    while (!signal.aborted) {
      // Read first: if the process is stopped between the two lines, the claim still refers to an instant at which it was true.
      const nowNs = process.hrtime.bigint()
      if (manager.isLeader) process.stdout.write(`${session} ${nowNs}\n`)
      await new Promise(resolve => setTimeout(resolve, 2))
    }
  },
})
await manager.run()
await client.close()
