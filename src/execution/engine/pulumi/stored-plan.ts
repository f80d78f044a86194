import { isJsonObject } from '../../../kubernetes/object/index.ts'
import type { EngineContext, PlanResult } from '../engine.ts'
import { EngineError } from '../engine-error.ts'
import { maxPlanBytes } from '../file-limits.ts'
import { jsonDigest } from '../json-digest.ts'

/** What is stored of a plan for its approval, and what `apply` reads. */
export type StoredPlan = {
  readonly engine: 'pulumi'
  readonly intent: PlanResult['intent']
  readonly counts: Pick<PlanResult, 'add' | 'change' | 'destroy'>
  readonly hasChanges: boolean
  /** Options of the preview that the update needs too: targets, replace, refresh. */
  readonly options: readonly string[]
  /** Lines that describe the changes, for operations without a plan of the CLI. */
  readonly summary: readonly string[]
  /** The CLI's own plan (`--save-plan`), which constrains the update. Undefined: it has none for this operation. */
  readonly constraint?: string
}

/** What a plan was made for: it applies only as long as these are the same. */
export type PlannedFor = {
  /** Version of the state; 0 without one. Of a state elsewhere, its digest. */
  readonly stateVersion: number | string
  readonly configDigest: string
}

/** Covers the plan, the source, the configuration and the state. */
export function planDigest(context: Pick<EngineContext, 'sourceDigest'>, plan: StoredPlan, plannedFor: PlannedFor): string {
  return jsonDigest({ plan, source: context.sourceDigest, ...plannedFor })
}

export async function readStoredPlan(context: EngineContext, file: string): Promise<StoredPlan> {
  const text = await context.files.readText(file, { maxBytes: maxPlanBytes })
  const plan: unknown = JSON.parse(text ?? 'null')
  if (isJsonObject(plan) && plan.engine === 'pulumi') return plan as StoredPlan
  throw new EngineError('PlanOutdated', 'the stored plan is not one of engine pulumi; plan again', { retryable: true })
}
