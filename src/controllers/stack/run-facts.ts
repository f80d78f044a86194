import { isEnded, isMutating, type Run, type RunPhase } from '../../api/index.ts'

/** What an Apply depends on. Two Runs with equal inputs would do the same. */
export type Inputs = { readonly generation: number; readonly revision: string; readonly inputsDigest: string }

export function inputsOf(run: Pick<Run, 'spec'>): Inputs {
  const { stackRef, revision, inputsDigest } = run.spec
  return { generation: stackRef.generation, revision, inputsDigest }
}

export function sameInputs(a: Inputs | undefined, b: Inputs | undefined): boolean {
  return (
    a !== undefined && b !== undefined && a.generation === b.generation && a.revision === b.revision && a.inputsDigest === b.inputsDigest
  )
}

/** Why `now` asks for a Run when `before` is what was last applied. */
export function changeReason(before: Inputs | undefined, now: Inputs): 'NewGeneration' | 'SourceChanged' | 'InputsChanged' {
  if (before === undefined || before.generation !== now.generation) return 'NewGeneration'
  return before.revision !== now.revision ? 'SourceChanged' : 'InputsChanged'
}

/** A Run without a status is Queued. */
export function phaseOf(run: Run): RunPhase {
  return run.status?.phase ?? 'Queued'
}

/**
 * True for a Run that somebody asked for and that the Stack's own course does not hang on: a Refresh, or a Plan where
 * nobody approves. How it ends is reported; it is neither retried nor does it change whether the Stack is Ready.
 */
export function isAdHocRun(run: Pick<Run, 'spec'>): boolean {
  const { type, reason, stack } = run.spec
  return type === 'Refresh' || (type === 'Plan' && reason === 'Requested' && stack.approval !== 'Manual')
}

/** True for a Run that a newer one replaced while it waited: nothing was tried, and nothing follows from it. */
export function isSuperseded(run: Pick<Run, 'status'>): boolean {
  return run.status?.phase === 'Canceled' && run.status.reason === 'Superseded'
}

/** True for a Run that says how the Stack's own course goes. */
export function isLifecycleRun(run: Run): boolean {
  return !isAdHocRun(run) && !isSuperseded(run)
}

/** True when the Run may have touched the world: it may write, and a worker had it. */
export function mayHaveWritten(run: Run): boolean {
  return isMutating(run.spec.type) && (run.spec.workerName !== undefined || run.status?.startedAt !== undefined)
}

/** True when the plan of this Run would change something; outputs count, therefore `changed` is looked at too. */
export function planChanges(run: Run): boolean {
  const { plan, changed } = run.status ?? {}
  return changed === true || (plan !== undefined && plan.add + plan.change + plan.destroy > 0)
}

/** When an ended Run ended; a Run that does not say counts as ended when it was created. */
export function endedAtMs(run: Run): number {
  return Date.parse(run.status?.finishedAt ?? run.metadata.creationTimestamp)
}

/** The Stack's own Runs, oldest first. A Run of a Stack of the same name that is gone has another uid. */
export function ownRuns(runs: readonly Run[], uid: string): Run[] {
  return runs.filter(run => run.spec.stackRef.uid === uid).sort((a, b) => a.spec.epoch - b.spec.epoch)
}

/** Ends that say something of the worker, and nothing of the Stack: its hands were taken away. */
const handReasons = new Set(['WorkerDrained', 'LeaseLost', 'SupervisorLost'])

/** True for a Run that ended because its worker did: it is continued at once, and is no failure of the Stack. */
export function isLost(run: Run): boolean {
  const phase = phaseOf(run)
  return phase === 'Lost' || (phase === 'Failed' && handReasons.has(run.status?.reason ?? ''))
}

/** How many of the newest ended Runs that satisfy `among` are lost ({@link isLost}), without another one between. */
export function lostInARow(runs: readonly Run[], among: (run: Run) => boolean): number {
  let count = 0
  for (let i = runs.length - 1; i >= 0; i--) {
    const run = runs[i]!
    if (!isEnded(run) || isSuperseded(run) || !among(run)) continue
    if (!isLost(run)) break
    count++
  }
  return count
}
