import { equalJson, isJsonObject } from '../../../kubernetes/object/index.ts'
import { jsonDigest } from '../json-digest.ts'

/** Identifies the state snapshot that a plan is based on. Undefined for the user's own backend: then the plan's prior state is used. */
export type SnapshotMeta = { serial: number; lineage: string } | undefined

export type PlanSummary = { digest: string; add: number; change: number; destroy: number; hasChanges: boolean; summary: string[] }

type Action = 'add' | 'change' | 'replace' | 'destroy' | 'read' | 'forget' | 'move' | 'none'

const maxSummaryLines = 200
const maxValueLength = 60

/**
 * Reads `terraform show -json PLANFILE`: counts, a digest of the changes and of everything they depend on, and one line per change.
 * A replacement counts as one add and one destroy. Values that Terraform marks sensitive do not appear (invariant 9).
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
  return { digest, ...count, hasChanges: counted.length > 0 || outputs.length > 0, summary: truncate(lines) }
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
  const value = (side: 'before' | 'after') => sideText(change[side], change[`${side}_sensitive`], side === 'after' && change.after_unknown)
  if (symbol === '-') return `- output ${name}`
  return symbol === '+' ? `+ output ${name} = ${value('after')}` : `~ output ${name}: ${value('before')} → ${value('after')}`
}

/** The top-level attributes that differ, as `input: "a" → "b"`. */
function changedFields(change: Record<string, unknown>): string[] {
  const before = isJsonObject(change.before) ? change.before : {}
  const after = isJsonObject(change.after) ? change.after : {}
  const unknown = change.after_unknown
  const names = [...new Set([...Object.keys(before), ...Object.keys(after), ...Object.keys(isJsonObject(unknown) ? unknown : {})])].sort()
  return names.flatMap(name => {
    const isUnknown = isJsonObject(unknown) ? unknown[name] : unknown
    const left = sideText(before[name], sensitivityOf(change.before_sensitive, name), false)
    const right = sideText(after[name], sensitivityOf(change.after_sensitive, name), isUnknown)
    const isSame = equalJson(before[name] ?? null, after[name] ?? null) && !containsTrue(isUnknown)
    return isSame ? [] : [`${name}: ${left} → ${right}`]
  })
}

function sensitivityOf(sensitive: unknown, name: string): unknown {
  return isJsonObject(sensitive) ? sensitive[name] : sensitive
}

function sideText(value: unknown, sensitive: unknown, unknown: unknown): string {
  if (containsTrue(sensitive)) return '(sensitive value)'
  if (containsTrue(unknown)) return '(known after apply)'
  if (value === undefined) return 'null'
  const text = JSON.stringify(value)
  return text.length > maxValueLength ? `${text.slice(0, maxValueLength - 1)}…` : text
}

/** Terraform marks a whole value with `true`, and parts of a value with a nested structure that contains `true`. */
function containsTrue(marks: unknown): boolean {
  if (marks === true) return true
  if (typeof marks !== 'object' || marks === null) return false
  return Object.values(marks).some(containsTrue)
}

function isNoOp(change: Record<string, unknown>): boolean {
  return Array.isArray(change.actions) && change.actions.every(action => action === 'no-op')
}

function truncate(lines: string[]): string[] {
  if (lines.length <= maxSummaryLines) return lines
  return [...lines.slice(0, maxSummaryLines), `… and ${lines.length - maxSummaryLines} more`]
}

function objects(value: unknown): Record<string, unknown>[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : []
}
