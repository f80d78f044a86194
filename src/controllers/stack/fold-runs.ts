import { endedPhases, isEnded, type Run, type RunPhase, type Stack, type StackStatus } from '../../api/index.ts'
import { rfc3339, setCondition } from '../../kubernetes/object/index.ts'
import { formatDone, formatFailed, formatPlanned, quote, type StackEvent } from './conditions.ts'
import { endedAtMs, inputsOf, isAdHocRun, isLifecycleRun, isLost, isSuperseded, phaseOf, planChanges, sameInputs } from './run-facts.ts'
import { countFailure } from './same-failure.ts'

/**
 * Brings a Stack's status up to date with its Runs, each ended Run counted exactly once: `lastRunNumber` and the phase in
 * `lastRun` say how far the counting has come, and they are written together with what was counted.
 *
 * `runs` are the Stack's own, oldest first. A Run that `lastRun` names as not ended and that is not among them has been
 * deleted (before it had a worker: later its finalizer keeps it until it has ended).
 */
export function foldRuns(stack: Stack, runs: readonly Run[], nowMs: number): { status: StackStatus; events: StackEvent[] } {
  const status: StackStatus = { ...stack.status }
  const events: StackEvent[] = []
  const countedTo = status.lastRunNumber ?? 0
  const lastWasCounted = status.lastRun !== undefined && endedPhases.includes(status.lastRun.phase as RunPhase)

  if (status.lastRun && !lastWasCounted && !runs.some(run => run.metadata.name === status.lastRun!.name)) {
    events.push({ type: 'Warning', reason: 'RunDeleted', message: `Run ${status.lastRun.name} was deleted before it ended` })
    status.lastRun = { ...status.lastRun, phase: 'Canceled', finishedAt: rfc3339(nowMs) }
  }

  let previous: Run | undefined
  for (const run of runs) {
    const { epoch } = run.spec
    if (epoch > countedTo) observeRun(status, run, previous)
    const isCounted = epoch < countedTo || (epoch === countedTo && lastWasCounted)
    if (isEnded(run) && !isCounted) count(stack, status, run, events, nowMs)
    if (isLifecycleRun(run)) previous = run
  }

  const newest = runs.at(-1)
  if (newest && newest.spec.epoch >= countedTo) {
    status.lastRunNumber = newest.spec.epoch
    status.lastRun = {
      name: newest.metadata.name,
      type: newest.spec.type,
      phase: phaseOf(newest),
      reason: newest.spec.reason,
      ...(isEnded(newest) && { finishedAt: newest.status?.finishedAt ?? rfc3339(endedAtMs(newest)) }),
    }
  }
  return { status, events }
}

/** A Run is seen for the first time: failures are counted anew for new inputs, and when somebody asked for it. */
export function observeRun(status: StackStatus, run: Pick<Run, 'spec'>, previous: Pick<Run, 'spec'> | undefined): void {
  if (isAdHocRun(run)) return
  if (run.spec.reason === 'Requested' || !previous || isNewAttempt(previous, run)) delete status.failures
  if (run.spec.reason === 'Requested') delete status.sameFailure
}

/**
 * True when `next` is more than another try at what `previous` tried. For a Destroy only a change of the spec is a new
 * start: new commits must not make one that fails run hot.
 */
export function isNewAttempt(previous: Pick<Run, 'spec'>, next: Pick<Run, 'spec'>): boolean {
  const isDestroy = next.spec.type === 'Destroy'
  if ((previous.spec.type === 'Destroy') !== isDestroy) return true
  return isDestroy ? previous.spec.stackRef.generation !== next.spec.stackRef.generation : !sameInputs(inputsOf(previous), inputsOf(next))
}

function count(stack: Stack, status: StackStatus, run: Run, events: StackEvent[], nowMs: number): void {
  const { name } = run.metadata
  const side = isAdHocRun(run)
  const at = run.status?.finishedAt ?? rfc3339(nowMs)
  if (isLost(run)) {
    if (run.status?.resources !== undefined && !side) status.resources = run.status.resources
    events.push({ type: 'Warning', reason: 'RunLost', message: withMessage(`Run ${name} was lost`, run) })
    return
  }
  switch (phaseOf(run)) {
    case 'Succeeded':
      if (!side) {
        delete status.failures
        delete status.sameFailure
      }
      succeeded(stack, status, run, at, events, nowMs)
      return
    case 'Failed':
      events.push({ type: 'Warning', reason: run.status?.reason ?? 'RunFailed', message: formatFailed(run).slice(0, -1) })
      if (side) return
      if (run.status?.resources !== undefined) status.resources = run.status.resources
      // A saved plan cannot be applied a second time after half of it was: it must be planned, and approved, again.
      if (run.spec.approvedPlan) delete status.plan
      if (isPlanOutdated(run)) return
      status.failures = (status.failures ?? 0) + 1
      countFailure(status, run)
      return
    case 'Canceled':
      if (isSuperseded(run)) return
      events.push({ type: 'Warning', reason: 'RunCanceled', message: withMessage(`Run ${name} was canceled`, run) })
      if (run.spec.approvedPlan) delete status.plan
      return
    case 'Lost':
    case 'Queued':
    case 'Assigned':
    case 'Preparing':
    case 'Planning':
    case 'Applying':
      throw new Error(`bug: Run ${name} is counted in phase ${phaseOf(run)}`)
  }
}

