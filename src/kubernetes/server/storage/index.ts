/**
 * @module storage: durable objects. Start reading at `store.ts`; `database.ts` is the SQLite file, `table.ts` the objects in memory.
 * In: whole, valid objects. Out: entries (one JSON text per version), lists in key order, events after commit; backup and restore.
 * Not here: the rules of a kind (registry/), who may write (auth/), how objects are sent (http/, watch/, wire/).
 * Invariants: 5 (nothing is visible before it is on disk) and 6 (revisions rise, history has no gaps above its floor), except for the
 * deferred writes of `deferred-writes.ts`.
 */
export { type BackupSummary, backUpDataDirectory, inspectBackup, writeAtomically, writeBackup } from './backup.ts'
export { encryptionConfigPath, encryptionKeyNames } from './encryption-config.ts'
export { type FieldReader, parseEntry, type StoredEntry, stringifyAsciiJson, uidHashOf } from './entry.ts'
export type { KeyRotation } from './protocol.ts'
export { readObjects } from './read-objects.ts'
export { type RestoredObject, type RestoreOptions, type RestoreSummary, restoreBackup } from './restore.ts'
export { rotateKeyOfDataDirectory } from './rotate-key.ts'
export { readIfExists, readOrCreate, syncPath, writeSecretFile } from './secret-file.ts'
export { ServerStartError, type ServerStartErrorCode } from './start-error.ts'
export { type CommitListener, Store } from './store.ts'
export type { StoreOptions, StoreStats } from './store-options.ts'
export { type StoredEvent, Table, type TableListener } from './table.ts'
