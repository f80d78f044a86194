import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { writeSecretFile } from '../../kubernetes/server/index.ts'
import { makeDirectories } from '../../kubernetes/util/index.ts'
import { AppStartError } from '../app-start-error.ts'

/** Which partition a data directory is that of. */
export type PartitionIdentity = { readonly name: string; readonly number: number }

export const homeNumber = 0

/** A data directory of a partition. The Partition at home names the one that has its objects (`bind-directory.ts`). */
export type PartitionDirectory = PartitionIdentity & {
  /** Random, made at the first start. A restored backup has that of its original. */
  readonly id: string
  /** Whether it has been the one that the Partition names. Before, it is empty and is not served. */
  readonly isBound: boolean
  /**
   * A resource version of home: claims that are not newer may be of objects that another data directory had, or a newer state of this one, and are kept.
   * 0: it has had all objects of the partition. Undefined: it was restored from a backup, or is of a version without ids, and has not been bound since: an empty
   * directory could take over a partition then.
   */
  readonly keepClaimsUpTo: number | undefined
  /** The Partition was deleted when it had nothing: the directory is not served again. Default false. */
  readonly isRemoved?: boolean
}

const fileOf = (dataDir: string) => join(dataDir, 'partition.json')
const hasObjects = (dataDir: string) => existsSync(join(dataDir, 'oarlock.db'))

function readFile(dataDir: string): (PartitionIdentity & Partial<PartitionDirectory>) | undefined {
  const path = fileOf(dataDir)
  if (!existsSync(path)) return undefined
  try {
    const found = JSON.parse(readFileSync(path, 'utf8')) as Partial<PartitionDirectory>
    const { name, number } = found
    if (typeof name === 'string' && typeof number === 'number') return { ...found, name, number }
  } catch {
    // As below.
  }
  throw new AppStartError(
    'DataDirectory',
    `${path} is damaged`,
    'restore it from a backup: {"name": <name of the Partition>, "number": <its spec.number>}',
  )
}

export function readPartitionIdentity(dataDir: string): PartitionIdentity | undefined {
  const found = readFile(dataDir)
  return found && { name: found.name, number: found.number }
}

export function writePartitionDirectory(
  dataDir: string,
  { name, number, id, isBound, keepClaimsUpTo, isRemoved }: PartitionDirectory,
): void {
  makeDirectories(dataDir, 0o700)
  writeSecretFile(fileOf(dataDir), `${JSON.stringify({ name, number, id, isBound, keepClaimsUpTo, isRemoved })}\n`)
}

/** For a data directory that a backup was restored to: it is that of the original, and may lack what that got later. */
export function writeRestoredDirectory(dataDir: string, { name, number, id }: Pick<PartitionDirectory, 'name' | 'number' | 'id'>): void {
  writePartitionDirectory(dataDir, { name, number, id, isBound: true, keepClaimsUpTo: undefined })
}

/**
 * Records that the data directory is that of this partition. One of an earlier version, without an id, gets one.
 * @throws {AppStartError} if it is that of another one, or has objects of a server that was no partition: their names are not claimed.
 */
export function recordPartitionIdentity(dataDir: string, { name, number }: PartitionIdentity): PartitionDirectory {
  const found = readFile(dataDir)
  if (found && (found.name !== name || found.number !== number))
    throw new AppStartError(
      'DataDirectory',
      `${dataDir} is that of ${describe(found)}, and not of ${describe({ name, number })}`,
      'choose another directory with --data, or the configuration of that partition',
    )
  if (found?.isRemoved)
    throw new AppStartError(
      'DataDirectory',
      `${dataDir} is that of ${describe(found)}, which was deleted`,
      'choose an empty directory with --data, and a configuration of "oarlock partition add"',
    )
  if (typeof found?.id === 'string')
    return { name, number, id: found.id, isBound: found.isBound === true, keepClaimsUpTo: found.keepClaimsUpTo }
  const isUsed = hasObjects(dataDir)
  if (!found && number !== homeNumber && isUsed)
    throw new AppStartError(
      'DataDirectory',
      `${dataDir} was used by a server that is no partition: the names of its objects are not claimed`,
      'choose an empty directory with --data; only home can be made of a server that has objects (--home)',
    )
  const directory = { name, number, id: randomBytes(16).toString('hex'), isBound: isUsed, keepClaimsUpTo: isUsed ? undefined : 0 }
  writePartitionDirectory(dataDir, directory)
  return directory
}

/**
 * Checks that a server that starts as no partition may use the directory.
 * @throws {AppStartError} because without its number it would assign resource versions that another partition may assign too.
 */
export function requireNoPartition(dataDir: string): void {
  const found = readPartitionIdentity(dataDir)
  if (!found) return
  throw new AppStartError(
    'DataDirectory',
    `${dataDir} is that of ${describe(found)}`,
    found.number === homeNumber
      ? 'start it with "oarlock serve --home"'
      : 'start it with "oarlock serve --partition <file>", the file that "oarlock partition add" wrote',
  )
}

const describe = ({ name, number }: PartitionIdentity) => `partition ${JSON.stringify(name)} (number ${number})`
