import { copyAnnotations } from '../../controllers/replication/index.ts'
import { type PartitionObject, partitionResource } from '../../gateway/index.ts'
import { type Client, listWatch } from '../../kubernetes/client/index.ts'

/** How new the Partitions are that this partition knows, at home those themselves and elsewhere their copies: a gateway must know at least these. */
export class MapEpoch {
  #value = 0

  /** Their newest resource version at home; 0 without one. */
  get value(): number {
    return this.#value
  }

  /** Follows the copies in this partition until `signal` is aborted. */
  async follow(
    local: Client,
    { isHome = false, signal, onError }: { readonly isHome?: boolean; readonly signal: AbortSignal; onError(error: unknown): void },
  ): Promise<void> {
    const raise = ({ metadata: { annotations, resourceVersion } }: PartitionObject) => {
      this.#value = Math.max(this.#value, Number(isHome ? resourceVersion : (annotations?.[copyAnnotations.homeVersion] ?? 0)))
    }
    await listWatch(local, partitionResource, {
      signal,
      onReplace: partitions => partitions.forEach(raise),
      onEvent: ({ type, object }) => type !== 'BOOKMARK' && raise(object),
      onError,
    })
  }
}
