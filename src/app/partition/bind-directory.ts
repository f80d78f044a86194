import { setTimeout as sleep } from 'node:timers/promises'
import { type PartitionObject, partitionResource } from '../../gateway/index.ts'
import { type Client, listWatch } from '../../kubernetes/client/index.ts'
import { isReason } from '../../kubernetes/object/index.ts'
import { AppStartError } from '../app-start-error.ts'
import { decideBinding, directoryAnnotation } from './decide-binding.ts'
import { type PartitionDirectory, writePartitionDirectory } from './identity.ts'
import { partitionFinalizer } from './record-removal.ts'

/** Where others reach the server of a partition. */
export type ServerAddress = { readonly server: string; readonly caCertificate: string }

type BindOptions = {
  readonly home: Client
  readonly dataDir: string
  /** Whether the user declares that the data directory that the Partition names is lost. */
  readonly replaces: boolean
  readonly signal: AbortSignal
}

const rewriteDelayMs = 1_000

/** Whether the data directory is not that of its Partition. Trying again does not help. */
export const isRejected = (error: unknown): error is AppStartError => error instanceof AppStartError

/**
 * Makes the data directory that of its Partition at home, by a write that only one of two can succeed with, and writes the address, if it is given. A
 * Partition that home does not have is created.
 * @returns the directory, as it is recorded on disk too.
 * @throws {AppStartError} Partition if another directory is that of the Partition; errors of the client.
 */
export async function bindDirectory(
  directory: PartitionDirectory,
  address: ServerAddress | undefined,
  { home, dataDir, replaces, signal }: BindOptions,
): Promise<PartitionDirectory> {
  const { name, number, id } = directory
  const partitions = home.resource(partitionResource)
  for (;;) {
    const known = await partitions.getOrUndefined(name, { signal })
    const decision = decideBinding(known, directory, replaces)
    if (decision.kind === 'reject') throw rejection(directory, dataDir, decision.server)
    const isAddressNew = address && (known?.spec.server !== address.server || known.spec.caCertificate !== address.caCertificate)
    const annotations = { [directoryAnnotation]: id }
    const { finalizers: others = [], deletionTimestamp } = known?.metadata ?? {}
    const finalizers = others.includes(partitionFinalizer) || deletionTimestamp ? others : [...others, partitionFinalizer]
    const isUnguarded = finalizers !== others
    try {
      if (!known)
        await partitions.create({ metadata: { name, annotations, finalizers }, spec: { number, roles: [], ...address } }, { signal })
      else if (decision.kind === 'bind' || isAddressNew || isUnguarded) {
        const { resourceVersion } = known.metadata
        const change = { metadata: { resourceVersion, annotations, finalizers }, ...(isAddressNew && { spec: address }) } as object
        await partitions.patch(name, change, { type: 'merge', signal })
      }
    } catch (error) {
      if (known ? isReason(error, 'Conflict', 'NotFound') : isReason(error, 'AlreadyExists')) continue
      throw error
    }
    const isFirst = decision.kind === 'bind' && decision.isFirst
    if (!replaces && directory.isBound && directory.keepClaimsUpTo !== undefined && (decision.kind === 'bound' || isFirst)) return directory
    const now = async () => Number((await partitions.list({ limit: 1, signal })).metadata.resourceVersion)
    const keepClaimsUpTo = isFirst && directory.keepClaimsUpTo === 0 ? 0 : await now()
    const bound = { ...directory, isBound: true, keepClaimsUpTo }
    writePartitionDirectory(dataDir, bound)
    return bound
  }
}

/** Whether the Partition at home names this data directory now. */
export async function isBound(home: Client, { name, id }: PartitionDirectory, signal: AbortSignal): Promise<boolean> {
  const partition = await home.resource(partitionResource).getOrUndefined(name, { signal })
  return partition?.metadata.annotations?.[directoryAnnotation] === id
}

/**
 * Writes the address again when the Partition gets another one, such as by a server of an earlier version with another data directory. Until `signal` is
 * aborted, or the directory is no longer that of the Partition (`onRejected`).
 */
export async function followBinding(
  directory: PartitionDirectory,
  address: ServerAddress,
  options: BindOptions & {
    onRejected(error: AppStartError): void
    /** The Partition is being deleted. Called again with each change. */
    onDeleted(): void
    /** It is gone, and this server was not asked: its objects were given up. */
    onRemoved(): void
    onMoved(server: string | undefined): void
    onError(error: unknown): void
  },
): Promise<void> {
  const { home, signal, onRejected, onDeleted, onRemoved, onMoved, onError } = options
  const check = async ({ metadata, spec: { server } }: PartitionObject) => {
    if (metadata.deletionTimestamp) onDeleted()
    try {
      if (server !== undefined && server !== address.server) {
        onMoved(server)
        // Two servers on copies of one directory would write as fast as they can.
        await sleep(rewriteDelayMs, undefined, { signal })
      }
      await bindDirectory(directory, address, { ...options, replaces: false })
    } catch (error) {
      if (isRejected(error)) onRejected(error)
      else if (!signal.aborted) onError(error)
    }
  }
  await listWatch(home, partitionResource, {
    ...{ signal, fieldSelector: `metadata.name=${directory.name}`, onError },
    onReplace: ([partition]) => void (partition && check(partition)),
    onEvent: ({ type, object }) => {
      if (type === 'DELETED') onRemoved()
      else if (type !== 'BOOKMARK') void check(object)
    },
  })
}

function rejection({ name }: PartitionDirectory, dataDir: string, server: string | undefined): AppStartError {
  const where = server === undefined ? 'another data directory' : `the data directory of the server at ${server}`
  return new AppStartError(
    'Partition',
    `the objects of partition ${JSON.stringify(name)} are in ${where}, and ${dataDir} is another one`,
    'choose that directory with --data, or restore a backup of it; only if it is lost for good, start with --replace-data',
  )
}
