import { setImmediate } from 'node:timers/promises'
import type { Database } from './database.ts'
import { newEncryptionConfig, readEncryptionConfig, withNewKey, withoutOldKeys, writeEncryptionConfig } from './encryption-config.ts'
import type { KeyRotation } from './protocol.ts'
import type { LockedRow } from './read-rows.ts'
import { RowEncryption } from './row-encryption.ts'
import { ServerStartError } from './start-error.ts'

/**
 * The encryption that the file `path` configures; the file is created for a database without encrypted rows.
 * @throws {ServerStartError} EncryptionKeyMissing when the file is missing and `database` needs it.
 */
export function openEncryption(path: string, database: Database): RowEncryption {
  const found = readEncryptionConfig(path)
  if (found) return new RowEncryption(found)
  if (database.hasEncryptedRows()) {
    throw new ServerStartError('EncryptionKeyMissing', `${path} is missing, and the database has encrypted objects. ${keyAdvice}`)
  }
  return new RowEncryption(createEncryptionConfig(path))
}

/** @throws {ServerStartError} when the file cannot be written. */
export function createEncryptionConfig(path: string): RowEncryption['config'] {
  const config = newEncryptionConfig()
  try {
    writeEncryptionConfig(path, config)
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException
    if (code === 'ENOSPC') throw new ServerStartError('DiskFull', `${path} cannot be written, the disk is full: free some space`, { cause })
    throw new ServerStartError('DataDirectoryUnwritable', `${path} cannot be written (${message}): check its owner and mode`, { cause })
  }
  return config
}

export function lockedError(
  file: string,
  { resource, key, keyName }: Pick<LockedRow, 'resource' | 'key' | 'keyName'>,
  path: string,
): ServerStartError {
  return new ServerStartError(
    'EncryptionKeyMissing',
    `${resource} ${key} in ${file} is encrypted with the key ${keyName}, which is not in ${path}. ${keyAdvice}`,
  )
}

export const keyAdvice =
  'Nothing was changed. Put the file with this key back, or keep the other objects (oarlock restore FILE --data NEW_DIRECTORY --salvage)'

/** Brings every row to the form that a write would store, then removes the former content from the file. Crash-safe: repeating it completes it. */
export async function reencryptAll(database: Database, isClosing: () => boolean = () => false): Promise<void> {
  for (let id: number | undefined = 0; id !== undefined; id = database.reencrypt(id)) {
    // Commits that arrived meanwhile are next.
    await setImmediate()
    if (isClosing()) throw new Error('the server is shutting down: the re-encryption continues with its next start')
  }
  if (database.hasOldForms()) database.removeOldForms()
}

/**
 * Replaces the key that encrypts: the new one is on disk before its first use, and old ones are removed after their last one. Old keys are kept
 * unless `removesOldKeys`, because earlier backups need them.
 */
export async function rotateKey(
  database: Database,
  path: string,
  { config }: RowEncryption,
  removesOldKeys: boolean,
  isClosing: () => boolean,
): Promise<{ encryption: RowEncryption; rotation: KeyRotation }> {
  let encryption = use(withNewKey(config))
  await reencryptAll(database, isClosing)
  if (removesOldKeys) encryption = use(withoutOldKeys(encryption.config))
  const [{ name }, ...older] = encryption.config.keys
  return { encryption, rotation: { key: name, olderKeys: older.map(key => key.name), objects: database.countEncryptedRows() } }

  function use(changed: RowEncryption['config']): RowEncryption {
    writeEncryptionConfig(path, changed)
    const used = new RowEncryption(changed)
    database.encryptWith(used)
    return used
  }
}
