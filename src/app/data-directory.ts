import { type Log, makeDataDirectory } from '../kubernetes/util/index.ts'
import { toAppStartError } from './to-app-start-error.ts'

/**
 * Creates the data directory of a role, or removes the write access of other users from an existing one.
 * @throws {AppStartError} if it cannot be created, or it belongs to another user and others can write to it.
 */
export function prepareDataDirectory(dataDir: string, log: Pick<Log, 'warn'>): void {
  try {
    const changed = makeDataDirectory(dataDir)
    if (changed !== undefined) log.warn({ dataDir }, changed)
  } catch (error) {
    throw toAppStartError(error, { dataDir, listen: '' })
  }
}
