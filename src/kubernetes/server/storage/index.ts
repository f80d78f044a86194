/**
 * @module storage: objects that survive the process. Start reading at `store.ts`.
 * In: whole objects, already valid. Out: entries (one JSON text per version), lists in key order, events after commit.
 * Not here: what a resource may look like (registry/), who may write it (auth/), how it travels (http/, watch/).
 * Invariants: 5 (nothing is seen before it is on disk) and 6 (revisions rise, history has no holes above its floor).
 */
export { type BackupSummary, backUpDataDirectory, writeAtomically, writeBackup } from './backup.ts'
export { asciiJson, type Entry, type FieldReader, parseEntry } from './entry.ts'
export { type RestoreOptions, type RestoreSummary, restoreBackup } from './restore.ts'
export { nextRevision, parseRevision, readRevision, revisionEpochMs } from './revision.ts'
export { ServerStartError, type ServerStartErrorCode } from './start-error.ts'
export { type CommitListener, Store, type StoreOptions, type StoreStats } from './store.ts'
export { type StoredEvent, Table, type TableListener } from './table.ts'
