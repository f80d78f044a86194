import { destructionOf, isConfirmedDeletion, oarlockCommand, type Stack, stackResource } from '../../api/index.ts'
import { readRequiresApproval } from '../../controllers/stack/index.ts'
import type { Client } from '../../kubernetes/client/index.ts'
import { isConditionTrue, isReason } from '../../kubernetes/object/index.ts'
import { approvePlan } from '../approve-plan.ts'
import { CliError } from '../cli-error.ts'
import { exitCodes } from '../exit-codes.ts'
import { patchShown } from '../patch-shown.ts'
import { awaitingApproval } from '../request-run.ts'
import { hasRight } from '../require-rights.ts'
import { note } from '../terminal.ts'
import { waitFor } from '../wait-for.ts'
import { whenDestroyed } from '../when-destroyed.ts'
import { type PlannedDestruction, setSource } from './plan-destruction.ts'

/**
 * Deletes a Stack whose destruction was shown, so that exactly that plan is executed, and none if its state has changed since. Where approval is required, the user's confirmation
 * is an approval, if they may give it.
 * @throws {CliError} awaitingApproval if another user has to approve, or another plan has to be confirmed.
 */
export async function executeDestruction(
  client: Client,
  { stack, plan, confirmed, changesSource }: PlannedDestruction,
  { wait, timeoutMs }: { wait: boolean; timeoutMs: number },
): Promise<void> {
  if (changesSource) await setSource(client, stack, 'Current')
  if (changesSource && wait) await whenStatusChanged(client, stack, Math.min(timeoutMs, changeGraceMs))
  const { name, namespace, uid, deletionTimestamp } = stack.metadata
  const isApproval = deletionTimestamp !== undefined && !isConfirmedDeletion(stack)
  if (confirmed !== undefined && !isApproval) await confirmDestruction(client, stack, confirmed)
  if (!deletionTimestamp) await client.resource(stackResource).delete(name, { namespace, preconditions: { uid } })
  if (plan && (wait || (await readRequiresApproval(client, stack)))) await approveIfRequired(client, stack, plan, { wait, timeoutMs })
  if (wait) await whenDestroyed(client, stack, timeoutMs, plan?.runName)
}

/**
 * Records the confirmation on the Stack that was shown (invariant 11). Annotations and the status may have changed since.
 * @throws {CliError} if its spec has changed, or it was created again, or, during its deletion, another plan awaits the confirmation.
 */
async function confirmDestruction(client: Client, stack: Stack, confirmed: string): Promise<void> {
  const { metadata } = stack
  // Before the deletion the plan is that of a Run, and none that awaits a decision.
  const awaiting = metadata.deletionTimestamp === undefined ? undefined : confirmed
  if (await patchShown(client, stack, awaiting, now => destructionOf(now, confirmed, Date.now()))) return
  throw new CliError(`stack/${metadata.name} has changed since its destruction was shown: nothing is destroyed`, {
    exitCode: exitCodes.rejected,
    hint: `show and confirm what would be destroyed now: ${oarlockCommand('destroy', metadata)}`,
  })
}

/** A controller usually starts with another source within milliseconds. */
const changeGraceMs = 10_000

/** Waits until the status follows from the present source of a Stack that is being deleted: before, it reports what the other source led to. */
async function whenStatusChanged(client: Client, stack: Stack, timeoutMs: number): Promise<void> {
  const { name, namespace, uid } = stack.metadata
  const reported = ({ status }: Pick<Stack, 'status'>) => JSON.stringify([status?.lastRunNumber, status?.conditions])
  const options = { namespace, name, timeoutMs, what: `stack/${name} to use its present source` }
  await waitFor(client, stackResource, options, now =>
    now?.metadata.uid !== uid || reported(now) !== reported(stack) ? true : undefined,
  ).catch(error => {
    // What it waits for, such as the lock of a user, does not depend on the source.
    if (!(error instanceof CliError && error.exitCode === exitCodes.timedOut)) throw error
  })
}

/** Where the Stack or its namespace requires approval, its deletion waits for that of the plan. */
async function approveIfRequired(
  client: Client,
  stack: Stack,
  plan: NonNullable<PlannedDestruction['plan']>,
  { wait, timeoutMs }: { wait: boolean; timeoutMs: number },
): Promise<void> {
  const { name, namespace = 'default', uid } = stack.metadata
  const { lastRunNumber: before = 0 } = stack.status ?? {}
  const waiting = await waitFor(client, stackResource, { namespace, name, timeoutMs, what: `stack/${name} to be deleted` }, now => {
    if (now?.metadata.uid !== uid) return 'started'
    if (!now.metadata.deletionTimestamp || now.status?.observedGeneration !== now.metadata.generation) return undefined
    const { conditions, plan: pending, lastRun, lastRunNumber = 0 } = now.status ?? {}
    if (isConditionTrue(conditions, 'AwaitingApproval') && pending) {
      // The confirmation was given a moment ago: the controller has not seen it yet.
      if (isConfirmedDeletion(now) && pending.digest === plan.digest) return undefined
      return now as Stack
    }
    return isConditionTrue(conditions, 'Stalled') || (lastRun?.type === 'Destroy' && lastRunNumber > before) ? 'started' : undefined
  })
  if (waiting === 'started') return
  const pending = waiting.status?.plan
  if (pending?.digest !== plan.digest) throw awaitingApproval(waiting, pending ?? plan)
  if (!(await hasRight(client, { namespace, name }, { verb: 'update', subresource: 'approval' })))
    throw awaitingOther(waiting, plan.runName, 'you need the permission to update stacks/approval')
  try {
    await approvePlan(client, waiting, plan.digest)
  } catch (error) {
    if (isReason(error, 'Forbidden')) throw awaitingOther(waiting, plan.runName, (error as Error).message)
    throw error
  }
  if (!wait) note(`stack/${name}: its destruction is approved`)
}

const awaitingOther = ({ metadata }: Stack, runName: string, reason: string) =>
  new CliError(`stack/${metadata.name} is being deleted, and the plan of run/${runName} awaits approval: ${reason}`, {
    exitCode: exitCodes.awaitingApproval,
    hint: `another user approves it with: oarlock approve ${metadata.name} -n ${metadata.namespace}`,
  })
