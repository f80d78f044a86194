import { nothingToDestroy, type RequestType, runResource, shortDigest, stackResource, workerResource } from '../../api/index.ts'
import { StatusError } from '../../kubernetes/object/index.ts'
import type { ActionRequest } from '../protocol/index.ts'
import { approvePlan, rejectPlan, type ShownPlan } from './approve-plan.ts'
import { destroyStack } from './destroy-stack.ts'
import type { CallTasks } from './offload/index.ts'
import type { BlockerSources } from './read-blockers.ts'
import { requestRun } from './request-run.ts'
import { rollbackState } from './stack/index.ts'

/** What to show, and of a requested Run the value that `status.handledRequest` of the Stack has once the Run exists. */
export type Carried = { readonly message: string; readonly request?: string }

/** With the rights of the user. */
export type ActionSources = BlockerSources & { readonly user: string; readonly tasks: CallTasks }

/**
 * Carries out an action with the rights of the user, as the command line does: the API server and its admission decide whether it is allowed.
 * @throws {StatusError} with the reason if it is rejected.
 */
export async function carryOut(sources: ActionSources, request: ActionRequest): Promise<Carried> {
  const { client, user, tasks } = sources
  const { action, namespace, name, uid, generation } = request
  const stacks = client.resource(stackResource)
  const workers = client.resource(workerResource)
  const requested = async (type: RequestType, what: string) => {
    const shown = uid === undefined || generation === undefined ? undefined : { uid, generation }
    return { request: await requestRun(client, { namespace, name }, type, shown), message: `stack/${name}: ${what} requested` }
  }
  switch (action) {
    case 'run':
      return await requested('apply', 'run')
    case 'plan':
      return await requested('plan', 'plan')
    case 'refresh':
      return await requested('refresh', 'refresh')
    case 'plan-destroy':
      return await requested('plan-destroy', 'plan of the destruction')
    case 'approve': {
      // Invariant 11: of exactly the plan that was shown, of the Stack as it was shown.
      const plan = shownPlan(request, 'an approval names the digest of the plan, and the uid and generation of the Stack, that were shown')
      await approvePlan(client, user, plan)
      return { message: `stack/${name}: plan ${shortDigest(plan.digest)} approved` }
    }
    case 'reject': {
      const plan = shownPlan(request, 'a rejection names the digest of the plan, and the uid and generation of the Stack, that were shown')
      await rejectPlan(client, user, plan, request.reason?.trim() || undefined)
      return { message: `stack/${name}: plan ${shortDigest(plan.digest)} rejected` }
    }
    case 'destroy': {
      const isEmpty = request.nothingToDestroy === true
      if (isEmpty === (request.digest !== undefined))
        throw new StatusError('BadRequest', 'a destruction names the digest of the plan that was shown, or nothingToDestroy: true')
      const confirmed = isEmpty ? { ...request, digest: nothingToDestroy } : request
      const plan = shownPlan(confirmed, 'a destruction names the uid and generation of the Stack that was shown')
      return { message: await destroyStack(sources, plan) }
    }
    case 'rollback':
      if (!Number.isInteger(request.version) || !Number.isInteger(request.currentVersion))
        throw new StatusError('BadRequest', 'a rollback names the version of the state, and the current version that was shown')
      return {
        message: await rollbackState(
          client,
          user,
          { namespace: namespace ?? '', name, version: request.version as number, currentVersion: request.currentVersion as number },
          tasks,
        ),
      }
    case 'cancel':
      await client.resource(runResource).patch(name, { spec: { cancel: true } }, { type: 'merge', namespace })
      return { message: `run/${name}: cancellation requested` }
    case 'suspend':
    case 'resume':
      await stacks.patch(name, { spec: { suspend: action === 'suspend' } }, { type: 'merge', namespace })
      return { message: `stack/${name} ${action === 'suspend' ? 'suspended' : 'resumed'}` }
    case 'drain':
      await workers.patch(name, { spec: { drain: true } }, { type: 'merge' })
      return { message: `worker/${name} draining` }
    case 'cordon':
    case 'uncordon':
      await workers.patch(name, { spec: { cordon: action === 'cordon' } }, { type: 'merge' })
      return { message: `worker/${name} ${action}ed` }
  }
}

/** @throws {StatusError} BadRequest if the request does not name what was shown. */
function shownPlan({ namespace = '', name, digest, uid, generation }: ActionRequest, missing: string): ShownPlan {
  if (digest === undefined || uid === undefined || generation === undefined) throw new StatusError('BadRequest', missing)
  return { namespace, name, digest, uid, generation }
}
