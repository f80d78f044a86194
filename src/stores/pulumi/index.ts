/**
 * @module stores/pulumi: the format of what the Pulumi CLI stores.
 * States (`deployment.ts`), the journal of an update (`split-journal-batch.ts`, `journal-entry.ts`) and what the two result in; start reading at `replay-journal.ts`.
 * Input: the CLI's JSON. Output: typed values, a state, or what of it this version of Oarlock does not understand.
 * Out of scope: the protocol of the CLI (`execution/pulumi-backend`), where states are stored and encrypted (`stores/state`), and who may write them.
 */
export {
  type Deployment,
  DeploymentError,
  type Manifest,
  type PendingOperation,
  parseUntypedDeployment,
  type Resource,
  type UntypedDeployment,
} from './deployment.ts'
export { type InterruptedOperation, interruptedOperations, isOfStateOnly } from './interrupted-operations.ts'
export { type JournalEntry, type JournalEntryKind, journalEntryKinds, parseJournalEntry, type UnreadableEntry } from './journal-entry.ts'
export { exceededJsonLimit, isDeeperThan, sliceMembers } from './json-scanner.ts'
export { type PulumiStateFile, readStateFile } from './read-state-file.ts'
export { type RecoveredEntries, recoverEntries } from './recover-entries.ts'
export { type ReplayOptions, type ReplayResult, replayJournal } from './replay-journal.ts'
export {
  isEncrypted,
  isPlainSpecialValue,
  mapSecrets,
  type SecretValue,
  secretOf,
  secretSignature,
  secretsIn,
  signatureKey,
} from './secret-values.ts'
export { isTooDeep, JournalBatchError, type RawJournalEntry, splitJournalBatch } from './split-journal-batch.ts'
export { nameOf, parseUrn, typeOf } from './urn.ts'
