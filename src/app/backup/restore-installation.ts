import { closeSync, existsSync, openSync, renameSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import {
  type RestoreOptions,
  type RestoreSummary,
  restoreBackup,
  ServerStartError,
  syncPath,
  writeSecretFile,
} from '../../kubernetes/server/index.ts'
import { makeDirectories, replacedPath, replacementStamp, restoreMarker } from '../../kubernetes/util/index.ts'
import { AppStartError } from '../app-start-error.ts'
import { openDataIdentity } from '../data-identity.ts'
import { type OwnPartition, ownPartitionOf } from '../own-partition.ts'
import { writeRestoredDirectory } from '../partition/identity.ts'
import { backupFiles } from './backup-files.ts'
import { readKeys } from './backup-keys.ts'
import { type ExtractedParts, extractParts, type KeyOptions } from './extract-parts.ts'
import type { BackupManifest, Omission } from './manifest.ts'
import { isArchive, openBackup } from './open-backup.ts'
import { restoredObject } from './restored-object.ts'

export type InstallationRestoreOptions = Omit<RestoreOptions, 'restored' | 'beforeReplace'> & KeyOptions

export type InstallationRestore = RestoreSummary & {
  /** Undefined for a copy of the database of an API server, which has no manifest. */
  readonly manifest: BackupManifest | undefined
  /** Number of restored Stacks with states, and of logs. */
  readonly states: number
  readonly logs: number
  /** What the backup has and this restore left out. */
  readonly leftOut: readonly Omission[]
  /** Where the states, logs and the key that were replaced are now. */
  readonly replacedFiles: readonly string[]
}

/**
 * Restores a backup to a data directory that no process uses. Everything is extracted and checked first. While the directory is changed, a marker in it
 * keeps every process from starting on it: a restore that is interrupted is repeated.
 * @throws {AppStartError}, {StateStoreError} or {ServerStartError}.
 */
export async function restoreInstallation(options: InstallationRestoreOptions): Promise<InstallationRestore> {
  const { file, nowMs = Date.now() } = options
  const dataDir = resolve(options.dataDir)
  const marker = join(dataDir, restoreMarker)
  const isRepeated = existsSync(marker)
  if (!existsSync(file)) throw new ServerStartError('DataMissing', `${file} does not exist: pass a file that "oarlock backup" created`)
  if (!isArchive(file)) {
    if (isRepeated)
      throw new AppStartError('DataDirectory', `the restore of another backup to ${dataDir} has not finished`, 'repeat it first')
    const facts = { nowMs, backupAt: undefined, lastEpochs: new Map<string, number>() }
    let partition: OwnPartition | undefined
    const summary = restoreBackup({
      ...options,
      restored(resource, object) {
        partition ??= ownPartitionOf(resource, object)
        return restoredObject(resource, object, facts)
      },
    })
    if (partition) writeRestoredDirectory(dataDir, partition)
    return { ...summary, manifest: undefined, states: 0, logs: 0, leftOut: [], replacedFiles: [] }
  }

  const backup = await openBackup(file)
  const used = ['oarlock.db', join('state', 'state.db')].map(name => join(dataDir, name)).find(existsSync)
  if (used && !options.force && !isRepeated) {
    throw new ServerStartError(
      'DataInUse',
      `${used} exists: choose another directory, or replace it with --force (the old data is kept under another name)`,
    )
  }
  const isNew = !existsSync(dataDir)
  const work = join(dataDir, 'restore.tmp')
  const unlock = lockStores(dataDir)
  const objects = join(work, backupFiles.objects)
  try {
    rmSync(work, { recursive: true, force: true })
    makeDirectories(work, 0o700)
    const parts = await extractParts(backup, work, { ...options, dataDir })
    const { logs, leftOut, lastEpochs = new Map<string, number>() } = parts
    const facts = { nowMs, backupAt: backup.manifest.createdAt, lastEpochs }
    let replacedFiles: string[] = []
    let partition: OwnPartition | undefined
    const summary = restoreBackup({
      ...options,
      ...{ file: objects, dataDir, nowMs, force: true },
      encryptionConfig: options.encryptionConfig ?? parts.encryptionConfig,
      restored(resource, object) {
        partition ??= ownPartitionOf(resource, object)
        return restoredObject(resource, object, facts)
      },
      beforeReplace: () => {
        closeSync(openSync(marker, 'a', 0o600))
        syncPath(dataDir)
        replacedFiles = replaceFiles(dataDir, work, parts, nowMs)
        if (partition) writeRestoredDirectory(dataDir, partition)
      },
    })
    rmSync(marker)
    syncPath(dataDir)
    return { ...summary, manifest: backup.manifest, states: lastEpochs.size, logs, leftOut, replacedFiles }
  } catch (error) {
    if (isNew && !existsSync(marker)) rmSync(dataDir, { recursive: true, force: true })
    // The error names the file that the user passed.
    if (!(error instanceof ServerStartError)) throw error
    throw new ServerStartError(error.code, error.message.replaceAll(objects, file), { cause: error.cause })
  } finally {
    unlock()
    rmSync(work, { recursive: true, force: true })
  }
}

/** Puts states, logs and the key of the states in their places. */
function replaceFiles(dataDir: string, work: string, { lastEpochs, logs, stateKey }: ExtractedParts, nowMs: number): string[] {
  const stamp = replacementStamp(nowMs)
  const moved: string[] = []
  const moveAway = (name: string) => {
    if (!existsSync(join(dataDir, name))) return
    const replaced = replacedPath(join(dataDir, name), stamp)
    renameSync(join(dataDir, name), replaced)
    moved.push(replaced)
  }
  const replaced = [...(lastEpochs ? ['state'] : []), ...(logs > 0 ? ['logs'] : [])]
  for (const name of replaced) {
    moveAway(name)
    renameSync(join(work, name), join(dataDir, name))
  }
  const keys = join(dataDir, 'keys')
  if (stateKey !== undefined && readKeys(keys).stateKey !== stateKey) {
    makeDirectories(keys, 0o700)
    moveAway(join('keys', 'state.key'))
    writeSecretFile(join(keys, 'state.key'), `${stateKey}\n`)
  }
  syncPath(dataDir)
  return moved
}

/** Keeps the stores of the directory from starting, if it has any. */
function lockStores(dataDir: string): () => void {
  const file = join(dataDir, 'state', 'stores.db')
  if (!existsSync(file)) return () => {}
  return openDataIdentity({ file, dataDir, usedBy: '"oarlock stores" or "oarlock up"', idBytes: 16 }).release
}