function succeeded(stack: Stack, status: StackStatus, run: Run, at: string, events: StackEvent[], nowMs: number): void {
  const { name } = run.metadata
  const generation = stack.metadata.generation ?? 1
  const inputs = inputsOf(run)
  const drift = (found: boolean, message: string) => {
    if (stack.spec.drift === 'Off') return
    const reason = found ? 'DriftFound' : 'InSync'
    const update = { type: 'Drifted', status: found ? 'True' : 'False', reason, message, observedGeneration: generation } as const
    status.conditions = setCondition(status.conditions, update, nowMs)
  }
  status.checkedAt = at
  switch (run.spec.type) {
    case 'Apply': {
      const changed = planChanges(run)
      takeOutputs(status, run)
      if (run.status?.resources !== undefined) status.resources = run.status.resources
      status.applied = { ...inputs, at, runName: name }
      delete status.plan
      drift(false, 'What stands is what the Stack says')
      const counts = run.status?.plan && changed ? `: ${formatDone(run.status.plan)}` : changed ? '' : ': nothing to change'
      const reason = run.spec.reason === 'DriftCheck' && changed ? 'DriftCorrected' : 'Applied'
      events.push({ type: 'Normal', reason, message: `Run ${name} applied${counts}` })
      return
    }
    case 'Plan': {
      const changes = planChanges(run)
      const counts = run.status?.plan ?? { add: 0, change: 0, destroy: 0 }
      const isDriftCheck = sameInputs(status.applied, inputs)
      if (isDriftCheck) {
        drift(changes, changes ? `Run ${name} found drift: ${formatPlanned(counts)}` : 'What stands is what the Stack says')
        if (changes) events.push({ type: 'Warning', reason: 'DriftFound', message: `Run ${name} found drift: ${formatPlanned(counts)}` })
      } else {
        const what = changes ? formatPlanned(counts) : 'nothing to change'
        events.push({ type: 'Normal', reason: 'Planned', message: `Run ${name} planned: ${what}` })
      }
      if (run.spec.stack.approval !== 'Manual') return
      if (!changes) {
        delete status.plan
        // Nothing to approve: what stands already is what these inputs ask for.
        if (!isDriftCheck) status.applied = { ...inputs, at, runName: name }
        if (run.status?.outputsDigest !== undefined) takeOutputs(status, run)
      } else if (run.status?.plan && (!isDriftCheck || stack.spec.drift !== 'Report' || run.spec.reason === 'Requested')) {
        const { digest, add, change, destroy } = run.status.plan
        status.plan = { digest, runName: name, ...inputs, add, change, destroy }
      }
      return
    }
    case 'Refresh':
      takeOutputs(status, run)
      if (run.status?.resources !== undefined) status.resources = run.status.resources
      events.push({ type: 'Normal', reason: 'Refreshed', message: `Run ${name} refreshed the state` })
      return
    case 'Destroy':
      delete status.applied
      delete status.plan
      delete status.outputs
      delete status.outputsDigest
      status.resources = 0
      events.push({ type: 'Normal', reason: 'Destroyed', message: `Run ${name} destroyed what the Stack had made` })
  }
}

function takeOutputs(status: StackStatus, run: Run): void {
  const { outputs, outputsDigest } = run.status ?? {}
  if (outputs) status.outputs = outputs
  else delete status.outputs
  if (outputsDigest) status.outputsDigest = outputsDigest
  else delete status.outputsDigest
}

/** True when an approved plan did not fit the world any more: no fault of the Stack, it is planned again. */
export function isPlanOutdated(run: Run): boolean {
  return run.spec.approvedPlan !== undefined && run.status?.reason === 'PlanOutdated'
}

function withMessage(text: string, run: Run): string {
  return run.status?.message ? `${text}: ${quote(run.status.message)}` : text
}
