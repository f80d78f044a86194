/**
 * The format of states and journals: all that a store needs. The thread of the state store imports this file, and not the protocol.
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
export { type JournalEntry, type JournalEntryKind, parseJournalEntry, type UnreadableEntry } from './journal-entry.ts'
export { type PulumiStateFile, readStateFile, secretKind, secretsIn } from './read-state-file.ts'
export { type RecoveredEntries, recoverEntries } from './recover-entries.ts'
export { type ReplayOptions, type ReplayResult, replayJournal } from './replay-journal.ts'
export { isTooDeep, JournalBatchError, type RawJournalEntry, splitJournalBatch } from './split-journal-batch.ts'
