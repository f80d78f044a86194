import { isEnded, type Run, runResource, type Stack, stackResource, type Worker, workerResource } from '../api/index.ts'
import type { Client } from '../kubernetes/client/index.ts'
import { adminsGroup } from '../kubernetes/server/index.ts'
import type { LogAccess, LogAccessRequest } from '../stores/log/index.ts'
import type { IsLockAbandoned, StateAccess, StateAccessRequest } from '../stores/state/index.ts'
import { workerOf } from './authorize.ts'

/** The data that decides about access to states and logs. What the caches do not have yet is requested from the server. */
export type StoreFacts = {
  client: Client
  cachedRun(namespace: string, name: string): Run | undefined
  cachedStack(namespace: string, name: string): Stack | undefined
  checkStackToken(stackUid: string, token: string): boolean
}

/** The Run, if it is assigned to the worker. A Run never changes its Worker, Stack and epoch, so a cached match is final. */
async function findRunOfWorker(
  facts: StoreFacts,
  worker: string,
  { namespace, runName }: { namespace: string; runName: string },
): Promise<Run | undefined> {
  const cached = facts.cachedRun(namespace, runName)
  if (cached?.spec.workerName === worker) return cached
  const run = await facts.client.resource(runResource).getOrUndefined(runName, { namespace })
  return run?.spec.workerName === worker ? run : undefined
}

/**
 * Grants access to state to the Worker in `spec.workerName`, for its own Run and epoch (invariant 3: the store fences older ones), to
 * administrators, and to users with the token of the Stack.
 */
export async function authorizeState(facts: StoreFacts, request: StateAccessRequest): Promise<StateAccess> {
  const { user, namespace, stack: stackName, runName, epoch, basicPassword } = request
  const worker = workerOf(user)
  if (runName !== undefined) {
    if (worker === undefined) return denied(user ? 403 : 401, 'only the worker of a Run can use its paths')
    const run = await findRunOfWorker(facts, worker, { namespace, runName })
    if (!run) return denied(403, `Run ${namespace}/${runName} is not assigned to worker ${worker}`)
    if (run.spec.stackRef.name !== stackName)
      return denied(403, `Run ${namespace}/${runName} belongs to Stack ${run.spec.stackRef.name}, not to ${stackName}`)
    if (run.spec.epoch !== epoch) return denied(403, `Run ${namespace}/${runName} has epoch ${run.spec.epoch}, not ${epoch}`)
    return { allowed: true, stackUid: run.spec.stackRef.uid, access: 'run' }
  }
  const isAdmin = user?.groups.includes(adminsGroup) === true
  if (!isAdmin && basicPassword === undefined) return denied(401, 'the token of the Stack is required: send it as password or bearer token')
  const stack =
    facts.cachedStack(namespace, stackName) ?? (await facts.client.resource(stackResource).getOrUndefined(stackName, { namespace }))
  if (!stack)
    return denied(isAdmin ? 404 : 401, isAdmin ? `Stack ${namespace}/${stackName} does not exist` : 'the token is not valid for this Stack')
  const stackUid = stack.metadata.uid
  if (isAdmin || facts.checkStackToken(stackUid, basicPassword ?? '')) return { allowed: true, stackUid, access: 'user' }
  return denied(401, 'the token is not valid for this Stack')
}

/** The Worker of a Run writes its log; administrators read it. */
export async function authorizeLog(facts: StoreFacts, { user, namespace, run: runName, verb }: LogAccessRequest): Promise<LogAccess> {
  if (user?.groups.includes(adminsGroup)) return { allowed: true }
  const worker = workerOf(user)
  if (worker === undefined) return denied(user ? 403 : 401, 'only administrators and the worker of the Run can use its log')
  if (verb === 'read') return denied(403, 'a worker can write logs but not read them')
  const run = await findRunOfWorker(facts, worker, { namespace, runName })
  return run ? { allowed: true } : denied(403, `Run ${namespace}/${runName} is not assigned to worker ${worker}`)
}

/**
 * Whether the Run that holds a lock is proven gone (invariant 4): it has ended, and dispatch sets Lost only after the Lease of its
 * Worker has expired, or it was deleted and no Worker reports it. The server is queried instead of a cache, because breaking a lock too
 * early cannot be undone. Names of Runs contain a part of the Stack's UID; if two Runs share a name, both must be gone.
 */
export function lockAbandonedCheck(client: Client): IsLockAbandoned {
  return async ({ runName, epoch }) => {
    const { items } = await client.resource(runResource).listAll({ fieldSelector: `metadata.name=${runName}` })
    const runs = items.filter(run => run.spec.epoch === epoch)
    if (runs.length > 0) return runs.every(isEnded)
    const workers = await client.resource(workerResource).listAll()
    return !workers.items.some(worker => isRunning(worker, runName))
  }
}

const isRunning = ({ status }: Worker, runName: string) => (status?.runs ?? []).some(key => key.slice(key.indexOf('/') + 1) === runName)

const denied = <Code extends 401 | 403 | 404>(code: Code, message: string) => ({ allowed: false as const, code, message })
