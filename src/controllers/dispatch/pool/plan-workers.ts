import { anyTrustDomain } from '../placement/index.ts'
import type { RunQueueEntry } from '../queue/index.ts'
import type { WorkerPurpose } from './pool-driver.ts'

/** A worker that is idle or starting, as far as it decides which Runs it can take. */
export type UnusedWorker = {
  readonly name: string
  /** Undefined: not decided yet. `anyTrustDomain`: only Runs that require none. */
  readonly trustDomain?: string | undefined
}

export type PlannedWorkers = {
  /** For which Runs new workers are needed, in scheduling order. */
  readonly needs: readonly WorkerPurpose[]
  /** Names of the idle and starting workers that no Run of the plan would use. */
  readonly unused: ReadonlySet<string>
}

/**
 * Plans workers for Runs in scheduling order: first those that are idle or starting and may execute them, then new ones. A worker that is
 * dedicated to one trust domain does not count for the Runs of another.
 */
export function planWorkers(entries: Iterable<RunQueueEntry>, workers: readonly UnusedWorker[], slots: number): PlannedWorkers {
  const unused = new Set(workers.map(({ name }) => name))
  const byDomain = Map.groupBy(workers, ({ trustDomain }) => trustDomain)
  /** Free slots of the workers that the plan uses. */
  const free = new Map<string | undefined, number>()
  const needs: WorkerPurpose[] = []
  const use = (domain: string | undefined, of: string | undefined) => {
    const worker = byDomain.get(of)?.shift()
    if (!worker) return false
    unused.delete(worker.name)
    free.set(domain, (free.get(domain) ?? 0) + slots - 1)
    return true
  }
  for (const { request } of entries) {
    const { trustDomain, pod } = request.requirements
    const remaining = free.get(trustDomain) ?? 0
    if (remaining > 0) free.set(trustDomain, remaining - 1)
    else if (use(trustDomain, trustDomain ?? anyTrustDomain) || (pod === undefined && use(trustDomain, undefined))) continue
    else {
      needs.push({ run: request.key, trustDomain: pod && trustDomain, pod })
      free.set(trustDomain, (free.get(trustDomain) ?? 0) + slots - 1)
    }
  }
  return { needs, unused }
}
