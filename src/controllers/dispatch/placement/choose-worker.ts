import type { Worker } from '../../../api/index.ts'

/** A Worker with a free slot. */
export type Candidate = {
  readonly worker: Worker
  /** Runs it works on, with those just given to it. */
  active: number
  /** Slots left. */
  free: number
}

/** Label of Workers that says what fails together. */
export const failureDomainLabel = 'topology.kubernetes.io/zone'

/** A Worker that holds what the Run needs wins while its failure domain has at most so many Runs more than the emptiest. */
export const affinityBound = 2

/** So many of a large pool are looked at. */
export const sampleSize = 32

/**
 * The best of the candidates, all of which would do: first one that holds the dependencies already, within
 * {@link affinityBound}; then one of the failure domain with the fewest Runs; then the fullest, so that idle workers can go.
 */
export function chooseWorker<T extends Candidate>(
  candidates: readonly T[],
  cacheKey: string | undefined,
  activeIn: (domain: string) => number,
): T | undefined {
  const least = Math.min(...candidates.map(({ worker }) => activeIn(domainOf(worker))))
  const holds = ({ worker }: T) =>
    cacheKey !== undefined && worker.status?.caches?.includes(cacheKey) === true && activeIn(domainOf(worker)) - least <= affinityBound
  let best: T | undefined
  let bestScore: readonly number[] = []
  for (const candidate of candidates) {
    const score = [holds(candidate) ? 0 : 1, activeIn(domainOf(candidate.worker)), -candidate.active]
    const order = best ? compare(score, bestScore) : -1
    if (order < 0 || (order === 0 && best && candidate.worker.metadata.name < best.worker.metadata.name)) {
      best = candidate
      bestScore = score
    }
  }
  return best
}

/** Workers without the label are one domain together. */
export function domainOf({ metadata }: Worker): string {
  return metadata.labels?.[failureDomainLabel] ?? ''
}

/**
 * At most {@link sampleSize} of `all`, without one twice, chosen by `random` (0 ≤ x < 1). The best of a few random ones is
 * nearly as good as the best of all, at a cost that does not grow with the pool (M. Mitzenmacher, "The Power of Two Choices
 * in Randomized Load Balancing", 1996).
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
