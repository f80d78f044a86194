import { labels, systemNamespace, type Worker, type WorkerStatus, workerResource } from '../../../api/index.ts'
import { type Client, leaseResource } from '../../../kubernetes/client/index.ts'
import { isReason, rfc3339Micro } from '../../../kubernetes/object/index.ts'

/** The worker could not register. */
export class RegistrationError extends Error {
  override readonly name = 'RegistrationError'
  /** The API server denied access: a retry with the same credential would fail too. */
  readonly isRejected: boolean

  constructor(message: string, options: { cause: unknown }) {
    super(message, options)
    this.isRejected = isReason(options.cause, 'Unauthorized', 'Forbidden')
  }
}

/** What a worker registers with. */
export type RegistrationRequest = Pick<Worker['spec'], 'pool' | 'slots' | 'lifecycle'> & {
  readonly name: string
  /** Labels of the Worker object, in addition to the label of its pool. */
  readonly labels: Readonly<Record<string, string>>
  readonly leaseDurationMs: number
}

/** The objects that a registration created. Renewal and deletion apply to these, not to later objects of the same name. */
export type Registration = { readonly leaseUid: string; readonly workerUid: string }

/**
 * Creates the Lease and the Worker. No Run is assigned before the worker has reported Ready.
 * @throws {RegistrationError} if the name is taken or the API server rejects the request.
 */
export async function register(client: Client, request: RegistrationRequest): Promise<Registration> {
  const { name, pool, slots, lifecycle, leaseDurationMs } = request
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
        metadata: { name, labels: { ...request.labels, [labels.pool]: pool } },
        spec: { pool, slots, lifecycle },
      }),
    ])
    return { leaseUid: lease.metadata.uid, workerUid: worker.metadata.uid }
  } catch (error) {
    const message = isReason(error, 'AlreadyExists')
      ? `worker ${JSON.stringify(name)} already exists; choose another with --name, or wait until its Lease in ${systemNamespace} is deleted`
      : `failed to register worker ${JSON.stringify(name)} at ${client.server}: ${(error as Error).message}`
    throw new RegistrationError(message, { cause: error })
  }
}

/** A partial status; null removes a field. */
export type WorkerStatusPatch = { readonly [Field in keyof Omit<WorkerStatus, 'engines'>]?: Readonly<WorkerStatus[Field]> | null } & {
  readonly engines?: Readonly<Record<string, string | null>> | null
}

/** Sets the Worker's status. */
export async function patchWorkerStatus(client: Client, name: string, status: WorkerStatusPatch, signal?: AbortSignal): Promise<void> {
  await client.resource(workerResource).patchStatus(name, { status }, { signal })
}

/** Deletes the Worker, then its Lease: no Run is assigned to a worker without a Lease. An object that no longer exists is no error. */
export async function deregister(
  client: Client,
  name: string,
  { leaseUid, workerUid }: Registration,
  { signal, onError }: { signal?: AbortSignal; onError(error: unknown): void },
): Promise<void> {
  const ignoreMissing = (error: unknown): void => {
    if (!isReason(error, 'NotFound', 'Conflict')) onError(error)
  }
  await client
    .resource(workerResource)
    .delete(name, { preconditions: { uid: workerUid }, signal })
    .catch(ignoreMissing)
  await client
    .resource(leaseResource)
    .delete(name, { namespace: systemNamespace, preconditions: { uid: leaseUid }, signal })
    .catch(ignoreMissing)
}
