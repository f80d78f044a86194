import type { RunStatus } from '../../../api/index.ts'
import { rfc3339 } from '../../../kubernetes/object/index.ts'
import { failureOfStop } from '../run/failure.ts'
import type { RunReporter } from '../run/run-reporter.ts'
import type { HollowProfile } from './profile.ts'

export type SimulatedRunOptions = {
  readonly reporter: RunReporter
  readonly profile: HollowProfile
  readonly random: () => number
  /** Waits so many milliseconds. */
  sleep(ms: number): Promise<void>
}

type RunResult = Partial<RunStatus> & Pick<RunStatus, 'phase'>

/**
 * Reports a Run through the phases that a real one goes through, with the times of the profile between them and nothing done. Resolves
 * with the phase it ended in. That it was canceled is noticed with the next report, which finds a newer version.
 * @throws {StopError} when the Run is not ours any more, or the Lease may have run out.
 */
export async function simulateRun(work: SimulatedRunOptions): Promise<RunStatus['phase']> {
  const { reporter } = work
  const worked = await simulatePhases(work)
  const end = reporter.run.spec.cancel ? failureOfStop({ kind: 'Canceled' }, undefined) : worked
  await reporter.reportPhase({ ...end, finishedAt: rfc3339(Date.now()) })
  return end.phase
}

async function simulatePhases({ reporter, profile, random, sleep }: SimulatedRunOptions): Promise<RunResult> {
  const { phases, failureShare, changeShare } = profile
  const work = async (ms: number) => {
    if (ms > 0 && !reporter.run.spec.cancel) await sleep(ms)
  }
  await reporter.reportStarted()
  await work(phases.preparing(random()))
  reporter.reportPhaseSoon({ phase: 'Planning' }).catch(() => {})
  await work(phases.planning(random()))
  const hasChanges = random() < changeShare
  const plan = { digest: 'hollow', add: 0, change: hasChanges ? 1 : 0, destroy: 0 }
  const isApplied = hasChanges && reporter.run.spec.type !== 'Plan' && !reporter.run.spec.cancel
  if (isApplied) {
    await reporter.reportPhase({ phase: 'Applying', plan })
    await work(phases.applying(random()))
  }
  if (random() < failureShare) {
    const reason = isApplied ? 'ApplyFailed' : 'PlanFailed'
    return { phase: 'Failed', plan, reason, message: 'a hollow worker fails as often as its profile says', retryable: true }
  }
  return { phase: 'Succeeded', plan, changed: hasChanges, message: 'a hollow worker did nothing' }
}
