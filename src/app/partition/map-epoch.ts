import { copyAnnotations } from '../../api/index.ts'
import { type PartitionObject, partitionResource } from '../../gateway/index.ts'
import { type Client, listWatch } from '../../kubernetes/client/index.ts'
import { isReason } from '../../kubernetes/object/index.ts'

/** How new the Partitions are that this partition knows, at home those themselves and elsewhere their copies: a gateway must know at least these. */
export class MapEpoch {
  #value: number | undefined

  /** Their newest resource version at home; 0 without one, undefined before they are read. */
  get value(): number | undefined {
    return this.#value
  }

  /** Follows the copies in this partition until `signal` is aborted. */
  async follow(
    local: Client,
    {
      isHome = false,
      signal,
      onRaised,
      onError,
    }: { readonly isHome?: boolean; readonly signal: AbortSignal; onRaised(): void; onError(error: unknown): void },
  ): Promise<void> {
    const raise = (partitions: readonly PartitionObject[]) => {
      const versions = partitions.map(({ metadata: { annotations, resourceVersion } }) =>
        Number(isHome ? resourceVersion : (annotations?.[copyAnnotations.homeVersion] ?? 0)),
      )
      const before = this.#value
      this.#value = Math.max(before ?? 0, ...versions)
      if (this.#value !== before) onRaised()
    }
    await listWatch(local, partitionResource, {
      signal,
      onReplace: raise,
      onEvent: ({ type, object }) => type !== 'BOOKMARK' && raise([object]),
      onError: error => {
        // Their kind is copied first: a server without it has never known any.
        if (isReason(error, 'NotFound')) raise([])
        onError(error)
      },
    })
  }
}
