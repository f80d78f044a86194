import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { sandboxBindsError } from '../execution/worker/index.ts'
import { type Log, makeDataDirectory } from '../kubernetes/util/index.ts'
import { AppStartError } from './app-start-error.ts'
import { openDataIdentity } from './data-identity.ts'
import { toAppStartError } from './to-app-start-error.ts'
import type { ComponentName } from './worker-identity.ts'

/**
 * Creates the data directory of a role, or removes the access of other users from an existing one.
 * @throws {AppStartError} if it cannot be created, or it belongs to another user and others can access it.
 */
export function prepareDataDirectory(dataDir: string, log: Pick<Log, 'warn'>): void {
  try {
    const changed = makeDataDirectory(dataDir)
    if (changed !== undefined) log.warn({ dataDir }, changed)
  } catch (error) {
    throw toAppStartError(error, { dataDir, listen: '' })
  }
}

/** For a process that starts workers on this data directory. @throws {AppStartError} if sandboxes of their Runs would see it. */
export function checkSandboxBinds(dataDir: string): void {
  const error = sandboxBindsError(process.env, { 'the data directory': resolve(dataDir) })
  if (error !== undefined) throw new AppStartError('DataDirectory', error, undefined)
}

/** What an API server has in its data directory. */
const serverFile = 'oarlock.db'

/**
 * Prepares the data directory of a role and marks it with the name of the role: keys, certificates and caches of one role are not for another.
 * The stores may use the directory of `oarlock up`, which has states too.
 * @throws {AppStartError} as {@link prepareDataDirectory}, and if it is the directory of another role.
 */
export function prepareRoleDirectory(dataDir: string, role: ComponentName, log: Pick<Log, 'warn'>): void {
  prepareDataDirectory(dataDir, log)
  const file = join(dataDir, 'role')
  let owner: string
  try {
    // Empty after a crash between its creation and the write.
    owner = existsSync(file) ? readFileSync(file, 'utf8').trim() : ''
    if (owner === '' && (role === 'stores' || !existsSync(join(dataDir, serverFile)))) {
      writeFileSync(file, `${role}\n`, { mode: 0o600 })
      owner = role
    }
  } catch (error) {
    throw toAppStartError(error, { dataDir, listen: '' })
  }
  if (owner === role) return
  if (owner === '') owner = 'up" or "oarlock serve'
  throw new AppStartError(
    'DataDirectory',
    `${dataDir} is the data directory of "oarlock ${owner}"`,
    `choose another directory for "oarlock ${role}" with --data`,
  )
}

/**
 * {@link prepareRoleDirectory}, and locks the directory for the life of this process. Returns a function that releases it.
 * @throws {AppStartError} also if another process uses the directory.
 */
export function lockRoleDirectory(dataDir: string, role: ComponentName, log: Pick<Log, 'warn'>): () => void {
  prepareRoleDirectory(dataDir, role, log)
  return openDataIdentity({ file: join(dataDir, 'lock.db'), dataDir, usedBy: `"oarlock ${role}"`, idBytes: 4 }).release
}
