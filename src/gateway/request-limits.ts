import { StatusError } from '../kubernetes/object/index.ts'
import type { GatewayUser } from './user-headers.ts'

/** How much of a gateway one tenant or one user may use at a time. Each gateway counts alone. */
export type RequestLimitOptions = {
  /** Requests in progress for the namespaces of one Tenant, without watches. Default 400. */
  readonly requestsPerTenant: number
  /** Requests in progress of one user, without watches. Default 200. */
  readonly requestsPerUser: number
  /** Open watches of the namespaces of one Tenant. Default 5,000. */
  readonly watchesPerTenant: number
  /** Open watches of one user. Default 1,000. */
  readonly watchesPerUser: number
}

export const defaultRequestLimits: RequestLimitOptions = {
  requestsPerTenant: 400,
  requestsPerUser: 200,
  watchesPerTenant: 5_000,
  watchesPerUser: 1_000,
}

const exemptGroup = 'system:masters'
const retryAfterSeconds = 1

type Counts = Map<string, number>

/**
 * Counts what is in progress, by tenant and by user, so that one of them cannot use up the gateway. A request for a namespace of a Tenant counts for both.
 * The group `system:masters` is exempt, as in kube-apiserver's priority and fairness: it must be able to help.
 */
export class RequestLimits {
  readonly #limits: RequestLimitOptions
  readonly #tenants = { requests: new Map() as Counts, watches: new Map() as Counts }
  readonly #users = { requests: new Map() as Counts, watches: new Map() as Counts }
  #rejected = 0

  constructor(limits: Partial<RequestLimitOptions> = {}) {
    this.#limits = { ...defaultRequestLimits, ...limits }
  }

  /** Requests in progress, without watches, by Tenant. */
  get requestsOfTenants(): ReadonlyMap<string, number> {
    return this.#tenants.requests
  }

  /** Open watches by Tenant. */
  get watchesOfTenants(): ReadonlyMap<string, number> {
    return this.#tenants.watches
  }

  get rejected(): number {
    return this.#rejected
  }

  /**
   * Admits a request; the returned function must be called when it has ended.
   * @throws {StatusError} TooManyRequests, naming the Tenant or user and the limit.
   */
  admit({ name, groups }: GatewayUser, tenant: string | undefined, isWatch: boolean): () => void {
    const what = isWatch ? 'watches' : 'requests'
    const users = this.#users[what]
    const tenants = this.#tenants[what]
    if (!groups.includes(exemptGroup)) {
      const { watchesPerTenant, requestsPerTenant, watchesPerUser, requestsPerUser } = this.#limits
      if (tenant !== undefined) this.#check(tenants, tenant, isWatch ? watchesPerTenant : requestsPerTenant, 'Tenant', isWatch)
      this.#check(users, name, isWatch ? watchesPerUser : requestsPerUser, 'user', isWatch)
    }
    add(users, name, 1)
    if (tenant !== undefined) add(tenants, tenant, 1)
    let isOver = false
    return () => {
      if (isOver) return
      isOver = true
      add(users, name, -1)
      if (tenant !== undefined) add(tenants, tenant, -1)
    }
  }

  #check(counts: Counts, name: string, limit: number, of: 'Tenant' | 'user', isWatch: boolean): void {
    if ((counts.get(name) ?? 0) < limit) return
    this.#rejected++
    throw new StatusError(
      'TooManyRequests',
      `${of} ${JSON.stringify(name)} has ${limit} ${isWatch ? 'watches open' : 'requests in progress'}, as many as this gateway allows: retry later`,
      { details: { retryAfterSeconds } },
    )
  }
}

/** Who has nothing in progress needs no memory. */
function add(counts: Counts, name: string, by: number): void {
  const count = (counts.get(name) ?? 0) + by
  if (count > 0) counts.set(name, count)
  else counts.delete(name)
}
