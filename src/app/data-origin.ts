import { readFileSync, realpathSync, statSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { DataInUseError } from './app-start-error.ts'

/**
 * Where a data directory was used last: of two copies of one `oarlock up`, each has an API server of its own, so nothing else keeps both from
 * applying the same Stacks.
 */
type Origin = {
  readonly host: string
  readonly path: string
  /** Device and inode of the database: a copy has another. */
  readonly file: string
}

const databaseFile = 'oarlock.db'
const busy = 5

const originFile = (dataDir: string) => join(dataDir, 'origin.json')

function originOf(dataDir: string): Origin {
  const { dev, ino } = statSync(join(dataDir, databaseFile), { bigint: true })
  return { host: hostname(), path: realpathSync(dataDir), file: `${dev}:${ino}` }
}

function readOrigin(dataDir: string): Origin | undefined {
  try {
    const { host, path, file } = JSON.parse(readFileSync(originFile(dataDir), 'utf8'))
    return [host, path, file].every(field => typeof field === 'string') ? { host, path, file } : undefined
  } catch {
    return undefined
  }
}

/** Records that this process uses the directory, which it has locked. */
export function recordOrigin(dataDir: string): void {
  writeFileSync(originFile(dataDir), `${JSON.stringify(originOf(dataDir))}\n`, { mode: 0o600 })
}

/**
 * Reports a directory that was copied from another one: `path` on `host`. A directory that was moved is none, nor is one that replaced its original.
 * @throws {DataInUseError} if a process on this machine uses the original.
 */
export function checkOrigin(dataDir: string): Pick<Origin, 'host' | 'path'> | undefined {
  const origin = readOrigin(dataDir)
  if (!origin) return undefined
  let own: Origin
  try {
    own = originOf(dataDir)
  } catch {
    return undefined
  }
  const isElsewhere = origin.host !== own.host || origin.path !== own.path
  if (!isElsewhere || origin.file === own.file) return undefined
  if (origin.host === own.host && isUsed(origin.path, dataDir)) {
    throw new DataInUseError(
      `${dataDir} is a copy of ${origin.path}, which a running "oarlock up" uses: both would apply the same Stacks`,
      `stop the other process first, and do not start it again on ${origin.path}`,
    )
  }
  return { host: origin.host, path: origin.path }
}

/** Reports whether a process has locked `original`, and that is the same installation: another one may be there by now. */
function isUsed(original: string, copy: string): boolean {
  try {
    const [first, second] = [original, copy].map(directory => readFileSync(join(directory, 'pki', 'ca.crt')))
    if (!first!.equals(second!)) return false
    // The lock of `openDataIdentity`.
    const database = new DatabaseSync(join(original, 'state', 'stores.db'), { readOnly: true, timeout: 0 })
    try {
      database.prepare('SELECT id FROM identity').get()
      return false
    } catch (error) {
      return (((error as { errcode?: number }).errcode ?? 0) & 0xff) === busy
    } finally {
      database.close()
    }
  } catch {
    return false
  }
}
