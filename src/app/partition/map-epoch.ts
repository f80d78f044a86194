import { setTimeout as sleep } from 'node:timers/promises'
import { copyAnnotations, homeGenerationOf } from '../../controllers/replication/index.ts'
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

const checkEveryMs = 50
const retryEveryMs = 1_000

/** Until each Partition of home has a copy in this partition. */
export async function awaitMap(
  home: Client,
  local: Client,
  { signal, onError }: { readonly signal: AbortSignal; onError(error: unknown): void },
): Promise<void> {
  while (!signal.aborted) {
    let waitMs = checkEveryMs
    try {
      const [wanted, copies] = await Promise.all([home, local].map(client => client.resource(partitionResource).listAll({ signal })))
      const copied = new Map(copies?.items.map(({ metadata }) => [metadata.name, homeGenerationOf({ metadata })]))
      const isCopied = ({ metadata: { name, generation = 1, deletionTimestamp } }: PartitionObject) =>
        deletionTimestamp !== undefined || (copied.get(name) ?? 0) >= generation
      if (wanted?.items.every(each => isCopied(each as PartitionObject))) return
    } catch (error) {
      if (!signal.aborted) onError(error)
      waitMs = retryEveryMs
    }
    await sleep(waitMs, undefined, { signal }).catch(() => {})
  }
}
