import type { Run } from '../../../api/index.ts'

/** Whether the Run is restricted by a sandbox. Others can read and change what the worker's user can. */
export const isSandboxed = ({ spec }: Run): boolean => spec.stack.isolation?.level === 'Sandbox'

export const namespaceOf = ({ metadata }: Run): string => metadata.namespace ?? 'default'

/**
 * The Runs that share what one of them has built or downloaded without proof of its content: those of the Tenant that the dispatcher has
 * recorded in the Run, else of the namespace. Sandboxed Runs do not share with those that are not. Equal names are never of different
 * domains: a Tenant is identified by its UID. It is a valid name of a directory.
 */
export function trustDomainOf(run: Run): string {
  const { tenant } = run.spec
  const owner = tenant ? `tenant-${tenant.uid}` : `namespace-${namespaceOf(run)}`
  return isSandboxed(run) ? owner : `process-${owner}`
}
