import { annotations, isEnded, type Run, runResource, type Stack } from '../../api/index.ts'
import type { SecretBody } from '../../kubernetes/client/index.ts'
import { type KubeObject, rfc3339 } from '../../kubernetes/object/index.ts'
import { epochAfterRestore, maxEpoch } from '../../stores/state/index.ts'
import { joinTokenType, workerCredentialType } from '../join/join-secrets.ts'
import { stacksTable } from './missing-states.ts'

export type RestoreFacts = {
  readonly nowMs: number
  /** When the backup was created; undefined if that is not known. */
  readonly backupAt: string | undefined
  /** The last epoch that the stores exclude, by UID of the Stack. */
  readonly lastEpochs: ReadonlyMap<string, number>
}

const runsTable = `${runResource.plural}.${runResource.group}`

/**
 * What becomes of an object when a backup is restored; undefined: it is not. A restore goes back in time, so nothing that was valid then is still valid
 * for being in the backup:
 * - Stacks wait for a review. Their next Run has a number above every one that may have been used since. Approvals, plans to approve, and requested
 *   Runs are void.
 * - Runs that no worker had are dropped; those that a worker had are Lost: no worker can act for them any more.
 * - Join tokens and credentials of workers are dropped, which revokes them.
 */
export function restoredObject(resource: string, object: KubeObject, facts: RestoreFacts): KubeObject | undefined {
  switch (resource) {
    case stacksTable:
      return restoredStack(object as Stack, facts)
    case runsTable:
      return restoredRun(object as Run, facts)
    case 'secrets': {
      const { type } = object as KubeObject<SecretBody>
      return type === joinTokenType || type === workerCredentialType ? undefined : object
    }
    default:
      return object
  }
}

const voidAnnotations = [
  annotations.approvedPlan,
  annotations.approvedBy,
  annotations.approvedAt,
  annotations.rejectedPlan,
  annotations.rejectedBy,
  annotations.rejectedAt,
  annotations.rejectionReason,
  annotations.requestedRun,
  annotations.requestedBy,
  annotations.acceptedRestore,
]

function restoredStack(stack: Stack, { nowMs, backupAt, lastEpochs }: RestoreFacts): Stack {
  const { metadata, status } = stack
  const kept = Object.entries(metadata.annotations ?? {}).filter(
    ([name]) => !voidAnnotations.includes(name as (typeof voidAnnotations)[number]),
  )
  const { plan: _, approval: __, rejection: ___, minRunNumber = 0, ...record } = status ?? {}
  // A Run may have been created whose number is not in the status yet.
  const lastEpoch = Math.max(lastEpochs.get(metadata.uid) ?? 0, epochAfterRestore(Math.max((record.lastRunNumber ?? 0) + 1, minRunNumber)))
  return {
    ...stack,
    metadata: { ...metadata, annotations: Object.fromEntries(kept) },
    status: {
      ...record,
      minRunNumber: Math.min(lastEpoch + 1, maxEpoch),
      restored: { at: rfc3339(nowMs), ...(backupAt !== undefined && { backupAt }) },
    },
  }
}

function restoredRun(run: Run, { nowMs }: RestoreFacts): Run | undefined {
  if (isEnded(run)) return run
  if (run.spec.workerName === undefined) return undefined
  const { reason: _, message: __, queuePosition: ___, ...status } = run.status ?? { phase: 'Assigned' }
  return {
    ...run,
    status: {
      ...status,
      phase: 'Lost',
      reason: 'RestoredFromBackup',
      message: 'the Run was active when the backup was created',
      finishedAt: rfc3339(nowMs),
    },
  }
}
