/**
 * @module app/backup: a backup of a whole installation in one file, and its restore. Start reading at `manifest.ts` (what a backup contains), then
 * `create-backup.ts` and `restore-installation.ts`; `restored-object.ts` is what becomes of each object.
 * In: copies of the databases, which the API server and the stores make while they serve, or the files of a stopped process. Out: a tar archive with a
 * manifest first, so that it is read in one pass; a data directory that no process uses.
 * Out of scope: how a database is copied (`kubernetes/server/storage`, `stores/state`), and who may (`../stores/backup-handler.ts`).
 */

export { backupHeaders, logBackupPath, stateBackupPath } from '../stores/backup-handler.ts'
export { type BackupKeys, minPassphraseChars, readKeys } from './backup-keys.ts'
export { type BackupResult, type BackupSources, createBackup, type StatesOrigin } from './create-backup.ts'
export { hasStores } from './has-stores.ts'
export { backUpLogs, backUpStates } from './local-states.ts'
export { type BackupManifest, type Omission, objectsOnlyReason } from './manifest.ts'
export { hasKeys, isArchive } from './open-backup.ts'
export { type InstallationRestore, restoreInstallation } from './restore-installation.ts'
export { type BackupVerification, verifyBackup } from './verify-backup.ts'
