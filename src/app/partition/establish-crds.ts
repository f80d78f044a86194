import { apiGroup } from '../../api/index.ts'
import { establishedPrefix, notEstablishedIn } from '../../controllers/replication/index.ts'
import { partitionResource } from '../../gateway/index.ts'
import { type Client, crdResource, listWatch } from '../../kubernetes/client/index.ts'
import type { KubeObject } from '../../kubernetes/object/index.ts'

/** At home, on a definition: when it was last asked whether it is Established, because the partitions have changed. */
const askedAnnotation = `${establishedPrefix}asked-at`

/**
 * Decides at home when a CustomResourceDefinition is Established: when every partition has reported that its copy is. Oarlock's own are Established
 * immediately: home could not start without them while a partition is down.
 */
export class EstablishCrds {
  readonly #home: string
  readonly #names = new Set<string>()
  #isRead = false

  constructor(home: string) {
    this.#home = home
  }

  /** For `establishCrd` of the server. */
  readonly decide = (crd: KubeObject): string | undefined => {
    if (crd.metadata.name.endsWith(`.${apiGroup}`)) return undefined
    if (!this.#isRead) return 'the partitions are not read yet'
    return notEstablishedIn(crd, [...this.#names])
  }

  /** Follows the partitions until `signal` aborts; a change asks again about what is not Established. */
  follow(client: Client, { signal, onError }: { readonly signal: AbortSignal; onError(error: unknown): void }): void {
    const changed = () => void this.#askAgain(client, signal).catch(error => signal.aborted || onError(error))
    void listWatch(client, partitionResource, {
      signal,
      onReplace: items => {
        this.#names.clear()
        for (const { metadata } of items) this.#add(metadata.name)
        this.#isRead = true
        changed()
      },
      onEvent: ({ type, object }) => {
        if (type === 'ADDED') this.#add(object.metadata.name)
        if (type === 'DELETED' && this.#names.delete(object.metadata.name)) changed()
      },
      onError,
    }).catch(error => signal.aborted || onError(error))
  }

  #add(name: string): void {
    if (name !== this.#home) this.#names.add(name)
  }

  async #askAgain(client: Client, signal: AbortSignal): Promise<void> {
    const crds = client.resource(crdResource)
    const { items } = await crds.listAll({ signal })
    for (const { metadata, status } of items) {
      const established = status?.conditions?.find(({ type }) => type === 'Established')
      if (established?.reason !== 'NotInAllPartitions') continue
      await crds.patch(metadata.name, { metadata: { annotations: { [askedAnnotation]: new Date().toISOString() } } } as object, {
        ...{ type: 'merge', signal },
      })
    }
  }
}
