import {
  expectedStateVersion,
  isEnded,
  type Run,
  runResource,
  type Stack,
  stackResource,
  type Worker,
  workerResource,
} from '../../api/index.ts'
import type { Client } from '../../kubernetes/client/index.ts'
import type { LogAccess, LogAccessRequest } from '../../stores/log/index.ts'
import type { IsLockAbandoned, StateAccess, StateAccessRequest } from '../../stores/state/index.ts'
import { type AccessAttributes, type AccessReviewer, forbiddenMessage } from '../delegated-auth/access-reviewer.ts'
import type { ReviewedUser } from '../delegated-auth/review-resources.ts'
import { isPartition } from '../is-partition.ts'
import { lastVersionWithinMs } from '../last-version.ts'
import { isWorkerOfRun, workerOf } from '../worker-identity.ts'

/** The data that decides about access to states and logs. What the caches do not have yet is requested from the server. */
export type StoreFacts = {
  client: Client
  access: Pick<AccessReviewer, 'isAllowed'>
  cachedRun(namespace: string, name: string): Run | undefined
  cachedStack(namespace: string, name: string): Stack | undefined
  checkStackToken(stackUid: string, token: string): Promise<boolean>
  /** Wall clock in milliseconds. */
  nowMs(): number
}

/** The Run, if it is assigned to the worker that the user is. A Run never changes its Worker, Stack and epoch, so a cached match is final. */
async function findRunOfWorker(
  facts: StoreFacts,
  user: ReviewedUser,
  { namespace, runName }: { namespace: string; runName: string },
): Promise<Run | undefined> {
  const cached = facts.cachedRun(namespace, runName)
  if (cached && isWorkerOfRun(user, cached)) return cached
  const run = await facts.client.resource(runResource).getOrUndefined(runName, { namespace })
  return run && isWorkerOfRun(user, run) ? run : undefined
}

/**
 * Whether the UID in the Run's `stackRef` is that of another Stack than the one it names in its own namespace. A Run of a Stack that was
 * deleted, or replaced by one of its name, can still save its state: no other Stack has that UID.
 */
async function namesOtherStack(facts: StoreFacts, namespace: string, { name, uid }: Run['spec']['stackRef']): Promise<boolean> {
  if (facts.cachedStack(namespace, name)?.metadata.uid === uid) return false
  const stacks = facts.client.resource(stackResource)
  if ((await stacks.getOrUndefined(name, { namespace }))?.metadata.uid === uid) return false
  return (await stacks.listAll()).items.some(({ metadata }) => metadata.uid === uid)
}

/**
 * Grants access to state
 * - to the Worker in `spec.workerName`, for its own Run and epoch (invariant 3: the store fences older ones) and the Stack it names; when the Run
 *   has ended only to store a last version, for {@link lastVersionWithinMs},
 * - to users with the permission for `stacks/state`, `stacks/plan` or `stacks/fence` of this Stack; the file of a plan needs the first two,
 * - to users with the token of the Stack, but not to its plans, its fence and its token.
 */
export async function authorizeState(facts: StoreFacts, request: StateAccessRequest): Promise<StateAccess> {
  const { user, namespace, stack: stackName, runName, epoch, basicPassword, subresource = 'state', verbs = [] } = request
  const worker = workerOf(user)
  if (runName !== undefined) {
    if (!user || worker === undefined) return denied(user ? 403 : 401, 'only the worker of a Run can use its paths')
    const run = await findRunOfWorker(facts, user, { namespace, runName })
    if (!run) return denied(403, `Run ${namespace}/${runName} is not assigned to worker ${worker}`)
    if (run.spec.stackRef.name !== stackName)
      return denied(403, `Run ${namespace}/${runName} belongs to Stack ${run.spec.stackRef.name}, not to ${stackName}`)
    if (run.spec.epoch !== epoch) return denied(403, `Run ${namespace}/${runName} has epoch ${run.spec.epoch}, not ${epoch}`)
    if (await namesOtherStack(facts, namespace, run.spec.stackRef))
      return denied(403, `Run ${namespace}/${runName} has the UID of another Stack than ${namespace}/${stackName}`)
    const stackUid = run.spec.stackRef.uid
    if (!isEnded(run)) return { allowed: true, stackUid, access: 'run', stateVersion: run.spec.stateVersion }
    // NaN without a valid time: then it is closed.
    const endedForMs = facts.nowMs() - Date.parse(run.status?.finishedAt ?? '')
    if (!(Math.abs(endedForMs) <= lastVersionWithinMs))
      return denied(403, `Run ${namespace}/${runName} has ended: its state is closed to worker ${worker}`)
    return { allowed: true, stackUid, access: run.status?.phase === 'Lost' ? 'lost-run' : 'ended-run' }
  }
  if (worker !== undefined) return denied(403, `worker ${worker} can use the paths of its own Runs only`)
  const subresources = request.isPlanFile ? [subresource, 'state'] : [subresource]
  const required = subresources.flatMap(each =>
    verbs.map(verb => ({ verb, resource: stackResource.plural, subresource: each, namespace, name: stackName })),
  )
  const missing = user && (await firstMissing(facts, user, required))
  const hasPermission = user !== undefined && required.length > 0 && missing === undefined
  const allowsToken = subresource === 'state' && !request.requiresUser
  const password = allowsToken ? basicPassword : undefined
  if (!hasPermission && password === undefined) {
    return missing ? denied(403, forbiddenMessage(user, missing)) : denied(401, unauthenticatedMessage(allowsToken))
  }
  const stack =
    facts.cachedStack(namespace, stackName) ?? (await facts.client.resource(stackResource).getOrUndefined(stackName, { namespace }))
  // Whether a Stack exists is reported only to users who may know.
  if (!stack && hasPermission) return denied(404, `Stack ${namespace}/${stackName} does not exist`)
  const stackUid = stack?.metadata.uid
  if (stackUid === undefined || !(hasPermission || (await facts.checkStackToken(stackUid, password ?? ''))))
    return denied(401, 'the token is not valid for this Stack')
  // A write of a user is above what a Run has stored; one that is lost from an import has no later version.
  return { allowed: true, stackUid, access: 'user', stateVersion: stack && expectedStateVersion({ ...stack, metadata: {} }) }
}

