import { equalJson, isJsonObject } from '../../../kubernetes/object/index.ts'
import { containsTrue } from '../hide-sensitive.ts'
import { jsonDigest } from '../json-digest.ts'

/** Identifies the state snapshot that a plan is based on. Undefined for the user's own backend: then the plan's prior state is used. */
export type SnapshotMeta = { serial: number; lineage: string } | undefined

export type PlanSummary = { digest: string; add: number; change: number; destroy: number; hasChanges: boolean; summary: string[] }

type Action = 'add' | 'change' | 'replace' | 'destroy' | 'read' | 'forget' | 'move' | 'none'

/**
 * Reads `terraform show -json PLANFILE`: counts, a digest of the changes and of everything they depend on, and one line per change.
 * A replacement counts as one add and one destroy. The lines name what changes, without values.
 * @throws {TypeError} if the document is not a plan.
 */
export function readPlanJson(plan: unknown, state: SnapshotMeta): PlanSummary {
  if (!isJsonObject(plan) || typeof plan.format_version !== 'string') throw new TypeError('the engine did not print a plan in JSON')
  const changes = objects(plan.resource_changes).filter(change => actionOf(change) !== 'none')
  const drift = objects(plan.resource_drift)
  const outputs = Object.entries(isJsonObject(plan.output_changes) ? plan.output_changes : {}).filter(
    ([, change]) => isJsonObject(change) && !isNoOp(change),
  )
  // A refresh-only plan has no planned changes: it would write the drift to the state.
  const isRefreshOnly = objects(plan.resource_changes).length === 0 && drift.length > 0
  const counted = isRefreshOnly ? drift : changes
  const count = { add: 0, change: 0, destroy: 0 }
  for (const change of counted) {
    const action = actionOf(change)
    if (action === 'add' || action === 'replace') count.add++
    if (action === 'change') count.change++
    if (action === 'destroy' || action === 'replace') count.destroy++
  }
  const lines = [...counted.map(resourceLine), ...outputs.map(([name, change]) => outputLine(name, change as Record<string, unknown>))]
  const digest = jsonDigest({
    changes,
    drift: isRefreshOnly ? drift : undefined,
    outputs,
    variables: plan.variables,
    configuration: plan.configuration,
    state: state ?? { prior: plan.prior_state },
  })
  return { digest, ...count, hasChanges: counted.length > 0 || outputs.length > 0, summary: lines }
}

function actionOf(resource: Record<string, unknown>): Action {
  const change = isJsonObject(resource.change) ? resource.change : {}
  const actions = Array.isArray(change.actions) ? change.actions : []
  const has = (name: string) => actions.includes(name)
  if (has('create') && has('delete')) return 'replace'
  if (has('create')) return 'add'
  if (has('update')) return 'change'
  if (has('delete')) return 'destroy'
  if (has('forget')) return 'forget'
  if (has('read')) return 'read'
  return typeof resource.previous_address === 'string' || change.importing !== undefined ? 'move' : 'none'
}

const actionSymbols: Record<Action, string> = {
  add: '+',
  change: '~',
  replace: '-/+',
  destroy: '-',
  read: '<=',
  forget: 'x',
  move: '>',
  none: ' ',
}

function resourceLine(resource: Record<string, unknown>): string {
  const action = actionOf(resource)
  const address = String(resource.address)
  const change = isJsonObject(resource.change) ? resource.change : {}
  if (action === 'move')
    return `${actionSymbols.move} ${address} (${change.importing === undefined ? `was ${resource.previous_address}` : 'imported'})`
  if (action !== 'change' && action !== 'replace') return `${actionSymbols[action]} ${address}`
  const fields = changedFields(change)
  return fields.length === 0 ? `${actionSymbols[action]} ${address}` : `${actionSymbols[action]} ${address} (${fields.join(', ')})`
}

function outputLine(name: string, change: Record<string, unknown>): string {
  const actions = Array.isArray(change.actions) ? change.actions : []
  const symbol = actions.includes('delete') ? '-' : actions.includes('create') ? '+' : '~'
  return `${symbol} output ${name}`
}

/** The names of the top-level attributes that differ. */
function changedFields(change: Record<string, unknown>): string[] {
  const [before, after, unknown] = [change.before, change.after, change.after_unknown].map(side => (isJsonObject(side) ? side : {}))
  const names = [...new Set([before, after, unknown].flatMap(side => Object.keys(side!)))].sort()
  return names.filter(name => !equalJson(before![name] ?? null, after![name] ?? null) || containsTrue(unknown![name]))
}

function isNoOp(change: Record<string, unknown>): boolean {
  return Array.isArray(change.actions) && change.actions.every(action => action === 'no-op')
}

function objects(value: unknown): Record<string, unknown>[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : []
}
