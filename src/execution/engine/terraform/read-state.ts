import { constants } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { isJsonObject } from '../../../kubernetes/object/index.ts'
import type { SnapshotMeta } from './read-plan-json.ts'

/** The parts of a Terraform state that Oarlock needs. */
export type StateSummary = { meta: NonNullable<SnapshotMeta>; resources: number }

const empty: StateSummary = { meta: { serial: 0, lineage: '' }, resources: 0 }

/**
 * Serial, lineage, and number of managed resource instances (not data sources) of a state in format 4. Missing or empty text is an empty state.
 * @throws {TypeError} for anything else.
 */
export function readState(text: string | undefined): StateSummary {
  if (text === undefined || text.trim() === '') return empty
  const state: unknown = JSON.parse(text)
  if (!isJsonObject(state) || typeof state.serial !== 'number')
    throw new TypeError('the state has no serial number, so it is not a Terraform state')
  const resources = (Array.isArray(state.resources) ? state.resources : []).filter(isJsonObject)
  const managed = resources.filter(({ mode }) => mode === 'managed')
  const count = managed.reduce((sum, { instances }) => sum + (Array.isArray(instances) ? instances.length : 0), 0)
  return { meta: { serial: state.serial, lineage: typeof state.lineage === 'string' ? state.lineage : '' }, resources: count }
}

/** An engine may have replaced the file with a symlink that leaves its sandbox, or with a pipe that has no writer. */
const regularFileFlags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK

/** The content of a regular file, or undefined if it does not exist. */
export async function readIfPresent(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, { encoding: 'utf8', flag: regularFileFlags })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
