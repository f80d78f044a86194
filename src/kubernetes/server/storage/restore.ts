import { chmodSync, copyFileSync, constants as copyMode, existsSync, renameSync, rmdirSync, rmSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import type { KubeObject } from '../../object/index.ts'
import { makeDirectories, nextRevision, readRevision, replacedPath, replacementStamp } from '../../util/index.ts'
import { Database, toStartError } from './database.ts'
import { stringifyAsciiJson } from './entry.ts'
import { type Inspection, inspect } from './inspect.ts'
import type { Row } from './protocol.ts'
import { RestoreKeys } from './restore-keys.ts'
import { syncPath } from './secret-file.ts'
import { DatabaseSync } from './sqlite.ts'
import { sqliteBusy, sqliteCode, sqliteNotADatabase } from './sqlite-codes.ts'
import { ServerStartError } from './start-error.ts'
import { validRows } from './valid-rows.ts'

export type RestoreOptions = {
  /** A backup; with `salvage` also a corrupt `oarlock.db`. It is not changed. */
  file: string
  /** Created when missing. */
  dataDir: string
  /** Replaces an existing database, which is kept next to the new one under another name. Default false: fails. */
  force?: boolean
  /** Skips objects that cannot be read instead of failing. Default false. */
  salvage?: boolean
  /**
   * The `keys/encryption-config.json` of the server that the backup is from. Not needed when it is in its place in `dataDir`, or next to `file` as in
   * a data directory.
   */
  encryptionConfig?: string
  /** What becomes of each object; undefined: it is not restored. Default: all are restored unchanged. */
  restored?: RestoredObject
  /** Called when everything is written and checked, immediately before the database is replaced. What it throws ends the restore. */
  beforeReplace?(): void
  nowMs?: number
}

/** `resource` is its plural, with its group unless that is the core group. An object that is returned unchanged is the same one. */
export type RestoredObject = (resource: string, object: KubeObject) => KubeObject | undefined

export type RestoreSummary = {
  readonly objects: number
  /** A description of what was skipped (`salvage`); undefined when nothing was. */
  readonly skipped: string | undefined
  /** Each object that was skipped, with the reason; an unreadable page is one entry. */
  readonly skippedObjects: readonly string[]
  /** Number of objects without an existing owner, by resource: the garbage collector deletes them when a server starts. */
  readonly orphans: ReadonlyMap<string, number>
  /** New resource versions are above this one. A watch from before it gets 410 Gone, and its client lists again. */
  readonly floor: number
  /** The new path of the database that was replaced. */
  readonly replacedPath: string | undefined
}

/**
 * Makes a backup the database of a data directory on which no server runs.
 *
 * Clients may know resource versions from after the backup. For them the restore is a jump to another history: the new database
 * starts above every resource version that was ever assigned, and has no history below it. So no watch continues across the restore,
 * and no update computed from a lost version passes as current.
 * @throws {ServerStartError} when the file is corrupt, the directory is in use, or it has a database and `force` is not set.
 */
export function restoreBackup(options: RestoreOptions): RestoreSummary {
  const { file, dataDir, force = false, salvage = false, nowMs = Date.now() } = options
  const target = join(resolve(dataDir), 'oarlock.db')
  if (!existsSync(file)) throw new ServerStartError('DataMissing', `${file} does not exist: pass a file that "oarlock backup" created`)
  const exists = existsSync(target) || existsSync(`${target}-wal`)
  if (exists && !force) {
    throw new ServerStartError(
      'DataInUse',
      `${target} exists: choose another directory, or replace it with --force (the old database is kept under another name)`,
    )
  }
  const stamp = replacementStamp(nowMs)
  const copy = `${target}.${stamp}.tmp`
  const fresh = `${target}.${stamp}.new.tmp`
  let failure: unknown
  const created = createDirectory(dirname(target))
  try {
    copyWithLog(file, copy)
    const keys = new RestoreKeys(options)
    const found = inspect(copy, keys.source)
    const { corruption, locked } = found
    if (!corruption.isEmpty && !salvage) throw corruption.toError(file, count(found.objects))
    if (locked.size > 0 && !salvage) throw keys.missingError(file, locked)
    const replacedRevision = exists ? lastRevisionOf(target) : 0
    const last = Math.max(found.newestRevision, replacedRevision)
    const floor = nextRevision(last, nowMs, readRevision(found.newestRevision).partition)
    const { orphans, objects } = fill(fresh, copy, found, { floor, keys, restored: options.restored })
    syncPath(fresh)
    options.beforeReplace?.()
    const replaced = exists ? replacedPath(target, stamp) : undefined
    if (replaced) for (const suffix of ['', '-wal', '-shm']) moveIfExists(target + suffix, replaced + suffix)
    renameSync(fresh, target)
    syncPath(dirname(target))
    return {
      objects,
      skipped: skippedText(found),
      skippedObjects: found.unreadable,
      orphans,
      floor,
      replacedPath: replaced,
    }
  } catch (error) {
    failure = toRestoreError(error, file, copy)
    throw failure
  } finally {
    for (const path of [copy, fresh]) for (const suffix of ['', '-wal', '-shm', '-journal']) rmSync(path + suffix, { force: true })
    if (failure) removeEmpty(created)
  }
}

function skippedText({ corruption, locked }: Inspection): string | undefined {
  const texts = corruption.isEmpty ? [] : [corruption.text]
  for (const [keyName, objects] of locked)
    texts.push(`${objects === 1 ? '1 object is' : `${objects} objects are`} encrypted with the missing key ${keyName}`)
  return texts.length > 0 ? texts.join('; ') : undefined
}

function createDirectory(directory: string): string[] {
  try {
    return makeDirectories(directory, 0o700)
  } catch (error) {
    throw new ServerStartError(
      'DataDirectoryUnwritable',
      `${directory} cannot be created (${(error as Error).message}): check the owner and mode of its parent, or choose another with --data`,
      { cause: error },
    )
  }
}

function removeEmpty(directories: readonly string[]): void {
  for (const directory of directories.toReversed()) {
    try {
      rmdirSync(directory)
    } catch {
      return // Not empty: another process uses it.
    }
  }
}

/** The error names the file that the user passed, not its temporary copy. */
function toRestoreError(error: unknown, file: string, copy: string): unknown {
  const startError = toStartError(error, file)
  if (!(startError instanceof ServerStartError)) return startError
  const { code, cause, message } = startError
  if (sqliteCode(cause) === sqliteNotADatabase) {
    return new ServerStartError('DataCorrupt', `${file} is not an oarlock backup: pass a file that "oarlock backup" created`, { cause })
  }
  return new ServerStartError(code, message.replaceAll(copy, file), { cause })
}

/** Copies the write-ahead log too: after a kill it holds the newest writes. */
function copyWithLog(file: string, copy: string): void {
  checkNotOpen(file)
  for (const suffix of ['', '-wal']) {
    if (!existsSync(file + suffix)) continue
    copyFileSync(file + suffix, copy + suffix, copyMode.COPYFILE_EXCL)
    chmodSync(copy + suffix, 0o600)
  }
}

// A copy of a file that is being written would be neither the old nor the new version.
function checkNotOpen(file: string): void {
  // A process that has the database open keeps a log next to it. Opening it here without need would create one.
  if (!existsSync(`${file}-wal`)) return
  let db: DatabaseSync | undefined
  try {
    db = new DatabaseSync(file, { readOnly: true, timeout: 250 })
    db.prepare('SELECT count(*) FROM sqlite_schema').get()
  } catch (error) {
    if (sqliteCode(error) !== sqliteBusy) return
    throw new ServerStartError('DataInUse', `${file} is in use by a running server: create a backup with "oarlock backup"`, {
      cause: error,
    })
  } finally {
    db?.close()
  }
}

/**
 * The newest revision of the database to be replaced; 0 when it cannot be read.
 * @throws {ServerStartError} DataInUse when a server runs on it.
 */
function lastRevisionOf(target: string): number {
  try {
    return inspect(target).newestRevision
  } catch (error) {
    if (error instanceof ServerStartError && error.code === 'DataInUse') throw error
    return 0
  }
}

type FillOptions = { floor: number; keys: RestoreKeys; restored: RestoredObject | undefined }

/** Writes every valid row into a new database. */
function fill(
  fresh: string,
  copy: string,
  { format, objects }: Inspection,
  { floor, keys, restored = (_, object) => object }: FillOptions,
): Pick<RestoreSummary, 'orphans' | 'objects'> {
  const encryption = keys.target(objects)
  const from = new DatabaseSync(copy)
  const into = new Database({ file: fresh, synchronous: 'FULL' })
  if (encryption) into.encryptWith(encryption)
  const uids = new Set<string>()
  const owned: { resource: string; owners: string[] }[] = []
  const rowsPerCommit = 1_000
  let written = 0
  let rows: Row[] = []
  const write = () => {
    const resources = [...new Set(rows.map(row => row[1]))]
    into.write({
      resources,
      numbers: Float64Array.from(rows.flatMap(([id, resource, , revision]) => [id, revision, resources.indexOf(resource)])),
      keys: rows.map(row => row[2]),
      texts: rows.map(row => row[4]),
      // As after a crash, acknowledged renewals of Leases are lost.
      reservations: resources.map(name => [name, floor]),
    })
    written += rows.length
    rows = []
  }
  try {
    for (const { row: found, object: read } of validRows(from, format, keys.source, { onCorruption: () => {}, onLocked: () => {} })) {
      const [id, resource, key, revision, text] = found
      const object = restored(resource, read)
      if (!object) continue
      const row: Row = [id, resource, key, revision, object === read ? text : stringifyAsciiJson(object)]
      uids.add(object.metadata.uid)
      const owners = object.metadata.ownerReferences?.map(owner => owner.uid) ?? []
      if (owners.length > 0) owned.push({ resource: row[1], owners })
      rows.push(row)
      if (rows.length === rowsPerCommit) write()
    }
    write()
    into.setFloor(floor)
  } finally {
    from.close()
    into.close()
  }
  const orphans = new Map<string, number>()
  for (const { resource, owners } of owned) {
    if (owners.every(uid => !uids.has(uid))) orphans.set(resource, (orphans.get(resource) ?? 0) + 1)
  }
  return { orphans, objects: written }
}

function moveIfExists(from: string, to: string): void {
  if (existsSync(from)) renameSync(from, to)
}

function count(objects: ReadonlyMap<string, number>): number {
  let sum = 0
  for (const ofResource of objects.values()) sum += ofResource
  return sum
}
