import { setTimeout as sleep } from 'node:timers/promises'
import { destroyBlocker, destructionOf, nothingToDestroy, type Stack, stackResource } from '../../api/index.ts'
import { readRequiresApproval } from '../../controllers/stack/index.ts'
import type { Client } from '../../kubernetes/client/index.ts'
import { findCondition, isReason, StatusError } from '../../kubernetes/object/index.ts'
import { approvePlan, type ShownPlan } from './approve-plan.ts'
import { patchShown } from './patch-shown.ts'
import { type BlockerSources, readDestructionBlockers } from './read-blockers.ts'
import { readStack } from './stack/stack-request.ts'

/** The controller asks for an approval within milliseconds. After this time, users approve on the page of the Stack. */
const waitMs = 5_000
const pollMs = 100

/**
 * Deletes the Stack so that exactly the plan that was shown is executed, whatever spec.deletion is, as `oarlock destroy` does. Where an approval
 * is required, the confirmation is one, if the user may give it. Of a Stack that is being deleted, the plan that waits is confirmed. Returns what to show.
 * @throws {StatusError} Conflict if the Stack has changed since, or with everything that blocks it.
 */
export async function destroyStack(
  { user, ...sources }: BlockerSources & { readonly user: string },
  { digest, ...shown }: ShownPlan,
): Promise<string> {
  const { client } = sources
  const { namespace, name, uid } = shown
  const present = await readStack({ client, namespace, name })
  const blockers = await readDestructionBlockers(sources, present)
  if (blockers.length > 0) throw new StatusError('Conflict', `stack/${name} cannot be destroyed: ${blockers.join('; ')}`)
  if (present.metadata.deletionTimestamp !== undefined) {
    await patchShown(client, { ...shown, digest }, shownStack => destructionOf(shownStack, digest, Date.now()), destroyBlocker)
    return `stack/${name}: destruction of exactly this plan confirmed`
  }
  // The digest is not that of a plan that awaits a decision: the controller compares it with that of the destruction.
  const stack = await patchShown(client, shown, shownStack => destructionOf(shownStack, digest, Date.now()))
  await client.resource(stackResource).delete(name, { namespace, preconditions: { uid } })
  const requested = `stack/${name}: ${digest === nothingToDestroy ? 'deletion' : 'destruction of exactly this plan'} requested`
  // Where only the namespace requires it and the user may not read that, the approval is given on the page of the Stack.
  const waiting = (await readRequiresApproval(client, stack)) && (await whenAwaitingApproval(client, { ...shown, digest }))
  if (!waiting) return requested
  try {
    await approvePlan(client, user, { ...shown, digest, generation: waiting.metadata.generation ?? 0 })
    return `${requested} and approved`
  } catch (error) {
    if (!isReason(error, 'Forbidden') && !isReason(error, 'Conflict')) throw error
    return `${requested}: it awaits approval, because ${(error as Error).message}`
  }
}

/** Undefined if the destruction does not wait for an approval, or for that of another plan. */
async function whenAwaitingApproval(client: Client, { namespace, name, uid, digest }: ShownPlan): Promise<Stack | undefined> {
  const deadlineMs = performance.now() + waitMs
  while (performance.now() < deadlineMs) {
    const stack = (await client.resource(stackResource).getOrUndefined(name, { namespace })) as Stack | undefined
    if (stack?.metadata.uid !== uid) return undefined
    const { conditions, plan, observedGeneration } = stack.status ?? {}
    const awaiting = findCondition(conditions, 'AwaitingApproval')
    const isCurrent = observedGeneration === stack.metadata.generation
    // Until the controller has seen the confirmation, it is what the deletion waits for.
    if (isCurrent && awaiting?.status === 'True' && awaiting.reason !== 'ConfirmationRequired')
      return plan?.digest === digest ? stack : undefined
    await sleep(pollMs)
  }
  return undefined
}
