/**
 * @module app/delegated-auth: authentication and authorization by the API server, for requests that other roles serve. Start reading here, then at
 * `authenticate-by-token-review.ts`.
 * In: a token, or a user and what is requested. Out: a user, or whether it is allowed; cached for seconds (`expiring-cache.ts`).
 * Out of scope: rules of Oarlock's own (`../stores/store-access.ts`).
 */
import { hash } from 'node:crypto'
import { apiGroup } from '../../api/index.ts'
import type { Client } from '../../kubernetes/client/index.ts'
import { ExpiringCache } from './expiring-cache.ts'
import { accessReviewResource, type ReviewedUser } from './review-resources.ts'

/** A request for a resource. Without a namespace it is for all namespaces, without a name for every object. */
export type AccessAttributes = {
  readonly verb: string
  /** Default: Oarlock's. */
  readonly group?: string
  readonly resource: string
  readonly subresource?: string | undefined
  readonly namespace?: string | undefined
  readonly name?: string | undefined
}

/** A request for a path that is no object, such as `/metrics`. */
export type PathAttributes = { readonly verb: string; readonly path: string }

/**
 * A revoked permission can be used for this much longer. kube-apiserver's webhook authorizer caches permissions for five minutes and
 * refusals for thirty seconds; a user who was just granted a permission should not have to wait.
 */
const ttlMs = { allowed: 5_000, denied: 1_000 }
const maxEntries = 10_000

/** Decides by SubjectAccessReview, which every Kubernetes API server answers with its own authorizers. */
export class AccessReviewer {
  readonly #client: Client
  readonly #cache: ExpiringCache<boolean>

  /** @param client with the permission to create SubjectAccessReviews (`system:auth-delegator`). */
  constructor(client: Client, { nowMs }: { nowMs?: () => number } = {}) {
    this.#client = client
    this.#cache = new ExpiringCache({ maxEntries, nowMs })
  }

  /** @throws {StatusError} or {ConnectionError} if the API server does not decide. */
  async isAllowed(user: ReviewedUser, attributes: AccessAttributes | PathAttributes): Promise<boolean> {
    const { name, groups, uid, extra } = user
    const spec = {
      user: name,
      groups,
      ...(uid && { uid }),
      ...(extra && { extra }),
      ...('path' in attributes ? { nonResourceAttributes: attributes } : { resourceAttributes: { group: apiGroup, ...attributes } }),
    }
    return await this.#cache.get(
      hash('sha256', JSON.stringify(spec)),
      async () => {
        const review = await this.#client.resource(accessReviewResource).create({ metadata: { name: '' }, spec })
        return review.status?.allowed === true
      },
      allowed => (allowed ? ttlMs.allowed : ttlMs.denied),
    )
  }
}

/** The message of kube-apiserver's 403. */
export function forbiddenMessage(user: ReviewedUser, attributes: AccessAttributes): string {
  const { verb, group = apiGroup, resource, subresource, namespace, name } = attributes
  const object = `${resource}.${group}${name ? ` ${JSON.stringify(name)}` : ''}`
  const kind = JSON.stringify(subresource ? `${resource}/${subresource}` : resource)
  const where = namespace === undefined ? 'at the cluster scope' : `in the namespace ${JSON.stringify(namespace)}`
  return `${object} is forbidden: User ${JSON.stringify(user.name)} cannot ${verb} resource ${kind} in API group ${JSON.stringify(group)} ${where}`
}
