import { setTimeout as delay } from 'node:timers/promises'
import { annotations, labels, systemNamespace, type Worker, type WorkerStatus, workerResource } from '../../../api/index.ts'
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
  /** The uid of the Worker with which a controller requested the start of this process. Undefined: the worker creates its own. */
  readonly workerUid?: string | undefined
  /** The UID of the Pod that this process runs in, if a controller created it. Undefined: it is no such Pod. */
  readonly podUid?: string | undefined
  /**
   * The status that a worker Pod registers with by its Lease alone, which saves two writes if its Run is quick. Undefined: it takes over its Worker, and
   * reports its status afterwards.
   */
  readonly statusInLease?: WorkerStatusPatch | undefined
}

/** The objects that a registration created. Renewal and deletion apply to these, not to later objects of the same name. */
export type Registration = {
  readonly leaseUid: string
  readonly workerUid: string
  /** Resource version of the Worker, which names its partition. */
  readonly workerVersion?: string | undefined
  /** The Worker owns the Lease: the garbage collector deletes it with the Worker. */
  readonly isLeaseOwned?: boolean
}

/**
 * Creates the Lease, and creates the Worker or takes over the one that requested this process. No Run is assigned before the worker has reported
 * Ready, or has registered with a Lease that has its status. Of two processes that were started for one request only the first gets the Lease.
 * @throws {RegistrationError} if the name is taken, the request was withdrawn, or the API server rejects the request.
 */
export async function register(client: Client, request: RegistrationRequest): Promise<Registration> {
  const { name, pool, leaseDurationMs, workerUid, podUid } = request
  const newLease = {
    metadata: { name, namespace: systemNamespace, labels: { [labels.pool]: pool }, ...ownerOfLease(request), ...statusOfLease(request) },
    spec: {
      // Of a Pod its UID: then no later Pod of this name can renew the Lease.
      holderIdentity: podUid ?? name,
      leaseDurationSeconds: Math.ceil(leaseDurationMs / 1_000),
      acquireTime: rfc3339Micro(Date.now()),
      renewTime: rfc3339Micro(Date.now()),
    },
  }
  const registerWorker = async () =>
    workerUid === undefined
      ? await createWorker(client, request)
      : request.statusInLease
        ? await getWorker(client, name, workerUid)
        : await takeOverWorker(client, request, workerUid)
  const [lease, worker] = await Promise.allSettled([
    untilAllowed(() => client.resource(leaseResource).create(newLease)),
    untilAllowed(registerWorker),
  ])
  if (lease.status === 'fulfilled' && worker.status === 'fulfilled')
    return {
      leaseUid: lease.value.metadata.uid,
      workerUid: worker.value.metadata.uid,
      workerVersion: worker.value.metadata.resourceVersion,
      isLeaseOwned: podUid !== undefined,
    }
  // Without its Worker the Lease would keep others from using the name until it expires.
  if (lease.status === 'fulfilled') await deleteLease(client, name, lease.value.metadata.uid).catch(() => {})
  const error = [lease, worker].find(each => each.status === 'rejected')?.reason
  throw new RegistrationError(registrationMessage(client, request, error), { cause: error })
}

/** Another partition than home gets the record of a new credential a moment after the worker has joined. */
async function untilAllowed<T>(attempt: () => Promise<T>): Promise<T> {
  const deadlineMs = performance.now() + allowedWithinMs
  for (;;) {
    try {
      return await attempt()
    } catch (error) {
      if (!isReason(error, 'Forbidden') || performance.now() > deadlineMs) throw error
      await delay(retryMs)
    }
  }
}

const allowedWithinMs = 2_000
const retryMs = 200

/** Where Pods run there is a garbage collector, which saves a write. */
function ownerOfLease({ name, workerUid, podUid }: RegistrationRequest) {
  if (workerUid === undefined || podUid === undefined) return {}
  const { apiVersion, kind } = workerResource
  return { ownerReferences: [{ apiVersion, kind, name, uid: workerUid }] }
}

