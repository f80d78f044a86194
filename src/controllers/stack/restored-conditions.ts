import { oarlockCommand } from '../../api/index.ts'
import { type StackConditions, stalledCondition } from './conditions.ts'
import type { StackFacts } from './facts.ts'

/** The conditions of a Stack from a backup until a user has reviewed it. */
export function restoredConditions({ input, record }: Pick<StackFacts, 'input' | 'record'>): StackConditions {
  const { metadata } = input.stack
  const backup = record.restored?.backupAt === undefined ? 'a backup' : `the backup of ${record.restored.backupAt}`
  return stalledCondition(
    'RestoredFromBackup',
    `The Stack was restored from ${backup}: its resources may have changed since, and nothing is applied. ` +
      `Show what differs with: ${oarlockCommand('plan', metadata)}; then continue with: ${oarlockCommand('restore accept', metadata)}`,
  )
}