const unauthenticatedMessage = (allowsToken: boolean) =>
  allowsToken
    ? 'credentials are required: the bearer token of a user, or the token of the Stack as password'
    : 'credentials are required: the bearer token of a user'

/** The first of the requests that the user has no permission for. */
async function firstMissing(
  facts: StoreFacts,
  user: ReviewedUser,
  required: readonly AccessAttributes[],
): Promise<AccessAttributes | undefined> {
  for (const attributes of required) if (!(await facts.access.isAllowed(user, attributes))) return attributes
  return undefined
}

/**
 * The Worker of a Run writes its log. Users need the permission for `stacks/log` of the Stack that the Run belongs to: `get` to read,
 * `update` to write.
 */
export async function authorizeLog(facts: StoreFacts, { user, namespace, run: runName, verb }: LogAccessRequest): Promise<LogAccess> {
  if (!user) return denied(401, 'credentials are required: the bearer token of a user')
  const worker = workerOf(user)
  if (worker !== undefined) {
    if (verb === 'read') return denied(403, 'a worker can write logs but not read them')
    const run = await findRunOfWorker(facts, user, { namespace, runName })
    return run ? { allowed: true } : denied(403, `Run ${namespace}/${runName} is not assigned to worker ${worker}`)
  }
  const run = facts.cachedRun(namespace, runName) ?? (await facts.client.resource(runResource).getOrUndefined(runName, { namespace }))
  const attributes: AccessAttributes = {
    verb: verb === 'read' ? 'get' : 'update',
    ...{ resource: stackResource.plural, subresource: 'log', namespace },
    // Without its Run a log belongs to no Stack any more: then the permission for all Stacks of the namespace is required.
    ...(run && { name: run.spec.stackRef.name }),
  }
  return (await facts.access.isAllowed(user, attributes))
    ? { allowed: true, isRunMissing: run === undefined }
    : denied(403, forbiddenMessage(user, attributes))
}

/** Without a decision of the API server the client gets 503, which clients retry. */
export async function orUnavailable<Access extends { allowed: boolean }>(
  decision: Promise<Access>,
  onError: (error: unknown) => void,
): Promise<Access | { allowed: false; code: 503; message: string }> {
  try {
    return await decision
  } catch (error) {
    onError(error)
    return denied(503, 'the API server did not answer whether the request is allowed; retry later')
  }
}

/**
 * Whether the Run that holds a lock is proven gone (invariant 4): it has ended, and dispatch sets Lost only after the Lease of its
 * Worker has expired, or it was deleted and no Worker reports it. The server is queried instead of a cache, because breaking a lock too
 * early cannot be undone. Names of Runs contain a part of the Stack's UID; if two Runs share a name, both must be gone.
 * @param workersClient of the gateway, in a partition: its workers are in others. Without it the lock of a deleted Run is never broken there.
 */
export function lockAbandonedCheck(client: Client, workersClient?: Client): IsLockAbandoned {
  return async ({ runName, epoch }) => {
    const { items } = await client.resource(runResource).listAll({ fieldSelector: `metadata.name=${runName}` })
    const runs = items.filter(run => run.spec.epoch === epoch)
    if (runs.length > 0) return runs.every(isEnded)
    if (!workersClient && (await isPartition(client))) return false
    const workers = await (workersClient ?? client).resource(workerResource).listAll()
    return !workers.items.some(worker => isRunning(worker, runName))
  }
}

const isRunning = ({ status }: Worker, runName: string) => (status?.runs ?? []).some(key => key.slice(key.indexOf('/') + 1) === runName)

const denied = <Code extends 401 | 403 | 404 | 503>(code: Code, message: string) => ({ allowed: false as const, code, message })
