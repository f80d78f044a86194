import { isEnded, type Run, type RunPhase } from '../../api/index.ts'
import { reportProgressAfterMs } from './constants.ts'
import type { StackInput } from './decision.ts'
import { phaseOf } from './run-status.ts'

/**
 * While the active Run is too young to report its progress: the Runs with the active one in the phase that the status
 * reports, and when to decide again. Undefined when its phase is to be reported.
 */
export function coalesceProgress({ stack, runs, nowMs }: StackInput): { runs: readonly Run[]; requeueAfterMs: number } | undefined {
  const reported = stack.status?.lastRun
  const active = runs.find(run => run.metadata.name === reported?.name)
  if (!reported || !active || isEnded(active) || reported.phase === phaseOf(active)) return undefined
  const requeueAfterMs = Date.parse(active.status?.startedAt ?? active.metadata.creationTimestamp) + reportProgressAfterMs - nowMs
  // If the worker's clock is ahead, progress is reported immediately: the delay would last as long as the clocks differ.
  if (requeueAfterMs <= 0 || requeueAfterMs > reportProgressAfterMs) return undefined
  const unchanged: Run = { ...active, status: { ...active.status, phase: reported.phase as RunPhase } }
  return { runs: runs.map(run => (run === active ? unchanged : run)), requeueAfterMs }
}
