import { apiGroup, isEnded, outputsSecretName, type Run, type StackSpec, systemNamespace, workersNamespace } from '../../api/index.ts'
import type { Attributes } from '../../kubernetes/server/index.ts'
import { poolOf } from '../worker-identity.ts'
import type { WorkerFacts } from './worker-facts.ts'

/**
 * Allows a worker, local or joined, what its own Runs reference, as Kubernetes' Node authorizer does for kubelets. Returns true, or
 * undefined to leave the decision to RBAC, which grants nothing unless an administrator binds a role to the group of the pool.
 */
export function authorizeWorker(attributes: Attributes, worker: string, facts: WorkerFacts): true | undefined {
  const { user, verb, group, resource, subresource, namespace, name, path, fieldSelector } = attributes
  if (path !== undefined) return undefined
  const isRead = verb === 'get' || verb === 'list' || verb === 'watch'
  const isWrite = verb === 'update' || verb === 'patch' || verb === 'delete'
  const allowIf = (isAllowed: boolean): true | undefined => isAllowed || undefined
  const someRun = (meets: (run: Run) => boolean) =>
    facts.someRun(worker, run => run.metadata.namespace === namespace && !isEnded(run) && meets(run))
  switch (`${resource}.${group}`) {
    case `runs.${apiGroup}`: {
      if (verb === 'list' || verb === 'watch') return allowIf(fieldSelector === `spec.workerName=${worker}`)
      const isOwn = facts.run(namespace, name)?.spec.workerName === worker
      return allowIf(isOwn && (verb === 'get' || (subresource === 'status' && (verb === 'patch' || verb === 'update'))))
    }
    case `workers.${apiGroup}`:
      if (verb === 'create') return allowIf(!subresource && facts.hasNewCredential(worker))
      return allowIf(name === worker && (isRead || isWrite))
    case `workerpools.${apiGroup}`:
      return allowIf(verb === 'get' && !subresource && name !== undefined && name === (poolOf(user) ?? facts.poolOf(worker)))
    case 'leases.coordination.k8s.io':
      if (namespace !== systemNamespace) return undefined
      if (verb === 'create')
        return allowIf(facts.hasNewCredential(worker) || facts.stored(`workers.${apiGroup}`, undefined, worker) !== undefined)
      return allowIf(name === worker && (verb === 'get' || isWrite))
    case 'secrets.': {
      if (namespace === undefined || namespace === systemNamespace || namespace === workersNamespace || subresource) return undefined
      if (verb === 'create') return allowIf(someRun(() => true))
      if (name === undefined || !(verb === 'get' || isWrite)) return undefined
      if (someRun(({ spec }) => outputsSecretName(spec.stackRef.name) === name)) return true
      return allowIf(verb === 'get' && someRun(({ spec }) => referencedSecrets(spec.stack).has(name)))
    }
    case 'configmaps.': {
      if (verb !== 'get' || name === undefined || subresource) return undefined
      return allowIf(someRun(({ spec }) => (spec.stack.variablesFrom ?? []).some(({ configMapRef }) => configMapRef?.name === name)))
    }
    default:
      return undefined
  }
}

/** The Secrets that a Run reads. They are named in its copy of the Stack's spec, which is immutable. */
function referencedSecrets(spec: StackSpec): ReadonlySet<string> {
  const names: (string | undefined)[] = [spec.source.git?.secretRef?.name, spec.manifests?.kubeconfigSecretRef?.name]
  for (const { secretKeyRef } of spec.env ?? []) names.push(secretKeyRef?.name)
  for (const { secretRef, stackRef } of spec.variablesFrom ?? []) {
    names.push(secretRef?.name, stackRef && outputsSecretName(stackRef.name))
  }
  // A program of Pulumi refers to the outputs of these Stacks (StackReference).
  if (spec.engine === 'pulumi') for (const { name } of spec.dependsOn ?? []) names.push(outputsSecretName(name))
  return new Set(names.filter(name => name !== undefined))
}
