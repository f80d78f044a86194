import { endedPhases, type Run, type RunPhase } from '../../api/index.ts'
import { reportProgressAfterMs } from './constants.ts'
import type { StackFacts } from './facts.ts'
import { phaseOf } from './run-status.ts'

/**
 * While the active Run is too young to report its progress: the facts with the phase that the status reports, and when to
 * decide again. Undefined when its phase is to be reported.
 */
export function coalesceProgress(
  { input, record, runs, ...facts }: StackFacts,
  active: Run,
): { facts: StackFacts; active: Run; requeueAfterMs: number } | undefined {
  const reported = input.stack.status?.lastRun
  const phase = reported?.phase as RunPhase
  if (reported?.name !== active.metadata.name || phase === phaseOf(active) || endedPhases.includes(phase)) return undefined
  const startedAtMs = Date.parse(active.status?.startedAt ?? active.metadata.creationTimestamp)
  const requeueAfterMs = startedAtMs + reportProgressAfterMs - input.nowMs
  // If the worker's clock is ahead, progress is reported immediately: the delay would last as long as the clocks differ.
  if (requeueAfterMs <= 0 || requeueAfterMs > reportProgressAfterMs) return undefined
  const unchanged: Run = { ...active, status: { ...active.status, phase } }
  const lastRun = record.lastRun && { ...record.lastRun, phase }
  return {
    facts: {
      ...facts,
      input,
      record: { ...record, lastRun },
      runs: runs.map(run => (run === active ? unchanged : run)),
      active: unchanged,
    },
    active: unchanged,
    requeueAfterMs,
  }
}
