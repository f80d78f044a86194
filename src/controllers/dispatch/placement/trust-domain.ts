import { isExclusive, type Worker } from '../../../api/index.ts'
import type { Requirements } from '../queue/index.ts'

/** The trust domain of a worker whose first Run did not require level Pod: no Run that does is assigned to it. */
export const anyTrustDomain = '*'

/** Whether the worker is a Pod that executes several Runs, so that what one leaves could be read by the next. */
const isSharedPod = ({ spec }: Worker): boolean => spec.pod !== undefined && !isExclusive(spec)

/**
 * Whether the worker may execute Runs of the trust domain that these require. A Pod that executes several Runs belongs to that of its first one; one in the
 * namespace of a Stack is created for one.
 */
export function isInTrustDomain({ trustDomain, pod }: Pick<Requirements, 'trustDomain' | 'pod'>, worker: Worker): boolean {
  const own = worker.spec.trustDomain
  if (own === undefined) return trustDomain === undefined || (pod === undefined && isSharedPod(worker))
  return own === (trustDomain ?? anyTrustDomain)
}

/** The trust domain to record in the Worker before the Run is assigned to it; undefined if it needs none, or has it. */
export function trustDomainToRecord({ trustDomain }: Pick<Requirements, 'trustDomain'>, worker: Worker): string | undefined {
  return isSharedPod(worker) && worker.spec.trustDomain === undefined ? (trustDomain ?? anyTrustDomain) : undefined
}
