import { isExclusive, type RunSpec, trustDomainName, type WorkerPool } from '../../../api/index.ts'

/** Where the Pod of a Worker has to be. */
export type PodPlace = {
  readonly namespace: string
  /** Undefined: that of the template of the pool. */
  readonly serviceAccountName: string | undefined
}

/** What else decides about the place of a Run; undefined: there is none, or it is not known. */
export type RunOwner = { readonly pool: WorkerPool | undefined; readonly tenant: RunSpec['tenant'] }

export type PodPlaceInput = RunOwner & {
  readonly namespace: string
  /** The level in effect. */
  readonly isolation: 'Sandbox' | 'Pod' | undefined
  /** `spec.serviceAccountName` of the Stack. */
  readonly requested: string | undefined
}

/**
 * Which Pods of a pool of mode Pod may execute a Run. With `podNamespace: Stack` those in its namespace with its ServiceAccount. Of Pods that execute several Runs, those of its trust domain, if it requires level Pod.
 */
export function podPlaceOf({ pool, tenant, namespace, isolation, requested }: PodPlaceInput): {
  readonly pod?: PodPlace
  readonly trustDomain?: string
  readonly violation?: string
} {
  if (pool?.spec.mode === 'Pod' && pool.spec.podNamespace === 'Stack')
    return { pod: { namespace, serviceAccountName: requested }, trustDomain: `${namespace}/${requested ?? ''}` }
  if (requested !== undefined && pool) {
    const why = `WorkerPool ${pool.metadata.name} does not create a Pod in the namespace of the Stack (podNamespace Stack)`
    return { violation: `spec.serviceAccountName: ${requested} cannot be used, because ${why}; choose another pool or remove the field` }
  }
  if (pool?.spec.mode !== 'Pod' || isExclusive(pool.spec) || isolation !== 'Pod') return {}
  return { trustDomain: trustDomainName({ namespace, tenant, isSandboxed: false }) }
}
