import { copyAnnotations } from '../../controllers/replication/index.ts'
import { type PartitionObject, partitionResource } from '../../gateway/index.ts'
import { type Client, listWatch } from '../../kubernetes/client/index.ts'

/** How new the Partitions are of which this partition has copies: a gateway that it sends away must know at least these. */
export class MapEpoch {
  #value = 0

  /** The newest resource version at home of a copy; 0 without one. */
  get value(): number {
    return this.#value
  }

  /** Follows the copies in this partition until `signal` is aborted. */
  async follow(local: Client, { signal, onError }: { readonly signal: AbortSignal; onError(error: unknown): void }): Promise<void> {
    const raise = ({ metadata: { annotations } }: PartitionObject) => {
      this.#value = Math.max(this.#value, Number(annotations?.[copyAnnotations.homeVersion] ?? 0))
    }
    await listWatch(local, partitionResource, {
      signal,
      onReplace: partitions => partitions.forEach(raise),
      onEvent: ({ type, object }) => type !== 'BOOKMARK' && raise(object),
      onError,
    })
  }
}
