/** One replica of an operator, in a process of its own: settings as JSON in argv[2], reports to its parent over IPC. */
import { readFileSync } from 'node:fs'
import { createClient } from '../../src/kubernetes/client/index.ts'
import { collectGarbageWhenIdle, controller, Manager, NotOwnerError, predicates } from '../../src/kubernetes/controller/index.ts'
import { isReason } from '../../src/kubernetes/index.ts'
import { garbageCollector } from '../../src/kubernetes/util/idle-gc.ts'
import { childResource, rootResource } from './kinds.ts'
import { type FromReplica, monotonicMs, type ReplicaSettings, type ToReplica } from './messages.ts'

const settings = JSON.parse(process.argv[2] as string) as ReplicaSettings
const { shards, member, cpuMs, intervalMs, reports, ownsChildren } = settings
const send = (message: FromReplica) => process.send?.(message)

const client = await createClient({ kubeconfig: settings.kubeconfig, userAgent: `bench-${member}`, connections: 2 })
const manager = new Manager({ client, ...(shards && { shards }) })
const roots = manager.informer(rootResource, { sharded: shards && 'root', hotObjects: 128 })
const children = ownsChildren ? manager.informer(childResource, { sharded: shards && 'owned', hotObjects: 128 }) : undefined
let reconciles = 0

manager.add(
  controller({
    name: 'kyma',
    for: rootResource,
    informer: { hotObjects: 128 },
    predicates: [predicates.generationChanged],
    owns: ownsChildren ? [{ resource: childResource, informer: { hotObjects: 128 } }] : [],
    maxConcurrent: settings.maxConcurrent,
    // A failed reconcile of a bench is repeated soon: what is measured is how long a key has no owner.
    backoff: { baseDelayMs: 20, maxDelayMs: 200 },
    async reconcile({ key, name, namespace, object, client: own, shard, signal }) {
      if (!object || ownsChildren) return undefined
      const { revision } = object.spec as { revision: number }
      const { status } = object as { status?: { revision?: number; count?: number } }
      if (intervalMs === undefined && (status?.revision ?? 0) === revision) return undefined
      reconciles++
      const fence = shard?.fence ?? 0
      if (reports) send({ type: 'begin', key, fence, bucket: shard?.bucket ?? 0, atMs: monotonicMs() })
      burn(cpuMs)
      let wrote = false
      try {
        const written = { revision, fence, member, count: (status?.count ?? 0) + 1 }
        const { resourceVersion } = object.metadata
        await own
          .resource(rootResource, { managedFields: false })
          .patchStatus(name, { status: written }, { namespace, resourceVersion, signal })
        wrote = true
      } catch (error) {
        if (!reports || !(error instanceof NotOwnerError || isReason(error, 'Conflict') || signal.aborted)) throw error
      } finally {
        if (reports) send({ type: 'end', key, atMs: monotonicMs(), wrote })
      }
      return intervalMs === undefined ? undefined : { requeueAfterMs: intervalMs }
    },
  }),
)

/** CPU of this thread, not wall time: a replica that its cgroup holds back needs longer for it. */
function burn(ms: number): void {
  const { user, system } = process.threadCpuUsage()
  for (;;) {
    const now = process.threadCpuUsage()
    if (now.user + now.system - user - system >= ms * 1_000) return
  }
}

/** As `collectGarbageWhenIdle` does 10 s after the last work: a replica is measured when it is idle, and the bench does not wait for that. */
const collect = garbageCollector()

async function measure(): Promise<void> {
  // Several times, with a pause: what the first leaves to finalizers is freed by the next.
  for (let round = 0; round < 3; round++) {
    collect()
    await new Promise(resolve => setTimeout(resolve, 200))
  }
  const { rss, heapUsed, external } = process.memoryUsage()
  const { userCPUTime, systemCPUTime } = process.resourceUsage()
  send({
    type: 'measured',
    rssMb: rss / 1e6,
    privateMb: privateBytes() / 1e6,
    heapMb: (heapUsed + external) / 1e6,
    objects: roots.size + (children?.size ?? 0),
    reconciles,
    cpuSeconds: (userCPUTime + systemCPUTime) / 1e6,
  })
}

/** What this process alone occupies: RSS without the pages of the node binary and libraries, which all replicas of a machine share. */
function privateBytes(): number {
  const rollup = readFileSync('/proc/self/smaps_rollup', 'utf8')
  return Number(/^Private_Dirty:\s+(\d+) kB$/m.exec(rollup)?.[1]) * 1_024
}

async function stop(): Promise<void> {
  await manager.stop({ graceMs: 5_000 })
  await client.close()
  process.disconnect?.()
  process.exit(0)
}

process.on('message', (message: ToReplica) => void (message.type === 'stop' ? stop() : measure()))
process.on('disconnect', () => process.exit(1))
manager.start().then(
  () => {
    collectGarbageWhenIdle()
    send({ type: 'started' })
  },
  error => {
    console.error(error)
    process.exit(1)
  },
)
