import { oarlockCommand, type Stack } from '../../api/index.ts'
import { rfc3339 } from '../../kubernetes/object/index.ts'
import type { StateError } from './choose-next.ts'
import { reconcilingCondition, type StackConditions, stalledCondition } from './conditions.ts'
import type { UserLock } from './decision.ts'
import type { StackFacts } from './facts.ts'

/** The conditions of a Stack from a backup until a user has reviewed it. */
export function restoredConditions({ input, record }: Pick<StackFacts, 'input' | 'record'>): StackConditions {
  const { metadata } = input.stack
  const backup = record.restored?.backupAt === undefined ? 'a backup' : `the backup of ${record.restored.backupAt}`
  const suspended = input.stack.spec.suspend ? 'It is suspended; set spec.suspend to false first. ' : ''
  return stalledCondition(
    'RestoredFromBackup',
    `The Stack was restored from ${backup}: its resources may have changed since, and nothing is applied. ` +
      `${suspended}Show what differs with: ${oarlockCommand('plan', metadata)}; then continue with: ${oarlockCommand('restore accept', metadata)}`,
  )
}

/** The conditions of a Stack whose next Run waits until a user releases the lock of its state. */
export function stateLockedConditions({ metadata }: Stack, { holder, sinceMs }: UserLock): StackConditions {
  const unlock = oarlockCommand('state unlock', metadata)
  return reconcilingCondition(
    'StateLocked',
    `The next Run waits: the state is locked by ${holder} since ${rfc3339(sinceMs)}. It continues when the lock is released: ${unlock}`,
  )
}

/** The conditions of a Stack whose state is missing, older than its last Run, or not understood. */
export function stateErrorConditions({ metadata, spec }: Stack, { reason, message }: StateError): StackConditions {
  if (reason === 'JournalUnreadable') {
    const rollback = `${oarlockCommand('state rollback', metadata)} --to VERSION`
    const ways = `Upgrade Oarlock, upload the state with "oarlock state push", or continue with an earlier version: ${rollback}`
    return stalledCondition(
      reason,
      `No Run is executed, because the state cannot be read: ${message}. ${ways}. The journal is kept as an orphaned version then`,
    )
  }
  const deleted =
    metadata.deletionTimestamp !== undefined && spec.deletion !== 'Orphan' ? ', or keep the resources with spec.deletion: Orphan' : ''
  return stalledCondition(
    reason,
    `No Run is executed, because it would create resources again: ${message}. Upload the state with "oarlock state push" or "import", roll it back, ` +
      `or continue with what is stored: ${oarlockCommand('state accept', metadata)}${deleted}`,
  )
}
