import { apiGroup, systemNamespace, type Worker } from '../../api/index.ts'
import { parseFieldSelector } from '../../kubernetes/object/index.ts'
import type { Attributes } from '../../kubernetes/server/index.ts'
import { isWorkerOf, isWorkerOfRun, podOf, poolOf } from '../worker-identity.ts'
import type { WorkerFacts } from './worker-facts.ts'

/**
 * Allows a worker, local or joined, its own Runs, Worker and Lease, as Kubernetes' Node authorizer does for kubelets. What its Runs reference it
 * gets from the stores (`../stores/run-inputs.ts`). Returns true, or undefined to leave the decision to RBAC, which grants nothing unless an
 * administrator binds a role to the group of the pool.
 */
export function authorizeWorker(attributes: Attributes, worker: string, facts: WorkerFacts): true | undefined {
  const { user, verb, group, resource, subresource, namespace, name, path, fieldSelector } = attributes
  if (path !== undefined) return undefined
  const isRead = verb === 'get' || verb === 'list' || verb === 'watch'
  const isWrite = verb === 'update' || verb === 'patch' || verb === 'delete'
  const allowIf = (isAllowed: boolean): true | undefined => isAllowed || undefined
  const storedWorker = () => facts.stored(`workers.${apiGroup}`, undefined, worker) as Worker | undefined
  const isPod = podOf(user) !== undefined
  /** The Worker of a Pod exists before the Pod. */
  const isOwnWorker = (stored = storedWorker()) => (stored ? isWorkerOf(user, stored) : !isPod)
  switch (`${resource}.${group}`) {
    case `runs.${apiGroup}`: {
      if (verb === 'list' || verb === 'watch')
        return allowIf(selectsRunsOf(worker, fieldSelector) && (isOwnWorker() || facts.someRun(worker, run => isWorkerOfRun(user, run))))
      const run = facts.run(namespace, name)
      const isOwn = run !== undefined && isWorkerOfRun(user, run)
      return allowIf(isOwn && (verb === 'get' || (subresource === 'status' && (verb === 'patch' || verb === 'update'))))
    }
    case `workers.${apiGroup}`:
      if (verb === 'create') return allowIf(!subresource && !isPod && facts.hasNewCredential(worker))
      return allowIf(name === worker && isOwnWorker() && (isRead || isWrite))
    case `workerpools.${apiGroup}`:
      return allowIf(
        verb === 'get' &&
          !subresource &&
          name !== undefined &&
          name === (isPod ? isOwnWorker() && storedWorker()?.spec.pool : (poolOf(user) ?? facts.poolOf(worker))),
      )
    case 'leases.coordination.k8s.io':
      if (namespace !== systemNamespace) return undefined
      if (verb === 'create') return allowIf(isPod ? isOwnWorker() : facts.hasNewCredential(worker) || storedWorker() !== undefined)
      return allowIf(name === worker && (!isPod || isOwnWorker()) && (verb === 'get' || isWrite))
    default:
      return undefined
  }
}

/** Whether a list has no other Runs. A gateway adds further requirements. */
function selectsRunsOf(worker: string, fieldSelector = ''): boolean {
  try {
    const { requirements } = parseFieldSelector(fieldSelector)
    return requirements.some(({ field, operator, value }) => field === 'spec.workerName' && operator === '=' && value === worker)
  } catch {
    return false
  }
}
