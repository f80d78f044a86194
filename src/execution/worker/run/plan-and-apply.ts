import { join } from 'node:path'
import { oarlockCommand, type Run, type RunStatus } from '../../../api/index.ts'
import type { StateClient } from '../../../stores/state/index.ts'
import { type ApplyResult, type Engine, type EngineContext, EngineError, maxPlanBytes, type PlanResult } from '../../engine/index.ts'
import { formatPlan, phaseLines } from './format-run.ts'
import { stringsIn } from './inputs.ts'
import { markSecretOutputs, outputsData, outputsDigest, publicOutputs } from './outputs.ts'
import type { PhaseClock } from './phase-clock.ts'
import type { RunLog } from './run-log.ts'
import type { RunReporter } from './run-reporter.ts'
import type { RunResult } from './run-result.ts'
import type { RunStopper } from './run-stopper.ts'
import { isExceededLimit, RunStoppedError } from './stop-cause.ts'
import { storedDiff } from './stored-diff.ts'

export type PlanAndApplyOptions = {
  run: Run
  engine: Pick<Engine, 'plan' | 'readPlan' | 'readOutputs' | 'apply'>
  context: EngineContext
  state: Pick<StateClient, 'getPlan' | 'putPlan' | 'putDiff' | 'putConfiguration' | 'putOutputs' | 'deleteOutputs'>
  /** What the Run applies, for its destruction; undefined for a Run that applies nothing. */
  configuration: Buffer | undefined
  reporter: Pick<RunReporter, 'reportPhaseSoon'>
  /** The isolation in force, for the status. */
  isolation: RunStatus['isolation']
  phases: PhaseClock
  stopper: RunStopper
  log: RunLog
}

/**
 * The phases Planning and Applying. A Plan ends after its plan, which is kept for approval where the Stack requires one, and writes the
 * outputs if nothing is to be approved; any other Run applies its own plan, or exactly the approved one (invariant 11), and writes the outputs.
 * @throws {EngineError} of the engine; PlanOutdated if the approved plan no longer applies. {StopError} if the Run is stopped.
 */
export async function planAndApply(options: PlanAndApplyOptions): Promise<RunResult> {
  const { run, engine, context, state, reporter, stopper, log, phases } = options
  const { type, planMode, approvedPlan, options: runOptions } = run.spec
  const isDestruction = type === 'Destroy' || planMode === 'Destroy'
  // Not awaited. Invariant 1 does not depend on it: the Run is this worker's until its Lease expires, and before that the engine is stopped.
  const report = (phase: Parameters<RunReporter['reportPhaseSoon']>[0]) =>
    void reporter.reportPhaseSoon(phase).catch(error => error instanceof RunStoppedError && stopper.stop(error.cause))
  log.append(phaseLines.planning)
  report({ phase: 'Planning', isolation: options.isolation, phaseSeconds: phases.enter('planning') })
  const plan = approvedPlan
    ? await readApprovedPlan(options, approvedPlan)
    : await engine.plan(context, { destroy: isDestruction, refreshOnly: type === 'Refresh' || planMode === 'Refresh', options: runOptions })
  stopper.signal.throwIfAborted()
  const summary = { plan: { digest: plan.digest, add: plan.add, change: plan.change, destroy: plan.destroy } }
  log.addSecrets(plan.secrets ?? [])
  for (const line of plan.summary) log.append(line)
  if (plan.diff) {
    const stored = storedDiff(run, plan, plan.diff, log.mask)
    await state.putDiff(Buffer.from(JSON.stringify(stored)), { signal: stopper.writeSignal })
    log.append(`${formatPlan(run, plan, 'would be ')}: ${oarlockCommand('plan --run', run.metadata)}`)
  }
  if (type === 'Plan') {
    if (plan.hasChanges && plan.file && run.spec.stack.approval === 'Manual') {
      await state.putPlan(plan.digest, await readPlanFile(context, plan.file), { signal: stopper.writeSignal })
    }
    const message = withNote(formatPlan(run, plan, 'would be '), plan.note)
    // Where plans need approval, no Apply follows one without changes: it publishes what an imported state has.
    const isFinal = !plan.hasChanges && planMode === undefined && !runOptions?.targets && run.spec.stack.approval === 'Manual'
    if (!isFinal) return { phase: 'Succeeded', ...summary, changed: plan.hasChanges, message }
    await keepConfiguration(options)
    const present = { ...(await engine.readOutputs(context)), changed: false }
    return { phase: 'Succeeded', ...summary, ...(await saveOutputs(options, present)), message }
  }
  await keepConfiguration(options)
  if (plan.hasChanges) {
    log.append(phaseLines.applying)
    report({ phase: 'Applying', ...summary, phaseSeconds: phases.enter('applying') })
  }
  const result = await engine.apply(context, plan)
  if (isExceededLimit(stopper.cause)) stopper.signal.throwIfAborted()
  return {
    phase: 'Succeeded',
    ...summary,
    ...(await saveOutputs(options, result)),
    message: withNote(formatPlan(run, plan, ''), result.note),
  }
}

const withNote = (message: string, note: string | undefined): string => (note === undefined ? message : `${message}; ${note}`)

/** Before anything is applied: what exists then can be destroyed with it, even if the Run fails. */
async function keepConfiguration({ configuration, state, stopper }: PlanAndApplyOptions): Promise<void> {
  if (configuration) await state.putConfiguration(configuration, { signal: stopper.writeSignal })
}

async function readPlanFile({ files }: EngineContext, path: string): Promise<Buffer> {
  const bytes = await files.read(path, { maxBytes: maxPlanBytes })
  if (!bytes) throw new TypeError(`the engine named ${path} as its plan, which does not exist`)
  return bytes
}

async function readApprovedPlan(
  { run, engine, context, state, stopper }: PlanAndApplyOptions,
  { digest, expiresAt }: NonNullable<Run['spec']['approvedPlan']>,
): Promise<PlanResult> {
  const outdated = (detail: string): EngineError =>
    new EngineError('PlanOutdated', `approved plan ${digest} is outdated: ${detail}; approve a new plan`, { retryable: true })
  // The Run may have waited in the queue.
  if (expiresAt !== undefined && Date.parse(expiresAt) <= Date.now()) throw outdated(`its approval expired at ${expiresAt}`)
  const bytes = await state.getPlan(digest, { signal: stopper.signal })
  if (!bytes) throw outdated('the state store no longer has it')
  const file = join(context.inputs, 'approved.tfplan')
  await context.files.write(file, bytes)
  const plan = await engine.readPlan(context, file, { destroy: run.spec.type === 'Destroy', refreshOnly: run.spec.type === 'Refresh' })
  if (plan.digest !== digest) throw outdated(`its effect on the current state would be different (${plan.digest})`)
  return plan
}

async function saveOutputs({ run, state, stopper, log }: PlanAndApplyOptions, result: ApplyResult): Promise<Partial<RunStatus>> {
  const { resources, changed } = result
  log.addSecrets(Object.values(result.outputs).flatMap(({ value, sensitive }) => (sensitive ? stringsIn(value) : [])))
  const { outputs, marked } = markSecretOutputs(result.outputs, log.mask)
  if (marked.length > 0) log.append(`outputs that contain the value of a Secret are stored as sensitive: ${marked.join(', ')}`)
  if (run.spec.type === 'Destroy') {
    await state.deleteOutputs({ signal: stopper.writeSignal })
    return { changed, resources }
  }
  await state.putOutputs(outputsData(outputs, result.pulumiStack), { signal: stopper.writeSignal })
  return { changed, resources, outputs: publicOutputs(outputs), outputsDigest: outputsDigest(outputs) }
}
