import { labels, type Worker, workerBucketCount } from '../../../api/index.ts'
import { textHash } from '../../../kubernetes/util/index.ts'

/** How many tenant partitions see each worker, by default. With one, a partition whose own workers are all busy cannot use the others. */
export const defaultViewsPerWorker = 2

/** The workers that the dispatcher of a tenant partition sees, by their buckets. */
export type WorkerView = {
  /** It ranks first for them: their workers are used first. */
  readonly preferred: ReadonlySet<string>
  /** It ranks lower for them: their workers are used when none of the preferred ones fits. */
  readonly spare: ReadonlySet<string>
}

/**
 * Divides the workers among tenant partitions by rendezvous hashing with bounded load: every partition decides the same from the same names, a bucket is in
 * the views of `viewsPerWorker` partitions, each prefers the same number of buckets (rounded up), and when a partition is added most buckets
 * stay where they are. Undefined: it is the only partition, and sees all.
 * @throws {RangeError} if `own` is none of the partitions.
 */
export function decideWorkerView(
  own: string,
  partitions: readonly string[],
  viewsPerWorker = defaultViewsPerWorker,
): WorkerView | undefined {
  if (!partitions.includes(own))
    throw new RangeError(`partition ${JSON.stringify(own)} has no role Tenants; those that have are ${partitions.join(', ') || 'none'}`)
  if (partitions.length === 1) return undefined
  const preferred = new Set<string>()
  const spare = new Set<string>()
  const taken = Array.from({ length: workerBucketCount }, () => new Set<string>())
  for (let rank = 0; rank < Math.min(viewsPerWorker, partitions.length); rank++) {
    const room = new Map(partitions.map(name => [name, Math.ceil(workerBucketCount / partitions.length)]))
    for (const [bucket, names] of taken.entries()) {
      const ranked = partitions
        .filter(name => !names.has(name))
        .map(name => ({ name, score: textHash(`${name}/${bucket}`) }))
        .sort((a, b) => b.score - a.score || (a.name < b.name ? -1 : 1))
      const chosen = (ranked.find(({ name }) => room.get(name)! > 0) ?? ranked[0]!).name
      names.add(chosen)
      room.set(chosen, room.get(chosen)! - 1)
      if (chosen === own) (rank === 0 ? preferred : spare).add(String(bucket))
    }
  }
  return { preferred, spare }
}

/**
 * The label selector of a view; undefined is that of all workers. A view without buckets selects nothing. It always requires the label, which only Workers and
 * their Leases have: a gateway then needs no answer of a partition that has other Leases only.
 */
export function selectorOfView(view: WorkerView | undefined): string {
  if (!view) return labels.workerBucket
  const buckets = [...view.preferred, ...view.spare].sort((a, b) => Number(a) - Number(b))
  return `${labels.workerBucket} in (${buckets.join(',') || 'none'})`
}

/** Whether the worker is one that this dispatcher uses first. */
export const isPreferredIn = (view: WorkerView | undefined, { metadata }: Pick<Worker, 'metadata'>): boolean =>
  !view || view.preferred.has(metadata.labels?.[labels.workerBucket] ?? '')
