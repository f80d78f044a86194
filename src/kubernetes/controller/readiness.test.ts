/** When a manager is ready, at a server that rejects requests. */
import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { test } from 'node:test'
import { pino } from 'pino'
import { Registry } from 'prom-client'
import { eventually } from '../../../test/support/eventually.ts'
import { InMemoryApi } from '../../../test/support/in-memory-api.ts'
import { respondStatus } from '../../../test/support/scripted-server.ts'
import { configMapResource, createClient } from '../client/index.ts'
import { Manager, type ManagerOptions, silentLog } from './index.ts'

const listWatch = { backoff: { minMs: 5, maxMs: 20 } }

async function withManager(run: (api: InMemoryApi, manager: Manager) => Promise<void>, options: Partial<ManagerOptions> = {}) {
  const api = await InMemoryApi.start()
  const client = await createClient({ cluster: { server: api.server.url, namespace: 'a' } })
  const manager = new Manager({ client, log: silentLog, listWatch, ...options })
  try {
    await run(api, manager)
  } finally {
    await manager.stop({ graceMs: 100 })
    await client.close()
    await api.close()
  }
}

/** Responds to requests below a path with an error until it is called. */
function reject(api: InMemoryApi, part: string, code: number, reason: string): () => void {
  api.intercept = ({ path }, response) => {
    if (!path.includes(part)) return false
    respondStatus(response, code, reason)
    return true
  }
  return () => {
    api.intercept = undefined
  }
}

for (const [code, reason] of [
  [401, 'Unauthorized'],
  [403, 'Forbidden'],
] as const) {
  test(`a manager with filled caches is not ready while its watches are rejected with ${code}, and ready when one is accepted`, async () => {
    await withManager(async (api, manager) => {
      manager.informer(configMapResource)
      await manager.start()
      await eventually(() => api.watchers === 1, 'the watch')
      deepEqual(manager.readyz(), { ok: true, reasons: [], publicReasons: [] })
      const accept = reject(api, '/configmaps', code, reason)
      api.breakWatches()
      const reasons = await eventually(
        () => manager.readyz().reasons,
        found => found.length > 0,
      )
      match(reasons.join(), /^the cache of configmaps is not kept in sync: /)
      deepEqual(manager.readyz().publicReasons, [`the cache of configmaps is not kept in sync (${reason})`])
      accept()
      // Nothing changes, so no event shows that the watch works again.
      await eventually(() => manager.readyz().ok, 'the manager to be ready')
      deepEqual(manager.healthz(), { ok: true, reasons: [], publicReasons: [] })
    })
  })
}

test('a manager whose server fails stays ready with its caches, and a metric shows for how long they have failed', async () => {
  const registry = new Registry()
  await withManager(
    async (api, manager) => {
      manager.informer(configMapResource)
      await manager.start()
      await eventually(() => api.watchers === 1, 'the watch')
      const failingSeconds = async () => {
        const [value] = (await registry.getSingleMetric('controller_cache_failing_seconds')?.get())?.values ?? []
        deepEqual(value?.labels, { resource: 'configmaps', cluster: '' })
        return value?.value ?? Number.NaN
      }
      equal(await failingSeconds(), 0)
      const accept = reject(api, '/configmaps', 503, 'ServiceUnavailable')
      api.breakWatches()
      const first = await eventually(failingSeconds, seconds => seconds > 0)
      await eventually(failingSeconds, seconds => seconds > first + 0.03)
      deepEqual(manager.readyz(), { ok: true, reasons: [], publicReasons: [] })
      accept()
      await eventually(failingSeconds, seconds => seconds === 0)
    },
    { registry },
  )
})

test('a list+watch that fails again and again is logged as a warning once a minute, with its verb and the number of failures', async () => {
  const lines: { level: string; msg: string; verb?: string; err?: { type: string }; repeated?: number }[] = []
  const log = pino(
    { level: 'debug', formatters: { level: level => ({ level }) } },
    { write: (line: string) => void lines.push(JSON.parse(line)) },
  )
  // Delays pass immediately; `skippedMs` passes beside them.
  let skippedMs = 0
  const nowMs = () => performance.now() + skippedMs
  const clock = { nowMs, sleep: () => new Promise<void>(resolve => void setTimeout(resolve, 2)) }
  await withManager(
    async (api, manager) => {
      const informer = manager.informer(configMapResource)
      await manager.start()
      await eventually(() => api.watchers === 1, 'the watch')
      const failures = (level: string) => lines.filter(line => line.level === level && line.msg === 'list+watch failed, retrying')
      const accept = reject(api, '/configmaps', 403, 'Forbidden')
      api.breakWatches()
      await eventually(() => failures('debug').length >= 5, 'failures that are not warnings')
      const causes = () => failures('warn').map(({ verb, repeated }) => `${verb}${repeated === undefined ? '' : ' repeated'}`)
      // The watch that broke, then the rejected watches, then the lists because the version is suspect.
      deepEqual(causes(), ['watch', 'watch', 'list'])
      skippedMs = 60_000
      await eventually(() => causes().at(-1) === 'list repeated', 'the next warning')
      equal(causes().length, 4)
      ok((failures('warn').at(-1)?.repeated ?? 0) >= 4)
      accept()
      await eventually(() => informer.lastError === undefined, 'the cache to be in sync')
      ok(lines.some(({ level, msg }) => level === 'info' && msg === 'list+watch works again'))
    },
    { log, listWatch: { ...listWatch, clock } },
  )
})

test('a manager is not ready while it cannot contend for leadership, and ready while another process leads', async () => {
  const leaderElection = {
    ...{ leaseName: 'ctl', namespace: 'a', identity: 'one' },
    // Not whole numbers, as the thirds of a duration.
    ...{ leaseDurationMs: 1_000, renewDeadlineMs: 2_000 / 3, retryPeriodMs: 20 },
  }
  await withManager(
    async (api, manager) => {
      const accept = reject(api, '/leases', 403, 'Forbidden')
      await manager.start()
      const reasons = await eventually(
        () => manager.readyz().reasons,
        found => found.length > 0,
      )
      match(reasons.join(), /^leader election fails: /)
      deepEqual(manager.readyz().publicReasons, ['leader election fails (Forbidden)'])
      api.put('/apis/coordination.k8s.io/v1/namespaces/a/leases/ctl', { spec: { holderIdentity: 'other', leaseDurationSeconds: 1 } })
      accept()
      await eventually(() => manager.readyz().ok, 'the manager to be ready')
      await manager.whenLeader
      await eventually(() => manager.readyz().ok, 'the leader to be ready')
    },
    { leaderElection },
  )
})
