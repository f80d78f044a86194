/** Ranking a long queue: one change, one decision. */
import { type Run, subjectOf } from '../src/api/index.ts'
import { DispatchCore, previewQueueOrder, requestOf, Scheduler, TenantIndex } from '../src/controllers/dispatch/index.ts'
import { rfc3339 } from '../src/kubernetes/object/index.ts'
import type { Bench } from './run.ts'

const startMs = Date.parse('2026-06-01T00:00:00Z')
const classes = ['Interactive', 'Change', 'Change', 'Change', 'Drift', 'Drift'] as const

/** Random whole numbers below `below`, the same in each run of the benchmark. */
function seededRandom(): (below: number) => number {
  let seed = 20_260_601
  return below => {
    seed = (seed * 48_271) % 2_147_483_647
    return seed % below
  }
}

function makeRun(number: number, tenants: number, random: (below: number) => number): Run {
  const tenant = random(tenants)
  return {
    apiVersion: 'oarlock.dev/v1alpha1',
    kind: 'Run',
    metadata: {
      name: `run-${number}`,
      namespace: `tenant-${tenant}`,
      uid: `uid-${number}`,
      resourceVersion: String(1_000_000 + number),
      creationTimestamp: rfc3339(startMs + random(3_600) * 1_000),
    },
    spec: {
      type: 'Apply',
      stackRef: { name: `stack-${number}`, uid: `s-${number}`, generation: 1 },
      epoch: 1,
      // One in five shares a provider account with other Runs of its tenant; one in ten has a priority.
      stack: { engine: 'terraform', source: {}, ...(random(5) === 0 && { concurrencyKey: `account-${random(10)}`, concurrencyLimit: 3 }) },
      revision: 'r',
      inputsDigest: 'i',
      reason: 'NewGeneration',
      pool: 'default',
      priorityClass: classes[random(classes.length)] ?? 'Change',
      priority: random(10) === 0 ? random(5) : 0,
    },
  }
}

export async function bench(): Promise<Bench> {
  const rows: Bench['rows'] = []
  for (const [runs, tenants] of [
    [10_000, 100],
    [100_000, 1_000],
  ] as const) {
    rows.push(...measure(runs, tenants))
  }
  return {
    title: 'Ranking the queue',
    about:
      'Runs of several tenants in three classes. One change: a Run ends, the next one starts, a new one is queued. ' +
      'Filled: an empty queue, as after a restart. Preview: the first 200 Runs in order, as for /queue.',
    rows,
  }
}

function measure(runs: number, tenants: number): Bench['rows'] {
  const random = seededRandom()
  global.gc?.()
  const heapBefore = process.memoryUsage().heapUsed
  const scheduler = new Scheduler()
  const { queue } = scheduler
  queue.setTenants(new TenantIndex())
  const requests = Array.from({ length: runs }, (_, i) => requestOf(makeRun(i, tenants, random)))
  const fillingMs = performance.now()
  const fillingCpu = process.cpuUsage()
  for (const request of requests) queue.put(request)
  const filledMs = performance.now() - fillingMs
  const filledCpuMs = process.cpuUsage(fillingCpu).user / 1_000

  const [equivalenceClass] = queue.equivalenceClasses()
  if (!equivalenceClass) throw new Error('bug: the queue is empty')
  let nowMs = startMs + 3_600_000
  const running: string[] = []
  const start = () => {
    const entry = queue.next(equivalenceClass)
    if (!entry) return
    const { key, namespace, concurrency } = entry.request
    queue.start({ key, namespace, pool: 'default', concurrencyKey: concurrency?.key, sinceMs: nowMs })
    running.push(key)
  }
  for (let i = 0; i < 200; i++) start()

  const changes = 20_000
  const durations = new Float64Array(changes)
  for (let i = 0; i < changes; i++) {
    const request = requestOf(makeRun(runs + i, tenants, random))
    nowMs += 50
    const startedMs = performance.now()
    queue.end(running.splice(random(running.length), 1)[0]!, nowMs)
    start()
    queue.put(request)
    durations[i] = performance.now() - startedMs
  }
  durations.sort()
  const at = (share: number) => durations[Math.min(changes - 1, Math.floor(changes * share))] ?? 0
  const row = (what: string, p50: number, p99: number, max: number) => ({
    runs,
    tenants,
    what,
    'p50 ms': p50,
    'p99 ms': p99,
    'max ms': max,
  })
  const previewMs = times(20, () => previewQueueOrder(queue, 'default', 200, nowMs))
  scheduler.inventory.set(worker)
  const decisionMs = times(2_000, () => {
    const [assigned] = scheduler.schedule({ nowMs, random: () => 0.5 })
    if (!assigned) return
    queue.end(assigned.key, nowMs)
    scheduler.inventory.setLoad('w')
  })
  const bytes = Math.max(0, process.memoryUsage().heapUsed - heapBefore) / runs
  const coreMs = measureCore(runs, tenants, random)
  return [
    row('one change, and the decision of the core', ...coreMs),
    row('one change', at(0.5), at(0.99), at(1)),
    row('one decision (placement)', ...decisionMs),
    row('preview of 200', ...previewMs),
    { ...row('filled', filledMs, filledMs, filledMs), 'cpu ms': Math.round(filledCpuMs), 'bytes per Run': Math.round(bytes) },
  ].map(one => ({
    ...one,
    'cpu ms': 'cpu ms' in one ? one['cpu ms'] : '',
    'bytes per Run': 'bytes per Run' in one ? one['bytes per Run'] : '',
  }))
}

