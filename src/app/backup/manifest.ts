import { isJsonObject } from '../../kubernetes/object/index.ts'
import { AppStartError } from '../app-start-error.ts'
import type { Generation } from '../discovery/index.ts'
import { findInvalidField } from './manifest-fields.ts'

/** The first file of a backup. It lists the others, and what is missing. */
export type BackupManifest = {
  readonly format: typeof backupFormat
  readonly formatVersion: number
  /** The version of Oarlock that created it. */
  readonly oarlock: string
  readonly createdAt: string
  readonly files: readonly BackedUpFile[]
  /** Undefined when the backup has no objects. */
  readonly objects?: {
    readonly count: number
    /** The newest resource version: every write up to it is included. */
    readonly revision: number
    /** Number of encrypted objects by the name of their key. */
    readonly encrypted: Readonly<Record<string, number>>
  }
  /** Undefined when the backup has no states. */
  readonly states?: {
    readonly stacks: number
    readonly versions: number
    readonly orphans: number
    readonly plans: number
    readonly locks: number
    /** Identifies the key that states and plans are encrypted with. */
    readonly key: string
    readonly stores: { readonly id: string; readonly generation: Generation }
  }
  readonly logs?: { readonly count: number }
  readonly keys?: { readonly names: readonly string[] }
  readonly omitted: readonly Omission[]
}

export type BackedUpFile = { readonly name: string; readonly size: number; readonly sha256: string }
export type Omission = { readonly what: string; readonly reason: string }

export const backupFormat = 'oarlock-backup'
export const backupFormatVersion = 1
export const manifestFile = 'manifest.json'

/** A name of a log in its archive: anything else could be a path elsewhere. */
export const isLogFile = (name: string): boolean => /^[a-z0-9][a-z0-9-]{0,62}\/[a-z0-9][a-z0-9.-]{0,220}\.(log|meta|times)$/.test(name)

/** Why a backup has no states if a user wanted none. With any other reason, a Stack that has a state misses it. */
export const objectsOnlyReason = '--objects-only was passed'

export const isObjectsOnly = ({ omitted }: BackupManifest): boolean =>
  omitted.some(({ what, reason }) => what === 'states' && reason === objectsOnlyReason)

/** A larger manifest is not read: it lists at most four files. */
export const maxManifestBytes = 1024 * 1024

/** @throws {AppStartError} for a manifest that this version cannot read. */
export function parseManifest(text: string, path: string): BackupManifest {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    value = undefined
  }
  if (!isJsonObject(value) || value.format !== backupFormat) throw notABackup(path)
  if (value.formatVersion !== backupFormatVersion) {
    throw new AppStartError(
      'DataDirectory',
      `${path} has backup format ${value.formatVersion}, this version of oarlock reads ${backupFormatVersion}`,
      `use oarlock ${value.oarlock}, which created it`,
    )
  }
  const invalid = findInvalidField(value)
  if (invalid !== undefined) throw damaged(path, `the field ${invalid} of ${manifestFile} is not valid`)
  return value as unknown as BackupManifest
}

export const notABackup = (path: string, cause?: unknown): AppStartError =>
  new AppStartError('DataDirectory', `${path} is not an oarlock backup`, 'pass a file that "oarlock backup" created', cause)

/** Why a backup cannot be used: an interrupted copy, or a damaged disk. */
export const damaged = (path: string, problem: string, cause?: unknown): AppStartError =>
  new AppStartError('DataDirectory', `${path} is damaged: ${problem}`, 'use another backup', cause)
