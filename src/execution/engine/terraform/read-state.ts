import { constants } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { isJsonObject } from '../../../kubernetes/object/index.ts'
import type { SnapshotMeta } from './read-plan-json.ts'

/** A Terraform state as far as we look into it. */
export type StateSummary = { meta: NonNullable<SnapshotMeta>; resources: number }

const empty: StateSummary = { meta: { serial: 0, lineage: '' }, resources: 0 }

/**
 * Serial, lineage, and how many resource instances (not data sources) a state in format 4 has; an absent or empty file is an empty state.
 * @throws {TypeError} for anything else.
 */
export function readState(text: string | undefined): StateSummary {
  if (text === undefined || text.trim() === '') return empty
  const state: unknown = JSON.parse(text)
  if (!isJsonObject(state) || typeof state.serial !== 'number')
    throw new TypeError('the state has no serial number: it is no Terraform state')
  const resources = (Array.isArray(state.resources) ? state.resources : []).filter(isJsonObject)
  const managed = resources.filter(({ mode }) => mode === 'managed')
  const count = managed.reduce((sum, { instances }) => sum + (Array.isArray(instances) ? instances.length : 0), 0)
  return { meta: { serial: state.serial, lineage: typeof state.lineage === 'string' ? state.lineage : '' }, resources: count }
}

/** What an engine left may be a link out of its sandbox, or a pipe that nobody writes to. */
const plainFile = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK

/** The content of a plain file, or undefined if there is none. */
export async function readIfPresent(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, { encoding: 'utf8', flag: plainFile })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
