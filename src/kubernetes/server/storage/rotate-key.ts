import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { KeyRotation } from './protocol.ts'
import { ServerStartError } from './start-error.ts'
import { Store } from './store.ts'

/**
 * Rotates the encryption key of a data directory that no server runs on.
 * @throws {ServerStartError} DataInUse when a server runs on it, DataMissing when there is no database.
 */
export async function rotateKeyOfDataDirectory(dataDir: string, removesOldKeys: boolean): Promise<KeyRotation> {
  const file = join(dataDir, 'oarlock.db')
  if (!existsSync(file))
    throw new ServerStartError('DataMissing', `${file} does not exist: pass the data directory of a server with --data`)
  const store = await Store.open({ dataDir })
  try {
    return await store.rotateEncryptionKey({ removesOldKeys })
  } finally {
    await store.close()
  }
}