function statusOfLease({ statusInLease }: RegistrationRequest) {
  return statusInLease ? { annotations: { [annotations.workerStatus]: JSON.stringify(statusInLease) } } : {}
}

/** A Worker that was deleted, or requested again, is not this process. */
async function getWorker(client: Client, name: string, uid: string): Promise<Worker> {
  const worker = await client.resource(workerResource).get(name)
  if (worker.metadata.uid !== uid) throw new Error(`its uid is ${worker.metadata.uid} and not ${uid}`)
  return worker
}

async function createWorker(client: Client, { name, pool, slots, lifecycle, labels: own }: RegistrationRequest): Promise<Worker> {
  return await client.resource(workerResource).create({
    metadata: { name, labels: { ...own, [labels.pool]: pool } },
    spec: { pool, slots, lifecycle },
  })
}

/** The uid is a precondition: a Worker that was deleted and requested again is not this process. Nothing is written if nothing differs. */
async function takeOverWorker(client: Client, request: RegistrationRequest, uid: string): Promise<Worker> {
  const { name, slots, lifecycle, labels, podUid } = request
  if (podUid !== undefined) return await recordPod(client, name, uid, podUid)
  return await client.resource(workerResource).patch(name, { metadata: { uid, labels }, spec: { slots, lifecycle } }, { type: 'merge' })
}

/** The controller has created the Worker of a Pod with all the rest, which the worker cannot change. */
export async function recordPod(client: Client, name: string, workerUid: string, podUid: string): Promise<Worker> {
  const patch = { metadata: { uid: workerUid }, spec: { pod: { uid: podUid } } }
  return await client.resource(workerResource).patch(name, patch as object, { type: 'merge' })
}

function registrationMessage(client: Client, { name, workerUid }: RegistrationRequest, error: unknown): string {
  const worker = `worker ${JSON.stringify(name)}`
  if (isReason(error, 'AlreadyExists'))
    return `${worker} already exists; choose another with --name, or wait until its Lease in ${systemNamespace} is deleted`
  if (workerUid !== undefined && isReason(error, 'NotFound')) return `the request to start ${worker} was withdrawn`
  return `failed to register ${worker} at ${client.server}: ${(error as Error).message}`
}

/** A partial status; null removes a field. */
export type WorkerStatusPatch = { readonly [Field in keyof Omit<WorkerStatus, 'engines'>]?: Readonly<WorkerStatus[Field]> | null } & {
  readonly engines?: Readonly<Record<string, string | null>> | null
}

/** Sets the Worker's status. */
export async function patchWorkerStatus(client: Client, name: string, status: WorkerStatusPatch, signal?: AbortSignal): Promise<void> {
  await client.resource(workerResource).patchStatus(name, { status }, { signal })
}

/**
 * Deletes the Lease, unless the Worker owns it, then the Worker, with which its credential ends. A Run that is assigned in between is lost with the Worker, as one
 * that is assigned just before; none is assigned to a worker that drains. An object that no longer exists is no error.
 * `keepsWorker`: a Run of the worker has not ended. A new worker cannot register with this name before that Run is Lost, and so cannot
 * execute it a second time. Or its host reports the exit code in the Worker.
 */
export async function deregister(
  client: Client,
  name: string,
  { leaseUid, workerUid, isLeaseOwned = false }: Registration,
  { signal, onError, keepsWorker = false }: { signal?: AbortSignal; onError(error: unknown): void; keepsWorker?: boolean },
): Promise<void> {
  const ignoreMissing = (error: unknown): void => {
    if (!isReason(error, 'NotFound', 'Conflict')) onError(error)
  }
  if (keepsWorker || !isLeaseOwned) await deleteLease(client, name, leaseUid, signal).catch(ignoreMissing)
  if (keepsWorker) return
  await client
    .resource(workerResource)
    .delete(name, { preconditions: { uid: workerUid }, signal })
    .catch(ignoreMissing)
}

async function deleteLease(client: Client, name: string, uid: string, signal?: AbortSignal): Promise<void> {
  await client.resource(leaseResource).delete(name, { namespace: systemNamespace, preconditions: { uid }, signal })
}
