import { createWriteStream } from 'node:fs'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { openLogStore } from '../../stores/log/index.ts'
import { copyStateFile } from '../../stores/state/state-copy.ts'
import { AppStartError } from '../app-start-error.ts'
import { openDataIdentity } from '../data-identity.ts'
import { openGenerationStore } from '../stores/generation-store.ts'
import { writeTar } from '../tar.ts'
import { readKeys } from './backup-keys.ts'
import type { StatesOrigin } from './create-backup.ts'

/**
 * Copies the states of a data directory that no process uses, to `path`.
 * @throws {AppStartError} if a process uses it, or its key is missing.
 */
export async function backUpStates(dataDir: string, path: string): Promise<StatesOrigin> {
  const directory = join(dataDir, 'state')
  const identity = openDataIdentity({
    file: join(directory, 'stores.db'),
    dataDir,
    usedBy: '"oarlock stores" or "oarlock up"',
    idBytes: 16,
  })
  try {
    const generation = openGenerationStore(identity.database, { isNew: false }).read()
    await copyStateFile(directory, path)
    const key = readKeys(join(dataDir, 'keys')).names.findLast(name => name.startsWith('state-key-'))
    if (key === undefined)
      throw new AppStartError('DataDirectory', `${dataDir} has states, but not their key keys/state.key`, 'put the file back')
    return { id: identity.id, generation, key }
  } finally {
    identity.release()
  }
}

/** Writes the logs of a data directory that no process uses, as an archive. */
export async function backUpLogs(dataDir: string, path: string): Promise<void> {
  const logs = openLogStore({ directory: join(dataDir, 'logs') })
  try {
    await pipeline(writeTar(logs.backUp()), createWriteStream(path, { mode: 0o600 }))
  } finally {
    await logs.close()
  }
}
