import { oarlockCommand, type Stack } from '../../api/index.ts'
import type { StateError } from './choose-next.ts'
import { type StackConditions, stalledCondition } from './conditions.ts'
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

/** The conditions of a Stack whose state is missing or older than its last Run. */
export function stateErrorConditions({ metadata, spec }: Stack, { reason, message }: StateError): StackConditions {
  const deleted =
    metadata.deletionTimestamp !== undefined && spec.deletion !== 'Orphan' ? ', or keep the resources with spec.deletion: Orphan' : ''
  return stalledCondition(
    reason,
    `No Run is executed, because it would create resources again: ${message}. Upload the state with "oarlock state push" or "import", roll it back, ` +
      `or continue with what is stored: ${oarlockCommand('state accept', metadata)}${deleted}`,
  )
}