const worker = {
  apiVersion: 'oarlock.dev/v1alpha1',
  kind: 'Worker',
  metadata: { name: 'w', uid: 'w', resourceVersion: '1', creationTimestamp: rfc3339(startMs) },
  spec: { pool: 'default', slots: 1, lifecycle: 'Warm' as const },
  status: { phase: 'Ready' as const },
}

/** The whole core: a Run is created, the one of the only worker ends, and the next one is assigned and acknowledged. */
function measureCore(runs: number, tenants: number, random: (below: number) => number): [p50: number, p99: number, max: number] {
  const now = { wallMs: startMs + 3_600_000, monotonicMs: 0 }
  // Its worker never renews its Lease.
  const core = new DispatchCore({ leaseDurationMs: 1e9 }, now)
  core.observe({ kind: 'WorkerChanged', worker }, now)
  const byKey = new Map<string, Run>()
  let count = 0
  const create = () => {
    const run = makeRun(count++, tenants, random)
    byKey.set(`${run.metadata.namespace}/${run.metadata.name}`, run)
    core.observe({ kind: 'SubjectChanged', subject: subjectOf(run), recordedEpoch: 0 }, now)
    core.observe({ kind: 'RunChanged', run, isInitial: true }, now)
  }
  for (let i = 0; i < runs; i++) create()
  let active: Run | undefined
  return times(5_000, () => {
    now.wallMs += 50
    now.monotonicMs += 50
    create()
    if (active)
      core.observe({ kind: 'RunChanged', run: { ...active, status: { phase: 'Succeeded', finishedAt: rfc3339(now.wallMs) } } }, now)
    active = undefined
    for (const action of core.decide(now, () => 0.5).actions) {
      if (action.kind !== 'AssignRun') {
        if ('object' in action) core.observe({ kind: 'WriteSettled', object: action.object, outcome: 'Written' }, now)
        continue
      }
      const { object } = action
      const run = byKey.get(`${object.namespace}/${object.name}`)!
      byKey.delete(`${object.namespace}/${object.name}`)
      active = { ...run, spec: { ...run.spec, workerName: action.worker, assignedAt: rfc3339(now.wallMs) }, status: { phase: 'Applying' } }
      core.observe({ kind: 'RunChanged', run: active }, now)
      core.observe({ kind: 'WriteSettled', object, outcome: 'Written' }, now)
    }
    if (!active) throw new Error('bug: no Run was assigned')
  })
}

function times(count: number, act: () => unknown): [p50: number, p99: number, max: number] {
  const durations = Array.from({ length: count }, () => {
    const startedMs = performance.now()
    act()
    return performance.now() - startedMs
  }).sort((a, b) => a - b)
  return [durations[count >> 1] ?? 0, durations[Math.floor(count * 0.99)] ?? 0, durations[count - 1] ?? 0]
}
