import { createWriteStream, renameSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { encryptionConfigPath, ServerStartError, writeSecretFile } from '../../kubernetes/server/index.ts'
import { makeDirectories } from '../../kubernetes/util/index.ts'
import { restoreStateFile, stateKeyId } from '../../stores/state/state-copy.ts'
import { openDataIdentity } from '../data-identity.ts'
import { openGenerationStore } from '../stores/generation-store.ts'
import { readTar } from '../tar.ts'
import { backupFiles } from './backup-files.ts'
import { decryptKeys, readKeys } from './backup-keys.ts'
import { type BackupManifest, damaged, isLogFile, type Omission } from './manifest.ts'
import { contentOf, extract, type OpenBackup, readText } from './open-backup.ts'

export type KeyOptions = {
  /** The `keys/` of the data directory that the backup is from. Not needed when the keys are in the backup, or in the data directory. */
  keysDirectory?: string | undefined
  /** Decrypts the keys in the backup. */
  passphrase?: string | undefined
}

export type ExtractedParts = {
  /** A file with keys of Secrets; undefined if there is none beside those of the data directory. */
  readonly encryptionConfig: string | undefined
  /** The key of the restored states, and the last epoch that they exclude by UID of the Stack; undefined without states. */
  readonly stateKey: string | undefined
  readonly lastEpochs: Map<string, number> | undefined
  readonly logs: number
  readonly leftOut: readonly Omission[]
}

/**
 * Extracts a backup to `work`: `objects.db`, and the directories `state` and `logs` as they are in a data directory.
 * @throws {AppStartError}, {StateStoreError}, or {ServerStartError} EncryptionKeyMissing, unless `salvage` is set.
 */
export async function extractParts(
  backup: OpenBackup,
  work: string,
  options: KeyOptions & { dataDir: string; salvage?: boolean },
): Promise<ExtractedParts> {
  const { path, manifest } = backup
  const at = (name: string) => join(work, name)
  for (const file of manifest.files) {
    const isDatabase = file.name === backupFiles.objects || file.name === backupFiles.states
    await extract(backup, file, isDatabase ? at(file.name) : undefined)
  }
  const { keys, encryptionConfig } = await findKeys(backup, work, options)
  const leftOut: Omission[] = []
  let stateKey: string | undefined
  let lastEpochs: Map<string, number> | undefined
  if (manifest.states) {
    stateKey = keys.find(key => stateKeyId(Buffer.from(key, 'hex')) === manifest.states?.key)
    if (stateKey !== undefined) lastEpochs = restoreStates(work, stateKey, manifest.states)
    else {
      const reason = `they are encrypted with the key ${manifest.states.key}, which is missing`
      if (!options.salvage) throw missingKey(path, reason, manifest)
      leftOut.push({ what: 'states', reason })
    }
  }
  return { encryptionConfig, stateKey, lastEpochs, logs: await extractLogs(backup, at('logs')), leftOut }
}

/** All keys of states that are known, and the keys of Secrets as a file. */
async function findKeys(
  { path, positions }: OpenBackup,
  work: string,
  { dataDir, keysDirectory, passphrase }: KeyOptions & { dataDir: string },
) {
  const position = positions.get(backupFiles.keys)
  const included = position && passphrase !== undefined ? await decryptKeys(await readText(path, position), passphrase) : undefined
  const passed = keysDirectory === undefined ? undefined : readKeys(keysDirectory)
  if (passed && passed.names.length === 0)
    throw new ServerStartError('DataMissing', `${keysDirectory} has neither encryption-config.json nor state.key`)
  const keys = [included?.stateKey, passed?.stateKey, readKeys(join(dataDir, 'keys')).stateKey].filter(key => key !== undefined)
  const text = included?.encryptionConfig ?? passed?.encryptionConfig
  if (text === undefined) return { keys, encryptionConfig: undefined }
  const encryptionConfig = encryptionConfigPath(work)
  makeDirectories(dirname(encryptionConfig), 0o700)
  writeSecretFile(encryptionConfig, text)
  return { keys, encryptionConfig }
}

function missingKey(path: string, reason: string, { keys }: BackupManifest): ServerStartError {
  const remedy = keys
    ? 'The backup contains it: pass its passphrase with --passphrase-file'
    : 'Pass the directory keys/ of the installation that it is from with --keys, or restore without states with --salvage'
  return new ServerStartError('EncryptionKeyMissing', `the states in ${path} cannot be restored: ${reason}. Nothing was changed. ${remedy}`)
}

function restoreStates(work: string, stateKey: string, { stores }: NonNullable<BackupManifest['states']>): Map<string, number> {
  const directory = join(work, 'state')
  makeDirectories(directory, 0o700)
  renameSync(join(work, backupFiles.states), join(directory, 'state.db'))
  const lastEpochs = restoreStateFile(directory, Buffer.from(stateKey, 'hex'))
  const identity = openDataIdentity({
    ...{ file: join(directory, 'stores.db'), dataDir: directory, usedBy: 'oarlock', idBytes: 16 },
    newId: stores.id,
  })
  try {
    openGenerationStore(identity.database, { isNew: false }).write(stores.generation)
  } finally {
    identity.release()
  }
  return lastEpochs
}

/** Returns the number of logs. */
async function extractLogs({ path, positions }: OpenBackup, directory: string): Promise<number> {
  const archive = positions.get(backupFiles.logs)
  if (!archive) return 0
  let logs = 0
  for await (const position of readTar(path, { start: archive.offset, end: archive.offset + archive.size })) {
    const { name } = position
    if (!isLogFile(name)) throw damaged(path, `${backupFiles.logs} has ${name}`)
    makeDirectories(dirname(join(directory, name)), 0o700)
    await pipeline(contentOf(path, position), createWriteStream(join(directory, name), { flags: 'wx', mode: 0o600 }))
    if (name.endsWith('.log')) logs++
  }
  return logs
}
