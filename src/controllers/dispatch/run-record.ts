import { cacheKeys, type Run, type RunPhase, type Subject, subjectOf } from '../../api/index.ts'
import { objectKey } from '../../kubernetes/object/index.ts'
import { type ObjectVersion, versionOf } from './object-version.ts'
import type { ExitFailure } from './pool/index.ts'
import { type Requested, type RunRequest, requestOf } from './queue/index.ts'

/** What is kept of a Run that has not ended. The Run itself may be large, as it has the files of inline sources; the informer packs it. */
export type RunRecord = {
  readonly key: string
  readonly subject: Subject
  readonly type: Run['spec']['type']
  readonly createdMs: number
  /** Keys of caches, the most valuable first. */
  readonly cacheKeys: readonly string[]
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
  // What was decided for it:
  /** The Worker whose load includes it: the one that it is assigned to, or that its assignment is being written for. */
  loadedOn: string | undefined
  /** The server has confirmed that its subject does not exist. */
  isSubjectMissing: boolean
  /** The lost worker that it was assigned to; it ends as Lost. */
  lostWith: string | undefined
  /** Its worker has crashed while it was the only Run there. */
  crash: ExitFailure['crash']
  /** Wall time of the last report of its position; -Infinity before the first. */
  reportedAtMs: number
}

export function makeRunRecord(run: Run): RunRecord {
  return {
    key: objectKey(run),
    subject: subjectOf(run),
    type: run.spec.type,
    createdMs: Date.parse(run.metadata.creationTimestamp),
    cacheKeys: cacheKeys(run.spec),
    requested: requestedOf(run),
    request: requestOf(run),
    ...observedFields(run),
    loadedOn: undefined,
    isSubjectMissing: false,
    lostWith: undefined,
    crash: undefined,
    reportedAtMs: Number.NEGATIVE_INFINITY,
  }
}

export function updateRunRecord(record: RunRecord, run: Run): void {
  // The request of an assigned Run does not change any more.
  if (run.spec.workerName === undefined) record.request = requestOf(run)
  Object.assign(record, observedFields(run))
}

function requestedOf({ spec: { pool, stack, policy } }: Run): Requested {
  const { engine, placement, resources, isolation } = stack
  return {
    pool,
    ...(policy && { policy }),
    stack: { engine, ...(placement && { placement }), ...(resources && { resources }), ...(isolation && { isolation }) },
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
  }
}
