import { annotations, type Worker, type WorkerPool } from '../../../api/index.ts'
import { sha256 } from '../../../kubernetes/util/index.ts'

const digests = new WeakMap<object, string>()
const noTemplate = {}

/** Identifies the Pod template of a pool, in the annotation of the Workers that are created from it. */
export function podTemplateDigest({ spec }: Pick<WorkerPool, 'spec'>): string {
  const template: object = spec.template ?? noTemplate
  const known = digests.get(template)
  if (known !== undefined) return known
  const digest = sha256(JSON.stringify(sorted(template))).slice(0, 16)
  digests.set(template, digest)
  return digest
}

/**
 * How many of the workers run a template that their pool no longer has. Undefined for a pool whose workers are replaced by themselves, because each
 * executes its Runs and ends, or are no Pods. A Worker of an earlier version of Oarlock has no annotation and does not count.
 */
export function outdatedWorkers(pool: Pick<WorkerPool, 'spec'>, workers: () => Iterable<Worker>): number | undefined {
  if (pool.spec.mode !== 'Pod' || pool.spec.lifecycle !== 'Warm') return undefined
  const current = podTemplateDigest(pool)
  let count = 0
  for (const { metadata } of workers()) {
    const own = metadata.annotations?.[annotations.podTemplate]
    if (own !== undefined && own !== current) count++
  }
  return count
}

/** The order of keys is not kept by every server. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, child]) => [key, sorted(child)]),
  )
}
