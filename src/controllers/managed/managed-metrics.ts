import type { Histogram, Registry } from 'prom-client'
import { findCondition, objectKey, type Resource } from '../../kubernetes/object/index.ts'
import type { ManagedObject } from './managed-object.ts'

/** Crossplane's metrics of managed resources, under its names. Without a registry nothing is recorded. */
export type ManagedMetrics = {
  reconciled(object: ManagedObject, nowMs: number): void
  /** `isReady`: what the reconcile reports; `isUnchanged`: nothing had to be updated. */
  observed(object: ManagedObject, outcome: { isReady: boolean; isUnchanged: boolean }, nowMs: number): void
  updated(object: ManagedObject, nowMs: number): void
  deleted(object: ManagedObject, nowMs: number): void
  /** The object with this key (`namespace/name`) no longer exists. */
  forget(key: string): void
}

export const noManagedMetrics: ManagedMetrics = {
  reconciled: () => undefined,
  observed: () => undefined,
  updated: () => undefined,
  deleted: () => undefined,
  forget: () => undefined,
}

/** Invariant 10: of how many resources the last observation is remembered, for the drift metric. */
const rememberedLimit = 200_000
const minutes = [1, 5, 10, 15, 30, 60, 120, 300, 600, 1_800, 3_600]

const perRegistry = new WeakMap<Registry, Promise<Record<'reconcile' | 'readiness' | 'deletion' | 'drift', Histogram<'gvk'>>>>()

/** The metrics of one kind on `registry`, which several kinds may share. */
export async function managedMetricsOn(registry: Registry, { group, version, kind }: Resource<unknown>): Promise<ManagedMetrics> {
  let shared = perRegistry.get(registry)
  if (!shared) {
    shared = build(registry)
    perRegistry.set(registry, shared)
  }
  const { reconcile, readiness, deletion, drift } = await shared
  const labels = { gvk: `${group}/${version}, Kind=${kind}` }
  const sinceCreation = ({ metadata }: ManagedObject, nowMs: number) => Math.max(0, nowMs - Date.parse(metadata.creationTimestamp)) / 1_000
  /** When a resource was last found unchanged. */
  const unchanged = new Map<string, number>()
  /** First reconciled by this process and not ready yet. */
  const expected = new Set<string>()
  return {
    reconciled(object, nowMs) {
      // A reconcile that ends with a conflict writes no condition: the next one is not the first.
      if (findCondition(object.status?.conditions, 'Synced') || expected.has(objectKey(object))) return
      reconcile.observe(labels, sinceCreation(object, nowMs))
      if (expected.size < rememberedLimit) expected.add(objectKey(object))
    },
    observed(object, { isReady, isUnchanged }, nowMs) {
      const key = objectKey(object)
      if (isReady && expected.delete(key)) readiness.observe(labels, sinceCreation(object, nowMs))
      if (isUnchanged && (unchanged.size < rememberedLimit || unchanged.has(key))) unchanged.set(key, nowMs)
    },
    updated(object, nowMs) {
      const lastMs = unchanged.get(objectKey(object))
      if (lastMs !== undefined) drift.observe(labels, Math.max(0, nowMs - lastMs) / 1_000)
    },
    deleted({ metadata }, nowMs) {
      if (metadata.deletionTimestamp) deletion.observe(labels, Math.max(0, nowMs - Date.parse(metadata.deletionTimestamp)) / 1_000)
    },
    forget(key) {
      unchanged.delete(key)
      expected.delete(key)
    },
  }
}

async function build(registry: Registry) {
  const { Histogram } = await import('prom-client')
  const histogram = (name: string, help: string, buckets: number[]) =>
    new Histogram({
      name: `crossplane_managed_resource_${name}_seconds`,
      help,
      labelNames: ['gvk'] as const,
      buckets,
      registers: [registry],
    })
  const exponential = Array.from({ length: 10 }, (_, power) => 10e-9 * 10 ** power)
  return {
    reconcile: histogram('first_time_to_reconcile', 'From the creation of a managed resource to its first reconcile.', exponential),
    readiness: histogram(
      'first_time_to_readiness',
      'From the creation of a managed resource until it was ready for the first time.',
      minutes,
    ),
    deletion: histogram('deletion', 'From the deletion of a managed resource until its finalizer was removed.', minutes),
    drift: histogram('drift', 'From the last reconcile that found a resource unchanged to the one that updated it.', exponential),
  }
}
