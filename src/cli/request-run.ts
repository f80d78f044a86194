import { randomBytes } from 'node:crypto'
import {
  annotations,
  deletionRunEffect,
  formatRunRequest,
  isConfirmedDeletion,
  isEnded,
  oarlockCommand,
  phaseOf,
  type Run,
  recordedEpoch,
  runResource,
  type Stack,
  stackMessage,
  stackResource,
} from '../api/index.ts'
import { type Client, patchIf } from '../kubernetes/client/index.ts'
import { isConditionTrue } from '../kubernetes/object/index.ts'
import { CliError } from './cli-error.ts'
import { exitCodes } from './exit-codes.ts'
import { expectRunnable } from './expect-runnable.ts'
import type { RequestedRun } from './run-options.ts'
import { note } from './terminal.ts'
import { waitFor } from './wait-for.ts'

/** Requests a Run of the Stack as it is now from the stack controller; returns the id of the request. */
async function requestRun(client: Client, { metadata }: Stack, requested: RequestedRun): Promise<string> {
  const request = formatRunRequest(requested.type, randomBytes(5).toString('hex'), requested.options)
  const expectPossible = async (stack: Stack) => {
    await expectRunnable(client, stack, requested)
    return true
  }
  const patched = await patchIf(
    client.resource(stackResource),
    metadata,
    async stack => await expectPossible(stack as Stack),
    () => ({ metadata: { annotations: { [annotations.requestedRun]: request } } }),
  )
  const effect = patched && deletionRunEffect(patched as Stack)
  if (effect !== undefined) note(`stack/${metadata.name}: ${effect}`)
  return request
}

/** Requests a Run without waiting for it; returns what to print. */
export async function startRequest(client: Client, stack: Stack, requested: RequestedRun): Promise<string> {
  await requestRun(client, stack, requested)
  const { name, namespace } = stack.metadata
  const what = { plan: 'plan', 'plan-destroy': 'plan of the destruction', apply: 'run', refresh: 'refresh' }[requested.type]
  return `stack/${name}: ${what} requested; follow it with: oarlock logs -f stack/${name} -n ${namespace}`
}

/** Requests a Run and waits until it has ended; reports its phases. */
export async function runRequest(client: Client, stack: Stack, requested: RequestedRun, timeoutMs: number): Promise<Run> {
  const run = await whenRequested(client, stack, await requestRun(client, stack, requested), timeoutMs)
  note(`run/${run.metadata.name}`)
  return await whenEnded(client, run, timeoutMs, one => note(`  ${phaseOf(one)}`))
}

/** A controller usually creates the Run of a request earlier. */
const startGraceMs = 2_000

/** Waits for the Run of a request; reports why the Stack starts none. */
async function whenRequested(client: Client, stack: Stack, request: string, timeoutMs: number): Promise<Run> {
  const { name, namespace } = stack.metadata
  let latest = stack
  let isLate = false
  let reported = ''
  const report = () => {
    const { reason, message } = stackMessage(latest)
    const line = `  stack/${name} has started no Run yet: ${[reason, message].filter(Boolean).join(': ') || 'no controller has reported its status'}`
    if (line !== reported) note(line)
    reported = line
  }
  const timer = setTimeout(() => {
    isLate = true
    report()
  }, startGraceMs)
  try {
    const runName = await waitFor(client, stackResource, { namespace, name, timeoutMs, what: `stack/${name} to start a Run` }, now => {
      if (!now) throw new CliError(`stack/${name} was deleted`, { exitCode: exitCodes.notFound })
      if (now.status?.handledRequest === request) return now.status.lastRun?.name
      latest = now
      if (isLate) report()
      return undefined
    })
    return await client.resource(runResource).get(runName, { namespace })
  } finally {
    clearTimeout(timer)
  }
}

/** Waits until a Run, or the one that supersedes it, has ended; calls `onPhase` for each phase. */
export async function whenEnded(client: Client, run: Run, timeoutMs: number, onPhase: (run: Run) => void): Promise<Run> {
  const { name, namespace } = run.metadata
  let last = ''
  const ended = await waitFor(client, runResource, { namespace, name, timeoutMs, what: `run/${name} to end` }, now => {
    if (!now) throw new CliError(`run/${name} was deleted`, { exitCode: exitCodes.notFound })
    const phase = phaseOf(now)
    if (phase !== last) onPhase(now)
    last = phase
    return isEnded(now) ? now : undefined
  })
  const { supersededBy } = ended.status ?? {}
  if (supersededBy === undefined) return ended
  const next = await whenCreated(client, { name: supersededBy, namespace }, Math.min(timeoutMs, creationGraceMs))
  return next ? await whenEnded(client, next, timeoutMs, onPhase) : ended
}

