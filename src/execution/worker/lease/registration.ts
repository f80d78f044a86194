import { labels, systemNamespace, type Worker, type WorkerStatus, workerResource } from '../../../api/index.ts'
import { type Client, leaseResource } from '../../../kubernetes/client/index.ts'
import { isReason, rfc3339Micro } from '../../../kubernetes/object/index.ts'

/** Why a worker could not register. */
export class RegistrationError extends Error {
  override readonly name = 'RegisterError'
  /** The API answered, and does not let this worker in: trying again with the same credential is of no use. */
  readonly isRefused: boolean

  constructor(message: string, options: { cause: unknown }) {
    super(message, options)
    this.isRefused = isReason(options.cause, 'Unauthorized', 'Forbidden')
  }
}

/** What a worker registers as. */
export type RegistrationRequest = Pick<Worker['spec'], 'pool' | 'slots' | 'lifecycle'> & {
  readonly name: string
  /** Of the Worker, besides the one that names its pool. */
  readonly labels: Readonly<Record<string, string>>
  readonly leaseDurationMs: number
}

/** The objects that a registration made: renewals and the end are theirs, and no later ones' of the same name. */
export type Registration = { readonly leaseUid: string; readonly workerUid: string }

/**
 * Makes the Lease and the Worker. It takes no Run before it has said that it is Ready.
 * @throws {RegistrationError} when the name is taken or the API refuses.
 */
export async function register(client: Client, entry: RegistrationRequest): Promise<Registration> {
  const { name, pool, slots, lifecycle, leaseDurationMs } = entry
  try {
    const [lease, worker] = await Promise.all([
      client.resource(leaseResource).create({
        metadata: { name, namespace: systemNamespace, labels: { [labels.pool]: pool } },
        spec: {
          holderIdentity: name,
          leaseDurationSeconds: Math.ceil(leaseDurationMs / 1_000),
          acquireTime: rfc3339Micro(Date.now()),
          renewTime: rfc3339Micro(Date.now()),
        },
      }),
      client.resource(workerResource).create({
        metadata: { name, labels: { ...entry.labels, [labels.pool]: pool } },
        spec: { pool, slots, lifecycle },
      }),
    ])
    return { leaseUid: lease.metadata.uid, workerUid: worker.metadata.uid }
  } catch (error) {
    const why = isReason(error, 'AlreadyExists')
      ? `worker name ${JSON.stringify(name)} is taken; choose another with --name, or wait until its Lease in ${systemNamespace} is removed`
      : `worker ${JSON.stringify(name)} could not register at ${client.server}: ${(error as Error).message}`
    throw new RegistrationError(why, { cause: error })
  }
}

/** What a worker says of itself; null takes back what it said before. */
export type WorkerStatusPatch = { readonly [Field in keyof Omit<WorkerStatus, 'engines'>]?: Readonly<WorkerStatus[Field]> | null } & {
  readonly engines?: Readonly<Record<string, string | null>> | null
}

/** Sets the Worker's status. */
export async function patchWorkerStatus(client: Client, name: string, status: WorkerStatusPatch, signal?: AbortSignal): Promise<void> {
  await client.resource(workerResource).patchStatus(name, { status }, { signal })
}

/** Takes away Worker and Lease, in this order: no Run is given to a worker without a Lease. What is gone already is no error. */
export async function deregister(
  client: Client,
  name: string,
  { leaseUid, workerUid }: Registration,
  { signal, onError }: { signal?: AbortSignal; onError(error: unknown): void },
): Promise<void> {
  const gone = (error: unknown): void => {
    if (!isReason(error, 'NotFound', 'Conflict')) onError(error)
  }
  await client
    .resource(workerResource)
    .delete(name, { preconditions: { uid: workerUid }, signal })
    .catch(gone)
  await client
    .resource(leaseResource)
    .delete(name, { namespace: systemNamespace, preconditions: { uid: leaseUid }, signal })
    .catch(gone)
}
