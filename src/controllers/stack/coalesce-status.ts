import { endedPhases, phaseOf, type Run, type RunPhase } from '../../api/index.ts'
import { equalJson } from '../../kubernetes/object/index.ts'
import { reportProgressAfterMs } from './constants.ts'
import type { StackDecision } from './decision.ts'
import type { StackFacts } from './facts.ts'

/** The facts while a Run is active. */
export type ActiveFacts = StackFacts & { readonly active: Run }

/**
 * The decision that `build` returns, with the present status as long as the next one would report only the start or the progress
 * of a young Run. It is due again at {@link reportProgressAfterMs}, or with the end of the Run if that comes first: most Runs cost
 * one write of the status.
 *
 * A Run that has no worker is reported when `mayReportQueued` allows it (`queued-reports.ts`), and after that time if it has got one: in a long queue most
 * Stacks would otherwise need a write for that alone, and `observedGeneration` below the generation reports it anyway.
 *
 * Everything that the status would record is folded from the Run itself. Its epoch is not used again if it is deleted (invariant 3):
 * from its assignment on, the finalizer of dispatch keeps it until the status includes its end, and no worker had it before.
 */
export function coalesceStatus(facts: ActiveFacts, build: (facts: ActiveFacts) => StackDecision): StackDecision {
  const decision = build(facts)
  const { status } = facts.input.stack
  if (!status || isAction(decision)) return decision
  const { active } = facts
  const isStartReported = status.lastRun?.name === active.metadata.name
  const inMs = youngForMs(facts, isStartReported)
  const isHeld = !isStartReported && active.spec.workerName === undefined && facts.input.mayReportQueued === false
  if (inMs === undefined && !isHeld) return decision
  if (!(isStartReported ? isOnlyProgress(facts, build) : isOnlyStart(facts, decision))) return decision
  if (inMs === undefined) return { ...decision, status, isQueuedReportDue: true }
  return { ...decision, status, requeueAfterMs: Math.min(decision.requeueAfterMs ?? Infinity, inMs) }
}

/** True when the status would be the present one if the Run were still in the phase that it reports. */
function isOnlyProgress(facts: ActiveFacts, build: (facts: ActiveFacts) => StackDecision): boolean {
  const { input, record, runs, active } = facts
  const { status } = input.stack
  const phase = status?.lastRun?.phase as RunPhase
  if (phase === phaseOf(active) || endedPhases.includes(phase)) return false
  const { workerName, ...spec } = active.spec
  const reported: Run = {
    ...active,
    spec: phase === 'Queued' ? spec : active.spec,
    status: { ...active.status, phase },
  }
  const unchanged = build({
    ...facts,
    record: { ...record, lastRun: record.lastRun && { ...record.lastRun, phase } },
    runs: runs.map(run => (run === active ? reported : run)),
    active: reported,
  })
  return equalJson(unchanged.status, status)
}

/**
 * True when nothing else than the start of a Run for a new generation is new. Until it is reported, `observedGeneration` is lower
 * than the generation, which means by kstatus' conventions that the change is in progress.
 */
function isOnlyStart({ input, record, active }: ActiveFacts, { status }: StackDecision): boolean {
  const { metadata, status: present = {} } = input.stack
  const isInProgress = present.observedGeneration !== metadata.generation && active.spec.reason === 'NewGeneration'
  return isInProgress && !record.plan && equalJson(withoutStart(status), withoutStart(present))
}

/** What a later decision could not fold from the Run. */
function withoutStart({
  observedGeneration: _,
  conditions: _c,
  nextRunAt: _n,
  lastRun: _l,
  lastRunNumber: _r,
  ...rest
}: StackDecision['status']) {
  return rest
}

/** How long the Run remains too young to be reported; undefined if it is not. */
function youngForMs({ input, active }: ActiveFacts, isStartReported: boolean): number | undefined {
  const { spec, status, metadata } = active
  // A Run that is to be created has no creationTimestamp yet.
  const since = (isStartReported ? (status?.startedAt ?? spec.assignedAt) : spec.assignedAt) ?? metadata.creationTimestamp
  const inMs = (since === undefined ? input.nowMs : Date.parse(since)) + reportProgressAfterMs - input.nowMs
  // A clock that is ahead would delay the report for as long as the clocks differ.
  return inMs > 0 && inMs <= reportProgressAfterMs ? inMs : undefined
}

/** The creation of a Run does not need the status, and neither does the event that reports it. */
function isAction({ status: _, requeueAfterMs: _r, createRun, deleteRuns, events, ...actions }: StackDecision): boolean {
  const isOnlyCreation = createRun !== undefined && events.every(({ reason }) => reason === 'RunCreated')
  return Object.keys(actions).length + deleteRuns.length > 0 || (events.length > 0 && !isOnlyCreation)
}
