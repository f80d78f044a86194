import type { Run, RunPhase, Worker, WorkerPool } from '../api/index.ts'
import { rfc3339 } from '../kube/index.ts'

/** Objects for tests, said in one line each. Times are milliseconds after {@link epochMs}. */
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
  options: { pool?: string; priority?: number; atMs?: number; version?: string; worker?: string; phase?: RunPhase } = {},
): Run {
  const { pool = 'default', priority = 0, atMs = 0, version = '1', worker, phase } = options
  return {
    apiVersion: 'oarlock.dev/v1alpha1',
    kind: 'Run',
    metadata: { ...meta(name, 'ns', atMs), resourceVersion: version },
    spec: {
      type: 'Apply',
      stackRef: { name: 'app', uid: 'u', generation: 1 },
      epoch: 1,
      stack: { engine: 'command', source: {} },
      revision: 'r',
      inputsDigest: 'i',
      reason: 'NewGeneration',
      pool,
      priority,
      ...(worker && { workerName: worker }),
    },
    ...(phase && { status: { phase, ...(phase === 'Assigned' && { assignedAt: rfc3339(epochMs + atMs) }) } }),
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
  } = {},
): Worker {
  const { pool = 'default', slots = 1, lifecycle = 'OneShot', phase = 'Ready', drain, atMs } = options
  return {
    apiVersion: 'oarlock.dev/v1alpha1',
    kind: 'Worker',
    metadata: meta(name, undefined, atMs),
    spec: { pool, slots, lifecycle, ...(drain && { drain }) },
    status: { phase },
  }
}

export function testPool(name: string, spec: Partial<WorkerPool['spec']> = {}): WorkerPool {
  return { apiVersion: 'oarlock.dev/v1alpha1', kind: 'WorkerPool', metadata: meta(name), spec: { mode: 'Process', ...spec } }
}
