import type { PriorityClass, Run, RunPhase, Tenant, Worker, WorkerPool } from '../../api/index.ts'
import { rfc3339 } from '../../kubernetes/object/index.ts'

/** One-line constructors of objects for tests. Times are milliseconds after {@link epochMs}. */
export const epochMs = Date.parse('2026-06-01T10:00:00Z')

const meta = (name: string, namespace?: string, atMs = 0) => ({
  name,
  ...(namespace && { namespace }),
  uid: `uid-${name}`,
  resourceVersion: '1',
  generation: 1,
  creationTimestamp: rfc3339(epochMs + atMs),
})

export function testRun(
  name: string,
  options: {
    namespace?: string
    pool?: string
    priority?: number
    priorityClass?: PriorityClass
    atMs?: number
    version?: string
    worker?: string
    phase?: RunPhase
    stack?: Partial<Run['spec']['stack']>
  } = {},
): Run {
  const { namespace = 'ns', pool = 'default', priority = 0, atMs = 0, version = '1', worker, phase, priorityClass, stack } = options
  return {
    apiVersion: 'oarlock.dev/v1alpha1',
    kind: 'Run',
    metadata: { ...meta(name, namespace, atMs), resourceVersion: version },
    spec: {
      type: 'Apply',
      stackRef: { name: 'app', uid: 'u', generation: 1 },
      epoch: 1,
      stack: { engine: 'command', source: {}, ...stack },
      revision: 'r',
      inputsDigest: 'i',
      reason: 'NewGeneration',
      pool,
      priority,
      ...(priorityClass && { priorityClass }),
      ...(worker && { workerName: worker, assignedAt: rfc3339(epochMs + atMs) }),
    },
    ...(phase && { status: { phase } }),
  }
}

export function testWorker(
  name: string,
  options: {
    pool?: string
    slots?: number
    lifecycle?: 'OneShot' | 'Warm'
    phase?: 'Ready' | 'Busy' | 'Draining'
    drain?: boolean
    atMs?: number
    labels?: Record<string, string>
    status?: Partial<Worker['status']>
  } = {},
): Worker {
  const { pool = 'default', slots = 1, lifecycle = 'OneShot', phase = 'Ready', drain, atMs, labels, status } = options
  return {
    apiVersion: 'oarlock.dev/v1alpha1',
    kind: 'Worker',
    metadata: { ...meta(name, undefined, atMs), ...(labels && { labels }) },
    spec: { pool, slots, lifecycle, ...(drain && { drain }) },
    status: { phase, ...status },
  }
}

export function testTenant(name: string, spec: Tenant['spec'] = {}, atMs = 0): Tenant {
  return { apiVersion: 'oarlock.dev/v1alpha1', kind: 'Tenant', metadata: meta(name, undefined, atMs), spec }
}

export function testPool(name: string, spec: Partial<WorkerPool['spec']> = {}): WorkerPool {
  return { apiVersion: 'oarlock.dev/v1alpha1', kind: 'WorkerPool', metadata: meta(name), spec: { mode: 'Process', ...spec } }
}
