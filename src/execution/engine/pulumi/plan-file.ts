import { isJsonObject, type Json } from '../../../kubernetes/object/index.ts'
import type { Resource } from '../../../stores/pulumi/index.ts'
import { hasUnknown, hideSecrets } from './secret-marks.ts'
import { isCounted, nameOf, rootType, typeOf } from './urn.ts'

/** What a plan or a preview does with resources. A replacement counts as one added and one destroyed. */
export type ResourceChanges = { readonly add: number; readonly change: number; readonly destroy: number }

/** One resource that would change. `actions` are those of the CLI, such as create, update, delete, create-replacement. */
export type ResourceChange = { readonly urn: string; readonly type: string; readonly actions: readonly string[]; readonly document: Json }

export type ParsedPlan = {
  readonly counts: ResourceChanges
  /** Something would change in resources, in the state or in the outputs. */
  readonly hasChanges: boolean
  readonly changes: readonly ResourceChange[]
}

/** Steps after which nothing differs from the state. */
const unchanging: readonly string[] = ['same', 'read', 'read-discard', 'read-replacement']

/**
 * Reads what `pulumi preview --save-plan` writes: steps and goal of each resource.
 * @param resources of the state that the plan was made for: the CLI also stores changes for which it reports the step "same".
 * @param isSelected whether the resource is one of the targets. For others the plan has the step "same" too, and what the program wants.
 * @throws {TypeError} if `text` is not a plan.
 */
export function parsePlanFile(text: string, resources: readonly Resource[], isSelected: (urn: string) => boolean = () => true): ParsedPlan {
  const plan: unknown = JSON.parse(text)
  if (!isJsonObject(plan) || !isJsonObject(plan.resourcePlans)) throw new TypeError('the plan of the CLI has no resourcePlans')
  const before = new Map(resources.filter(each => each.delete !== true).map(each => [each.urn, each]))
  const counts = { add: 0, change: 0, destroy: 0 }
  const changes: ResourceChange[] = []
  let hasChanges = false
  for (const [urn, planned] of Object.entries(plan.resourcePlans).sort(([a], [b]) => (a < b ? -1 : 1))) {
    if (!isJsonObject(planned)) continue
    const goal = isJsonObject(planned.goal) ? planned.goal : {}
    const actions = (Array.isArray(planned.steps) ? planned.steps : []).filter(step => typeof step === 'string')
    const effective = actions.filter(step => !unchanging.includes(step))
    // Outputs of the stack that depend on resources which are no targets remain unknown, also after the update.
    const outputDiff = isSelected(urn) ? goal.outputDiff : withoutUnknownAdds(goal.outputDiff)
    const isStateChange = () => hasDiff(outputDiff) || isMovedOrProtected(goal, before.get(urn))
    const isChange = effective.length > 0 || ((isSelected(urn) || typeOf(urn) === rootType) && isStateChange())
    if (!isChange) continue
    hasChanges = true
    if (isCounted(urn)) addSteps(counts, effective)
    const difference = hideSecrets({ inputs: goal.inputDiff ?? {}, outputs: goal.outputDiff ?? {} })
    changes.push({ urn, type: typeOf(urn), actions: effective.length > 0 ? effective : ['state'], document: difference })
  }
  return { counts, hasChanges, changes }
}

/**
 * The plan with the resources of which a refresh before it has changed only the state: the CLI stores that, and does not plan it. They are not counted,
 * since nothing is done with them.
 */
export function withRefreshed(plan: ParsedPlan, observed: readonly ResourceChange[]): ParsedPlan {
  const planned = new Set(plan.changes.map(({ urn }) => urn))
  const refreshed = observed.filter(({ urn, actions }) => actions.includes('refresh') && !planned.has(urn))
  if (refreshed.length === 0) return plan
  const changes = [...plan.changes, ...refreshed.map(each => ({ ...each, actions: ['refresh'] }))]
  return { ...plan, hasChanges: true, changes: changes.sort((a, b) => (a.urn < b.urn ? -1 : 1)) }
}

export function addSteps(counts: { add: number; change: number; destroy: number }, steps: readonly string[]): void {
  if (steps.some(step => step === 'replace' || step === 'create-replacement')) {
    counts.add++
    counts.destroy++
  } else if (steps.includes('create') || steps.includes('import')) counts.add++
  else if (steps.includes('update')) counts.change++
  else if (steps.some(step => step.startsWith('delete') || step === 'discard')) counts.destroy++
  else if (steps.includes('refresh')) counts.change++
}

/** Whether a list of changes leaves it out, as the counts do: the stack itself and its providers, unless something about them changes. */
export const isImplied = ({ urn, actions }: ResourceChange): boolean =>
  !isCounted(urn) && actions.every(action => action === 'create' || action === 'delete')

/** One line per change, without values. */
export function formatChange({ urn, type, actions }: ResourceChange): string {
  if (type === rootType && actions.includes('state')) return '~ outputs of the stack: changed'
  const isReplaced = actions.some(action => action.includes('replace'))
  const action = isReplaced ? 'replace' : (actions[0] ?? 'change')
  const symbol = { create: '+', import: '+', update: '~', delete: '-', discard: '-', replace: '+-', refresh: '~' }[action] ?? '~'
  return `${symbol} ${type} ${nameOf(urn)}: ${action === 'state' || action === 'refresh' ? 'only its state or outputs' : action}`
}

const hasDiff = (diff: unknown): boolean =>
  isJsonObject(diff) &&
  ['adds', 'updates', 'deletes'].some(field => {
    const part = diff[field]
    return Array.isArray(part) ? part.length > 0 : isJsonObject(part) && Object.keys(part).length > 0
  })

function withoutUnknownAdds(diff: unknown): unknown {
  if (!isJsonObject(diff) || !isJsonObject(diff.adds)) return diff
  return { ...diff, adds: Object.fromEntries(Object.entries(diff.adds).filter(([, value]) => !hasUnknown(value))) }
}

/** The CLI stores these although it reports "same". Without an update they would stay as they were. */
function isMovedOrProtected(goal: Record<string, unknown>, resource: Resource | undefined): boolean {
  if (Object.keys(goal).length === 0) return false
  if (!resource) return true
  const isDifferent = (name: string, otherwise: unknown) => (goal[name] ?? otherwise) !== (resource[name] ?? otherwise)
  const names = (value: unknown) => (Array.isArray(value) ? [...value].sort().join('\n') : '')
  return (
    isDifferent('protect', false) ||
    isDifferent('retainOnDelete', false) ||
    isDifferent('parent', '') ||
    isDifferent('deletedWith', '') ||
    names(goal.dependencies) !== names(resource.dependencies)
  )
}
