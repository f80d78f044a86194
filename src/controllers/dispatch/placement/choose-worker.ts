import type { Worker } from '../../../api/index.ts'

/** A Worker with a free slot. */
export type Candidate = {
  readonly worker: Worker
  /** Active Runs, including those just assigned. */
  active: number
  /** Free slots. */
  free: number
}

/** Label of the failure domain of a Worker. */
export const failureDomainLabel = 'topology.kubernetes.io/zone'

/** A Worker with a warm cache is preferred while its failure domain has at most this many Runs more than the least loaded one. */
export const affinityBound = 2

/** Number of Workers of a large pool that are considered for each assignment. */
export const sampleSize = 32

/**
 * Chooses the best of the candidates, all of which fit. Preferred is a Worker that has the first of `cacheKeys`, or else the next, within {@link affinityBound};
 * then the failure domain with the fewest Runs; then the most loaded Worker, so that idle ones can be drained.
 */
export function chooseWorker<T extends Candidate>(
  candidates: readonly T[],
  cacheKeys: readonly string[],
  activeIn: (domain: string) => number,
): T | undefined {
  const least = Math.min(...candidates.map(({ worker }) => activeIn(domainOf(worker))))
  /** The position of the first key that the Worker has. */
  const cacheRank = ({ worker }: T): number => {
    const caches = worker.status?.caches
    if (!caches || activeIn(domainOf(worker)) - least > affinityBound) return cacheKeys.length
    const rank = cacheKeys.findIndex(key => caches.includes(key))
    return rank === -1 ? cacheKeys.length : rank
  }
  let best: T | undefined
  let bestScore: readonly number[] = []
  for (const candidate of candidates) {
    const score = [cacheRank(candidate), activeIn(domainOf(candidate.worker)), -candidate.active]
    const order = best ? compare(score, bestScore) : -1
    if (order < 0 || (order === 0 && best && candidate.worker.metadata.name < best.worker.metadata.name)) {
      best = candidate
      bestScore = score
    }
  }
  return best
}

/** Workers without the label form one domain. */
export function domainOf({ metadata }: Worker): string {
  return metadata.labels?.[failureDomainLabel] ?? ''
}

/**
 * Draws at most {@link sampleSize} distinct elements of `all` with `random` (0 ≤ x < 1). The best of a few random candidates is nearly as good as
 * the best of all, at a cost that does not grow with the pool (M. Mitzenmacher, "The Power of Two Choices in Randomized Load Balancing", 1996).
 */
export function sample<T>(all: readonly T[], random: () => number): readonly T[] {
  if (all.length <= sampleSize) return all
  const picked = new Set<number>()
  while (picked.size < sampleSize) picked.add(Math.floor(random() * all.length))
  return [...picked].map(index => all[index]!)
}

function compare(a: readonly number[], b: readonly number[]): number {
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return a[i]! - b[i]!
  return 0
}
