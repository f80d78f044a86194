import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { writeSecretFile } from '../../kubernetes/server/index.ts'
import { makeDirectories } from '../../kubernetes/util/index.ts'
import { AppStartError } from '../app-start-error.ts'

/** Which partition a data directory is that of. */
export type PartitionIdentity = { readonly name: string; readonly number: number }

export const homeNumber = 0

const fileOf = (dataDir: string) => join(dataDir, 'partition.json')

export function readPartitionIdentity(dataDir: string): PartitionIdentity | undefined {
  const path = fileOf(dataDir)
  if (!existsSync(path)) return undefined
  try {
    const { name, number } = JSON.parse(readFileSync(path, 'utf8')) as Partial<PartitionIdentity>
    if (typeof name === 'string' && typeof number === 'number') return { name, number }
  } catch {
    // As below.
  }
  throw new AppStartError(
    'DataDirectory',
    `${path} is damaged`,
    'restore it from a backup: {"name": <name of the Partition>, "number": <its spec.number>}',
  )
}

/**
 * Records that the data directory is that of this partition.
 * @throws {AppStartError} if it is that of another one, or has objects of a server that was no partition: their names are not claimed.
 */
export function recordPartitionIdentity(dataDir: string, { name, number }: PartitionIdentity): void {
  const found = readPartitionIdentity(dataDir)
  if (found) {
    if (found.name === name && found.number === number) return
    throw new AppStartError(
      'DataDirectory',
      `${dataDir} is that of ${describe(found)}, and not of ${describe({ name, number })}`,
      'choose another directory with --data, or the configuration of that partition',
    )
  }
  if (number !== homeNumber && existsSync(join(dataDir, 'oarlock.db')))
    throw new AppStartError(
      'DataDirectory',
      `${dataDir} was used by a server that is no partition: the names of its objects are not claimed`,
      'choose an empty directory with --data; only home can be made of a server that has objects (--home)',
    )
  makeDirectories(dataDir, 0o700)
  writeSecretFile(fileOf(dataDir), `${JSON.stringify({ name, number })}\n`)
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
