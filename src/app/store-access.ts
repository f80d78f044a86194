import { isEnded, type Run, runResource, type Stack, stackResource, type Worker, workerResource } from '../api/index.ts'
import type { Client } from '../kubernetes/client/index.ts'
import { adminsGroup } from '../kubernetes/server/index.ts'
import type { LogAccess, LogAccessRequest } from '../stores/log/index.ts'
import type { IsLockAbandoned, StateAccess, StateAccessRequest } from '../stores/state/index.ts'
import { workerOf } from './authorize.ts'

/** What access to state and logs is decided by. Caches may be behind: what they miss is asked of the server. */
export type StoreFacts = {
  client: Client
  cachedRun(namespace: string, name: string): Run | undefined
  cachedStack(namespace: string, name: string): Stack | undefined
  checkStackToken(stackUid: string, token: string): boolean
}

/** May this Run be worked on by that user? A Run keeps its Worker, Stack and epoch for life, so a cached yes stays a yes. */
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
 * State is open to the Worker that `spec.workerName` names, for its own Run and epoch (invariant 3: the store fences older
 * ones); and to people: administrators, and whoever has the token of the Stack.
 */
export async function authorizeState(facts: StoreFacts, request: StateAccessRequest): Promise<StateAccess> {
  const { user, namespace, stack: stackName, runName, epoch, basicPassword } = request
  const worker = workerOf(user)
  if (runName !== undefined) {
    if (worker === undefined) return denied(user ? 403 : 401, 'only the worker of a run may use its paths')
    const run = await findRunOfWorker(facts, worker, { namespace, runName })
    if (!run) return denied(403, `run ${namespace}/${runName} is not assigned to worker ${worker}`)
    if (run.spec.stackRef.name !== stackName)
      return denied(403, `run ${namespace}/${runName} is of stack ${run.spec.stackRef.name}, not of ${stackName}`)
    if (run.spec.epoch !== epoch) return denied(403, `run ${namespace}/${runName} has epoch ${run.spec.epoch}, not ${epoch}`)
    return { allowed: true, stackUid: run.spec.stackRef.uid, access: 'run' }
  }
  const isAdmin = user?.groups.includes(adminsGroup) === true
  if (!isAdmin && basicPassword === undefined) return denied(401, 'the token of the stack is missing: send it as password or bearer token')
  const stack =
    facts.cachedStack(namespace, stackName) ?? (await facts.client.resource(stackResource).getOrUndefined(stackName, { namespace }))
  if (!stack)
    return denied(isAdmin ? 404 : 401, isAdmin ? `stack ${namespace}/${stackName} does not exist` : 'the token is not that of this stack')
  const stackUid = stack.metadata.uid
  if (isAdmin || facts.checkStackToken(stackUid, basicPassword ?? '')) return { allowed: true, stackUid, access: 'user' }
  return denied(401, 'the token is not that of this stack')
}

/** A log is written by the Worker of its Run, and read by administrators. */
export async function authorizeLog(facts: StoreFacts, { user, namespace, run: runName, verb }: LogAccessRequest): Promise<LogAccess> {
  if (user?.groups.includes(adminsGroup)) return { allowed: true }
  const worker = workerOf(user)
  if (worker === undefined) return denied(user ? 403 : 401, 'logs are for administrators and for the worker of the run')
  if (verb === 'read') return denied(403, 'a worker writes logs and does not read them')
  const run = await findRunOfWorker(facts, worker, { namespace, runName })
  return run ? { allowed: true } : denied(403, `run ${namespace}/${runName} is not assigned to worker ${worker}`)
}

/**
 * Is the Run that holds a lock gone for good (invariant 4)? It is when it has ended: dispatch calls it Lost only after its Worker's
 * Lease has expired. A Run that was deleted is gone when no Worker says that it works on it. The server is asked, not a cache:
 * a lock broken too early cannot be mended. Names of Runs carry a part of the Stack's UID; where two share one, both must be gone.
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
