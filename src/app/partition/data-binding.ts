import { setTimeout as sleep } from 'node:timers/promises'
import { partitionResource } from '../../gateway/index.ts'
import type { Client } from '../../kubernetes/client/index.ts'
import { isReason, StatusError } from '../../kubernetes/object/index.ts'
import { AppStartError } from '../app-start-error.ts'
import type { PartitionIdentity } from './identity.ts'

/** On a Partition: the id of the data directory that it is bound to. */
export const dataDirectoryAnnotation = 'oarlock.dev/data-directory'

const firstStartWaitMs = 10_000
const retryMs = 500

export type DataBindingOptions = {
  /** Of home. */
  readonly client: Client
  readonly identity: PartitionIdentity
  /** Of the data directory, see `identity.ts`. */
  readonly dataId: string
  /** Binds the Partition to this directory although it is bound to another one, whose data is lost. */
  readonly replace: boolean
}

/**
 * Which data directory has the objects of a partition (invariant 12): its Partition is bound to the first one that serves it. A server with another one,
 * such as an empty directory that was named by mistake, would answer that the objects do not exist, and remove the claims of their names.
 */
export class DataBinding {
  readonly #options: DataBindingOptions
  #replace: boolean

  constructor(options: DataBindingOptions) {
    this.#options = options
    this.#replace = options.replace
  }

  /**
   * Binds the Partition to a directory that has no objects yet, before it is served.
   * @throws {AppStartError} if it is bound to another one, or home does not answer within ten seconds.
   */
  async bindEmpty(): Promise<void> {
    const { client, identity } = this.#options
    const deadlineMs = performance.now() + firstStartWaitMs
    for (;;) {
      try {
        return await this.#write({}, true)
      } catch (error) {
        const isTemporary = !(error instanceof StatusError) || error.code === 429 || error.code >= 500
        if (error instanceof AppStartError || !isTemporary) throw error
        if (performance.now() > deadlineMs)
          throw new AppStartError(
            'Partition',
            `home ${client.server} does not answer, and partition ${JSON.stringify(identity.name)} cannot start with an empty data directory without it: ${(error as Error).message}`,
            'start home first, or use the data directory that this partition had before',
            error,
          )
        await sleep(retryMs)
      }
    }
  }

  /**
   * Writes the address into the Partition, and the binding if it has none. Writes nothing if both are there already.
   * @throws {AppStartError} if it is bound to another directory.
   */
  async reportAddress(address: { readonly server: string; readonly caCertificate: string }): Promise<void> {
    await this.#write(address, false)
  }

  /** Whether the Partition is bound to this directory now. */
  async isOwn(): Promise<boolean> {
    const { client, identity, dataId } = this.#options
    const partition = await client.resource(partitionResource).getOrUndefined(identity.name)
    return partition?.metadata.annotations?.[dataDirectoryAnnotation] === dataId
  }

  async #write(spec: { readonly server?: string; readonly caCertificate?: string }, isEmpty: boolean): Promise<void> {
    const { client, identity, dataId } = this.#options
    const { name, number } = identity
    const partitions = client.resource(partitionResource)
    for (;;) {
      const known = await partitions.getOrUndefined(name)
      const annotations = { [dataDirectoryAnnotation]: dataId }
      try {
        if (!known) {
          await partitions.create({ metadata: { name, annotations }, spec: { number, roles: [], ...spec } })
          return
        }
        const bound = known.metadata.annotations?.[dataDirectoryAnnotation]
        // A server of a version without bindings has objects, but no binding.
        const isFree = bound === undefined && !(isEmpty && known.spec.server !== undefined)
        if (bound !== dataId && !isFree && !this.#replace) throw boundElsewhere(name, known.spec.server)
        const { server = known.spec.server, caCertificate = known.spec.caCertificate } = spec
        if (bound !== dataId || known.spec.server !== server || known.spec.caCertificate !== caCertificate) {
          const { resourceVersion } = known.metadata
          await partitions.patch(name, { metadata: { annotations }, spec } as object, { type: 'merge', resourceVersion })
        }
        // Once: if another server replaces this one later, it stays so.
        this.#replace = false
        return
      } catch (error) {
        // Changed meanwhile: looked at again.
        if (!isReason(error, 'Conflict', 'AlreadyExists')) throw error
      }
    }
  }
}

function boundElsewhere(name: string, server: string | undefined): AppStartError {
  const where = server === undefined ? '' : `: its server was last at ${server}`
  return new AppStartError(
    'Partition',
    `partition ${JSON.stringify(name)} has another data directory${where}`,
    'start it with that directory, or one restored from its backup; if its data is lost for good, --replace-data starts it without any',
  )
}
