import {
  cacheKey,
  dependencyCacheKey,
  type PendingOperations,
  type Run,
  type RunPhase,
  type RunSpec,
  type Subject,
  subjectOf,
  trustDomainName,
} from '../../api/index.ts'
import { objectKey } from '../../kubernetes/object/index.ts'
import { type ObjectVersion, versionOf } from './object-version.ts'
import { type Requested, type RunRequest, requestOf } from './queue/index.ts'

/** What is kept of a Run that has not ended. The Run itself may be large, as it has the files of inline sources; the informer packs it. */
export type RunRecord = {
  readonly key: string
  readonly subject: Subject
  readonly type: Run['spec']['type']
  readonly createdMs: number
  /** The key of its source in the caches of Workers. */
  readonly sourceKey: string | undefined
  /** Of the dependencies that it is expected to need. */
  readonly dependencyDigest: string | undefined
  /** What the requirements in `request` follow from, under the policies of its Tenant and WorkerPool. */
  readonly requested: Requested
  object: ObjectVersion
  request: RunRequest
  /** `spec.workerName` */
  worker: string | undefined
  assignedAtMs: number | undefined
  isCanceled: boolean
  isDeleted: boolean
  finalizers: readonly string[]
  phase: RunPhase
  reason: string | undefined
  message: string | undefined
  queuePosition: number | undefined
  /** What its worker has begun, as it reported last. */
  pendingOperations: PendingOperations | undefined
  // What was decided for it:
  /** The Worker whose load includes it: the one that it is assigned to, or that its assignment is being written for. */
  loadedOn: string | undefined
  /** The server has confirmed that its subject does not exist. */
  isSubjectMissing: boolean
  /** The lost worker that it was assigned to; it ends as Lost. */
  lostWith: string | undefined
  /** Why its worker has ended, as far as it is known; its reason if it is lost. */
  lossCause: { readonly reason: string; readonly message: string } | undefined
  /** Wall time of the last report of its position; -Infinity before the first. */
  reportedAtMs: number
}

export function makeRunRecord(run: Run): RunRecord {
  return {
    key: objectKey(run),
    subject: subjectOf(run),
    type: run.spec.type,
    createdMs: Date.parse(run.metadata.creationTimestamp),
    sourceKey: cacheKey(run.spec.stack),
    dependencyDigest: run.spec.dependencyDigest,
    requested: requestedOf(run),
    request: requestOf(run),
    ...observedFields(run),
    loadedOn: undefined,
    isSubjectMissing: false,
    lostWith: undefined,
    lossCause: undefined,
    reportedAtMs: Number.NEGATIVE_INFINITY,
  }
}

/**
 * The keys that the Run prefers Workers by, the most valuable first: dependencies that are installed for its trust domain, then its source.
 * `tenant` is that of its namespace.
 */
export function cacheKeysOf({ sourceKey, dependencyDigest, request }: RunRecord, tenant: RunSpec['tenant']): string[] {
  const { namespace, requirements } = request
  const domain = trustDomainName({ namespace, tenant, isSandboxed: requirements.isolation === 'Sandbox' })
  return [
    ...(dependencyDigest === undefined ? [] : [dependencyCacheKey(domain, dependencyDigest)]),
    ...(sourceKey === undefined ? [] : [sourceKey]),
  ]
}

export function updateRunRecord(record: RunRecord, run: Run): void {
  // The request of an assigned Run does not change any more.
  if (run.spec.workerName === undefined) record.request = requestOf(run)
  Object.assign(record, observedFields(run))
}

function requestedOf({ spec: { pool, stack, policy } }: Run): Requested {
  const { engine, placement, resources, isolation, serviceAccountName } = stack
  return {
    pool,
    ...(policy && { policy }),
    stack: {
      engine,
      ...(placement && { placement }),
      ...(resources && { resources }),
      ...(isolation && { isolation }),
      ...(serviceAccountName !== undefined && { serviceAccountName }),
    },
  }
}

function observedFields(run: Run) {
  const { metadata, spec, status } = run
  return {
    object: versionOf('Run', run),
    worker: spec.workerName,
    assignedAtMs: spec.assignedAt === undefined ? undefined : Date.parse(spec.assignedAt),
    isCanceled: spec.cancel === true,
    isDeleted: metadata.deletionTimestamp !== undefined,
    finalizers: metadata.finalizers ?? [],
    phase: status?.phase ?? 'Queued',
    reason: status?.reason,
    message: status?.message,
    queuePosition: status?.queuePosition,
    pendingOperations: status?.pendingOperations,
  }
}
