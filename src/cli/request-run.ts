import { randomBytes } from 'node:crypto'
import { annotations, isEnded, phaseOf, type Run, runResource, type Stack, stackResource } from '../api/index.ts'
import type { Client } from '../kubernetes/client/index.ts'
import { CliError } from './cli-error.ts'
import { exitCodes } from './exit-codes.ts'
import { waitFor } from './wait-for.ts'

/** Requests a Run from the stack controller; returns the id of the request. */
export async function requestRun(client: Client, stack: Stack, type: 'plan' | 'apply' | 'refresh'): Promise<string> {
  const request = `${type}:${randomBytes(5).toString('hex')}`
  const { name, namespace } = stack.metadata
  await client
    .resource(stackResource)
    .patch(name, { metadata: { annotations: { [annotations.requestedRun]: request } } }, { type: 'merge', namespace })
  return request
}

/** Waits for the Run of a request. */
export async function whenRequested(client: Client, stack: Stack, request: string, timeoutMs: number): Promise<Run> {
  const { name, namespace } = stack.metadata
  const runName = await waitFor(client, stackResource, { namespace, name, timeoutMs, what: `stack/${name} to start a Run` }, now => {
    if (!now) throw new CliError(`stack/${name} was deleted`, { exitCode: exitCodes.notFound })
    return now.status?.handledRequest === request ? now.status.lastRun?.name : undefined
  })
  return await client.resource(runResource).get(runName, { namespace })
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

/** `2 to add, 1 to change, 0 to destroy` */
export function planText(plan: { add: number; change: number; destroy: number }): string {
  const { add, change, destroy } = plan
  return add + change + destroy === 0 ? 'no changes' : `${add} to add, ${change} to change, ${destroy} to destroy`
}

const endText = (phase: string | undefined) =>
  phase === 'Failed' ? 'failed' : phase === undefined ? 'ended' : `was ${phase.toLowerCase()}`

/** @throws {CliError} failed, with the reason, unless the Run succeeded. */
export function expectSuccess(run: Run): void {
  const { phase, reason, message } = run.status ?? {}
  if (phase === 'Succeeded') return
  const why = [reason === phase ? undefined : reason, message].filter(Boolean).join(': ')
  throw new CliError(`run/${run.metadata.name} ${endText(phase)}${why ? `: ${why}` : ''}`, {
    exitCode: exitCodes.failed,
    hint: `"oarlock logs run/${run.metadata.name} -n ${run.metadata.namespace}" shows the log`,
  })
}
