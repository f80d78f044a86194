import { StatusError } from '../../kubernetes/object/index.ts'
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
   * Admits a request of a user; the returned function must be called when it has ended.
   * @throws {StatusError} TooManyRequests, naming the user and the limit.
   */
  admitUser({ name, groups }: GatewayUser, isWatch: boolean): () => void {
    const { watchesPerUser, requestsPerUser } = this.#limits
    const limit = groups.includes(exemptGroup) ? Number.POSITIVE_INFINITY : isWatch ? watchesPerUser : requestsPerUser
    return this.#admit(isWatch ? this.#users.watches : this.#users.requests, name, limit, 'user', isWatch)
  }

  /**
   * As {@link admitUser}, for the Tenant whose namespace the request is for. Anyone can send one: call it when the request was read, so that who sends slowly
   * uses up nothing of a Tenant.
   * @throws {StatusError} TooManyRequests, naming the Tenant and the limit.
   */
  admitTenant({ groups }: GatewayUser, tenant: string, isWatch: boolean): () => void {
    const { watchesPerTenant, requestsPerTenant } = this.#limits
    const limit = groups.includes(exemptGroup) ? Number.POSITIVE_INFINITY : isWatch ? watchesPerTenant : requestsPerTenant
    return this.#admit(isWatch ? this.#tenants.watches : this.#tenants.requests, tenant, limit, 'Tenant', isWatch)
  }

  #admit(counts: Counts, name: string, limit: number, of: 'Tenant' | 'user', isWatch: boolean): () => void {
    this.#check(counts, name, limit, of, isWatch)
    add(counts, name, 1)
    let isOver = false
    return () => {
      if (isOver) return
      isOver = true
      add(counts, name, -1)
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
