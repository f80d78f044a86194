import { isJsonObject } from '../../../kubernetes/object/index.ts'
import type { SnapshotMeta } from './read-plan-json.ts'

/** The parts of a Terraform state that Oarlock needs. */
export type EngineStateSummary = { meta: NonNullable<SnapshotMeta>; resources: number }

const empty: EngineStateSummary = { meta: { serial: 0, lineage: '' }, resources: 0 }

/**
 * Serial, lineage, and number of managed resource instances (not data sources) of a state in format 4. Missing or empty text is an empty state.
 * @throws {TypeError} for anything else.
 */
export function readState(text: string | undefined): EngineStateSummary {
  if (text === undefined || text.trim() === '') return empty
  const state: unknown = JSON.parse(text)
  if (!isJsonObject(state) || typeof state.serial !== 'number')
    throw new TypeError('the state has no serial number, so it is not a Terraform state')
  const resources = (Array.isArray(state.resources) ? state.resources : []).filter(isJsonObject)
  const managed = resources.filter(({ mode }) => mode === 'managed')
  const count = managed.reduce((sum, { instances }) => sum + (Array.isArray(instances) ? instances.length : 0), 0)
  return { meta: { serial: state.serial, lineage: typeof state.lineage === 'string' ? state.lineage : '' }, resources: count }
}
