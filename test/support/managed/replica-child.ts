/** One replica of a provider, in a process of its own: settings as JSON in argv[2]. Says `started` over IPC, and ends when its parent does. */

import { bucketResource } from '../../../src/controllers/managed/fake-cloud.testing.ts'
import { dispatchToStack, managed, ResourceLocks } from '../../../src/controllers/managed/index.ts'
import { createClient } from '../../../src/kubernetes/client/index.ts'
import { Manager, silentLog } from '../../../src/kubernetes/controller/index.ts'
import type { ReplicaSettings } from './fleet.ts'
import { jobResource, jobStack } from './job.ts'
import { monotonicMs } from './monotonic-ms.ts'

const settings = JSON.parse(process.argv[2] as string) as ReplicaSettings
const { member, lock, leaseMs, cloudUrl, isDeterministic, pollIntervalMs, maxConcurrent, slots } = settings
const times = { leaseDurationMs: leaseMs, renewDeadlineMs: Math.round(leaseMs * 0.66), retryPeriodMs: Math.round(leaseMs / 10) }
const namespace = 'default'

const client = await createClient({ kubeconfig: settings.kubeconfig, userAgent: member, connections: 2 })
const manager = new Manager({
  client,
  log: silentLog,
  ...(lock === 'none' && { leaderElection: { leaseName: 'provider', namespace, identity: member, ...times } }),
  ...(lock === 'shard' && { shards: { name: 'provider', namespace, slots, ...times } }),
})

/** Without an await before the request: after the last check of the lock nothing comes between. */
const call = async (method: string, query: Record<string, string>, signal: AbortSignal) => {
  const body = method === 'POST' ? JSON.stringify({ begunMs: monotonicMs() }) : null
  const response = await fetch(`${cloudUrl}/things?${new URLSearchParams({ ...query, member })}`, { method, signal, body })
  return (await response.json()) as { id?: string }
}

manager.add(
  managed({
    kind: bucketResource,
    lock: lock === 'lease' ? new ResourceLocks(manager, { name: 'provider', namespace, identity: member, ...times }) : lock,
    externalNames: isDeterministic ? 'metadata.name' : 'assigned',
    hasDeterministicNames: isDeterministic,
    pollIntervalMs,
    // The cloud is consistent: what an observation does not find does not exist.
    creationGraceMs: 1,
    maxConcurrent,
    backoff: { baseDelayMs: 100, maxDelayMs: 1_000 },
    connect: async () => undefined,
    async observe(_, { externalName, signal }) {
      if (!externalName) return { exists: false }
      const { id } = await call('GET', isDeterministic ? { name: externalName } : { id: externalName }, signal)
      return { exists: id !== undefined }
    },
    async create(_, { object, externalName, signal }) {
      const { id } = await call('POST', { name: externalName ?? object.metadata.name }, signal)
      return isDeterministic ? undefined : { externalName: id }
    },
    update: async () => undefined,
    delete: async () => undefined,
  }),
)

if (settings.hasJobs) {
  manager.add(
    managed(
      dispatchToStack({
        kind: jobResource,
        stack: ({ object }) => jobStack(object),
        lock: lock === 'shard' ? 'shard' : 'none',
        maxConcurrent,
      }),
    ),
  )
}

process.on('message', message => {
  if (message === 'measure') {
    globalThis.gc?.()
    const { userCPUTime, systemCPUTime } = process.resourceUsage()
    const { rss, heapUsed, external } = process.memoryUsage()
    process.send?.({ rssMb: rss / 1e6, heapMb: (heapUsed + external) / 1e6, cpuSeconds: (userCPUTime + systemCPUTime) / 1e6 })
  }
})
process.on('disconnect', () => process.exit(1))
await manager.start()
process.send?.('started')
