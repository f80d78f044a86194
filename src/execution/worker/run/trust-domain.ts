import { type Run, trustDomainName } from '../../../api/index.ts'

/** Whether the Run is restricted by a sandbox. Others can read and change what the worker's user can. */
export const isSandboxed = ({ spec }: Run): boolean => spec.stack.isolation?.level === 'Sandbox'

export const namespaceOf = ({ metadata }: Run): string => metadata.namespace ?? 'default'

/** The trust domain of a Run that has the policy of its assignment applied. The Tenant is the one that the dispatcher has recorded in it. */
export const trustDomainOf = (run: Run): string =>
  trustDomainName({ namespace: namespaceOf(run), tenant: run.spec.tenant, isSandboxed: isSandboxed(run) })
