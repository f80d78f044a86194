import { crashReasons, isEnded, type Run } from '../../api/index.ts'
import { inputsOf, type SpecVersion } from './inputs.ts'
import { isLost, isUnattempted } from './run-status.ts'

/** Number of consecutive Runs of a generation that must crash their workers before the Stack gets no further Run. */
export const crashLimit = 3

/**
 * The newest Runs that have crashed their workers, the newest first. Runs that were lost for another reason are ignored: a machine that fails, or a
 * controller that restarts and does not see the exit, changes nothing. A Run that a user requested is the first that counts.
 */
export function consecutiveCrashes(runs: readonly Run[], current: SpecVersion, filter: (run: Run) => boolean): readonly Run[] {
  const crashes: Run[] = []
  for (const run of runs.toReversed()) {
    if (!isEnded(run) || isUnattempted(run) || !filter(run)) continue
    if (!isLost(run)) break
    if (run.status?.phase === 'Lost' && crashReasons.some(reason => reason === run.status?.reason)) {
      if (inputsOf(run, current, 'execution').generation !== current.generation) break
      crashes.push(run)
    }
    if (run.spec.reason === 'Requested') break
  }
  return crashes
}
