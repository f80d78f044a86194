import { isEnded, type Run, runResource, stackResource } from '../api/index.ts'
import { isReason } from '../kube/index.ts'
import { notTaken, takeWithinMs } from './bury/index.ts'
import { assignedFinalizer } from './caches.ts'
import type { Shared } from './dispatch-parts.ts'

/** Begins the writes for Runs that need something other than a Worker. Returns after how long there may be more. */
export function tidyRuns(shared: Shared, orphans: Iterable<string>): number {
  const { caches, writes } = shared
  const { runs } = caches
  const nowMs = shared.nowMs()
  for (const run of runs.byIndex('canceled', 'yes')) {
    writes.begin(run, () => writes.end(run, 'Canceled', 'Canceled', 'canceled before it had a worker'))
  }
  for (const key of orphans) {
    const run = runs.get(key)
    if (run && !isEnded(run) && !run.spec.cancel) writes.begin(run, () => cancelOrphan(shared, run))
  }
  const untaken = runs.byIndex('untaken', 'yes')
  for (const run of untaken) {
    if (!run.status || run.status.phase === 'Queued') writes.begin(run, () => writes.markAssigned(run))
  }
  for (const run of runs.byIndex('deleted', 'yes')) if (!run.spec.cancel) writes.begin(run, () => cancel(shared, run))
  for (const run of runs.byIndex('leaving', 'yes'))
    if (isEnded(run) && !writes.isReleased(run)) writes.begin(run, () => release(shared, run))
  for (const run of notTaken(untaken, nowMs)) {
    if (run.status?.reason !== 'NotTaken') writes.begin(run, () => reportNotTaken(shared, run))
  }
  return againInMs(untaken, nowMs)
}

function againInMs(untaken: readonly Run[], nowMs: number): number {
  let next = Infinity
  for (const { status } of untaken) {
    if (status?.phase !== 'Assigned' || status.reason === 'NotTaken') continue
    next = Math.min(next, Math.max(1, Date.parse(status.assignedAt ?? '') + takeWithinMs - nowMs))
  }
  return next
}

/** The cache may not have seen the Stack yet, so the server is asked before its Run is given up. */
async function cancelOrphan(shared: Shared, run: Run): Promise<void> {
  const { namespace } = run.metadata
  const { manager, caches, writes } = shared
  const stack = await manager.leaderClient.resource(stackResource).getOrUndefined(run.spec.stackRef.name, { namespace })
  if (stack?.metadata.uid === run.spec.stackRef.uid) {
    caches.stacks.applyLocal(stack)
    return
  }
  if (run.spec.workerName) await cancel(shared, run)
  else await writes.end(run, 'Canceled', 'StackGone', `Stack ${run.spec.stackRef.name} does not exist any more`)
}

async function cancel({ manager, caches }: Shared, run: Run): Promise<void> {
  // At the version that was looked at: who does not lead any more cancels nothing.
  const { name, namespace, resourceVersion } = run.metadata
  caches.runs.applyLocal(
    await manager.leaderClient.resource(runResource).patch(name, { spec: { cancel: true } }, { type: 'merge', namespace, resourceVersion }),
  )
}

/** The Run may be gone with this: until the cache knows, it looks as if it were still to be done. */
async function release({ manager, writes }: Shared, run: Run): Promise<void> {
  const { name, namespace, resourceVersion, finalizers = [] } = run.metadata
  const patch = { metadata: { finalizers: finalizers.filter(one => one !== assignedFinalizer) } }
  try {
    await manager.leaderClient.resource(runResource).patch(name, patch, { type: 'merge', namespace, resourceVersion })
  } catch (error) {
    if (!isReason(error, 'NotFound')) throw error
  }
  writes.released(run)
}

async function reportNotTaken({ events, writes }: Shared, run: Run): Promise<void> {
  const message = `worker ${run.spec.workerName} renews its Lease but did not take this Run within ${takeWithinMs / 1_000} s; look at its log`
  events.warning(run, 'NotTaken', message)
  await writes.status(run, { reason: 'NotTaken', message })
}
