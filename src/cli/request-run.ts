import { randomBytes } from 'node:crypto'
import {
  annotations,
  isEnded,
  oarlockCommand,
  phaseOf,
  type Run,
  recordedEpoch,
  runResource,
  type Stack,
  stackResource,
} from '../api/index.ts'
import type { Client } from '../kubernetes/client/index.ts'
import { isConditionTrue } from '../kubernetes/object/index.ts'
import { CliError } from './cli-error.ts'
import { note } from './console.ts'
import { exitCodes } from './exit-codes.ts'
import { expectRunnable } from './expect-runnable.ts'
import { stackMessage } from './fleet/stack-state.ts'
import { waitFor } from './wait-for.ts'

/** Requests a Run from the stack controller; returns the id of the request. */
async function requestRun(client: Client, stack: Stack, type: 'plan' | 'apply' | 'refresh'): Promise<string> {
  const request = `${type}:${randomBytes(5).toString('hex')}`
  const { name, namespace } = stack.metadata
  await expectRunnable(client, stack, type)
  await client
    .resource(stackResource)
    .patch(name, { metadata: { annotations: { [annotations.requestedRun]: request } } }, { type: 'merge', namespace })
  return request
}

/** Requests a Run without waiting for it; returns what to print. */
export async function startRequest(client: Client, stack: Stack, type: 'plan' | 'apply'): Promise<string> {
  await requestRun(client, stack, type)
  const { name, namespace } = stack.metadata
  return `stack/${name}: ${type === 'plan' ? 'plan' : 'run'} requested; follow it with: oarlock logs -f stack/${name} -n ${namespace}`
}

/** Requests a Run and waits until it has ended; reports its phases. */
export async function runRequest(client: Client, stack: Stack, type: 'plan' | 'apply', timeoutMs: number): Promise<Run> {
  const run = await whenRequested(client, stack, await requestRun(client, stack, type), timeoutMs)
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
  const next = await client.resource(runResource).getOrUndefined(supersededBy, { namespace })
  return next ? await whenEnded(client, next, timeoutMs, onPhase) : ended
}

/** `2 to add, 1 to change, 0 to destroy`. The counts are those of resources: a plan without any may have other changes. */
export function planText({ add, change, destroy }: { add: number; change: number; destroy: number }, hasChanges = true): string {
  if (!hasChanges) return 'no changes'
  const isOther = add + change + destroy === 0
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

/** @throws {CliError} awaitingApproval if a plan awaits approval after the Run. */
export async function expectNoPendingPlan(client: Client, run: Run, timeoutMs: number): Promise<void> {
  const stack = await whenRecorded(client, run, timeoutMs)
  const { plan, conditions } = stack.status ?? {}
  if (plan && isConditionTrue(conditions, 'AwaitingApproval')) throw awaitingApproval(stack, plan)
}

/** Nothing was applied: a plan waits for approval. */
export function awaitingApproval({ metadata }: Stack, plan: { runName: string; add: number; change: number; destroy: number }): CliError {
  return new CliError(`stack/${metadata.name}: the plan of run/${plan.runName} awaits approval: ${planText(plan)}`, {
    exitCode: exitCodes.awaitingApproval,
    hint: `show and approve it: ${oarlockCommand('approve', metadata)}`,
  })
}
