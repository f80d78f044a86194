import type { RunStatus } from '../../../api/index.ts'
import { rfc3339 } from '../../../kubernetes/object/index.ts'
import { failureOfStop } from '../run/failure.ts'
import type { RunReporter } from '../run/run-reporter.ts'
import type { HollowProfile } from './profile.ts'

export type SimulatedRunOptions = {
  readonly reporter: RunReporter
  readonly profile: HollowProfile
  readonly random: () => number
  /** Resolves after `ms` milliseconds. */
  sleep(ms: number): Promise<void>
  /** The end of the Run is written from now on. */
  onEnding?(): void
}

type SimulatedRunResult = Partial<RunStatus> & Pick<RunStatus, 'phase'>

/**
 * Reports the phases of a real Run, separated by the durations of the profile, and executes nothing. Resolves with the final phase.
 * A cancellation is noticed with the next report, which finds a newer version of the Run.
 * @throws {StopError} if the Run is no longer this worker's, or its Lease may have expired.
 */
export async function simulateRun(work: SimulatedRunOptions): Promise<RunStatus['phase']> {
  const { reporter } = work
  const worked = await simulatePhases(work)
  const end = reporter.run.spec.cancel ? failureOfStop({ kind: 'Canceled' }, undefined) : worked
  work.onEnding?.()
  await reporter.reportPhase({ ...end, finishedAt: rfc3339(Date.now()) })
  return end.phase
}

async function simulatePhases({ reporter, profile, random, sleep }: SimulatedRunOptions): Promise<SimulatedRunResult> {
  const { phases, failureShare, changeShare } = profile
  const work = async (ms: number) => {
    if (ms > 0 && !reporter.run.spec.cancel) await sleep(ms)
  }
  reporter.reportStarted().catch(() => {})
  await work(phases.preparing(random()))
  reporter.reportPhaseSoon({ phase: 'Planning' }).catch(() => {})
  await work(phases.planning(random()))
  const hasChanges = random() < changeShare
  const plan = { digest: 'hollow', add: 0, change: hasChanges ? 1 : 0, destroy: 0 }
  const isApplied = hasChanges && reporter.run.spec.type !== 'Plan' && !reporter.run.spec.cancel
  if (isApplied) {
    reporter.reportPhaseSoon({ phase: 'Applying', plan }).catch(() => {})
    await work(phases.applying(random()))
  }
  if (random() < failureShare) {
    const reason = isApplied ? 'ApplyFailed' : 'PlanFailed'
    return { phase: 'Failed', plan, reason, message: 'simulated failure of a hollow worker', retryable: true }
  }
  return { phase: 'Succeeded', plan, changed: hasChanges, message: 'simulated by a hollow worker' }
}