/** A controller cancels a superseded Run before it creates the next one, usually within milliseconds. */
const creationGraceMs = 10_000

/** Undefined if the Run does not exist in time. */
async function whenCreated(
  client: Client,
  run: { name: string; namespace: string | undefined },
  timeoutMs: number,
): Promise<Run | undefined> {
  try {
    return await waitFor(client, runResource, { ...run, timeoutMs, what: `run/${run.name} to be created` }, now => now)
  } catch (error) {
    if (error instanceof CliError && error.exitCode === exitCodes.timedOut) return undefined
    throw error
  }
}

type PlanCounts = { add: number; change: number; destroy: number; mode?: 'Refresh' | 'Destroy' }

/**
 * `2 to add, 1 to change, 0 to destroy`. The counts are those of resources: a plan without any may have other changes. A refresh removes from
 * the state what no longer exists; it destroys nothing.
 */
export function planText({ add, change, destroy, mode }: PlanCounts, hasChanges = true): string {
  if (!hasChanges) return 'no changes'
  const isOther = add + change + destroy === 0
  if (mode === 'Refresh' && !isOther) return `${add} to add, ${change} to change, ${destroy} to remove, only in the state`
  return isOther ? 'no resources to change, only outputs or addresses' : `${add} to add, ${change} to change, ${destroy} to destroy`
}

const endText = (phase: string | undefined) =>
  phase === 'Failed' ? 'failed' : phase === undefined ? 'ended' : `was ${phase.toLowerCase()}`

/** @throws {CliError} with the reason unless the Run succeeded: canceled if it was canceled, else failed. */
export function expectSuccess(run: Run): void {
  const { phase, reason, message } = run.status ?? {}
  if (phase === 'Succeeded') return
  const why = [reason === phase ? undefined : reason, message].filter(Boolean).join(': ')
  throw new CliError(`run/${run.metadata.name} ${endText(phase)}${why ? `: ${why}` : ''}`, {
    exitCode: phase === 'Canceled' ? exitCodes.canceled : exitCodes.failed,
    hint: `"oarlock logs run/${run.metadata.name} -n ${run.metadata.namespace}" shows the log`,
  })
}

/** Waits until the Stack's status includes the end of the Run. */
export async function whenRecorded(client: Client, run: Run, timeoutMs: number): Promise<Stack> {
  const { namespace } = run.metadata
  const { name, uid } = run.spec.stackRef
  const what = `stack/${name} to report the end of run/${run.metadata.name}`
  return await waitFor(client, stackResource, { namespace, name, timeoutMs, what }, now => {
    if (now?.metadata.uid !== uid) throw new CliError(`stack/${name} was deleted`, { exitCode: exitCodes.notFound })
    return recordedEpoch(now.status) >= run.spec.epoch ? now : undefined
  })
}

/** @throws {CliError} awaitingApproval if the plan of the Run awaits approval, or another one that has replaced it; not if another one has nothing to do with it. */
export async function expectNoPendingPlan(client: Client, run: Run, timeoutMs: number): Promise<void> {
  const stack = await whenRecorded(client, run, timeoutMs)
  const { plan, conditions } = stack.status ?? {}
  const isOwn = plan?.runName === run.metadata.name || (run.spec.type === 'Plan' && run.status?.changed !== false)
  if (plan && isOwn && isConditionTrue(conditions, 'AwaitingApproval')) throw awaitingApproval(stack, plan)
}

/** Nothing was applied: a plan waits for approval. */
export function awaitingApproval(stack: Stack, plan: PlanCounts & { runName: string }): CliError {
  const { metadata } = stack
  return new CliError(`stack/${metadata.name}: the plan of run/${plan.runName} awaits approval: ${planText(plan)}`, {
    exitCode: exitCodes.awaitingApproval,
    hint: isConfirmedDeletion(stack)
      ? `show and confirm it: ${oarlockCommand('destroy', metadata)}`
      : `show and approve it: ${oarlockCommand('approve', metadata)}`,
  })
}
