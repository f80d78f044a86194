import type { PolicyRule, Rbac } from './rbac/index.ts'
import { type Attributes, type AuthorizerPlugin, adminsGroup, type User } from './user.ts'

/** As a review tells it: `denied` when no later word could have allowed it. */
export type AuthorizationReview = { readonly allowed: boolean; readonly denied: boolean; readonly reason: string }

/**
 * Whether a request is allowed: first what the embedding program says, if it says anything, then `system:masters`, then
 * RBAC. Asked with every request, so an administrator costs one look at their groups.
 */
export class Authorization {
  readonly #plugin: AuthorizerPlugin | undefined
  readonly #rbac: Rbac

  constructor(rbac: Rbac, own?: AuthorizerPlugin) {
    this.#rbac = rbac
    this.#plugin = own
  }

  /** True, or the reason for a 403; empty when there is nothing to add. */
  readonly authorize = (attributes: Attributes): true | string => {
    const own = this.#plugin?.(attributes)
    if (own !== undefined) return own
    if (attributes.user.groups.includes(adminsGroup)) return true
    const verdict = this.#rbac.decide(attributes)
    return verdict.allowed || verdict.reason
  }

  explain(attributes: Attributes): AuthorizationReview {
    const own = this.#plugin?.(attributes)
    if (own !== undefined) return { allowed: own === true, denied: own !== true, reason: own === true ? '' : own }
    if (attributes.user.groups.includes(adminsGroup)) return { allowed: true, denied: false, reason: '' }
    const { allowed, reason } = this.#rbac.decide(attributes)
    return { allowed, denied: false, reason }
  }

  /** The rules that a user has in a namespace; not all there is to say when the embedding program decides too. */
  rulesFor(user: User, namespace: string): { rules: readonly PolicyRule[]; error: string; isIncomplete: boolean } {
    const isIncomplete = this.#plugin !== undefined && !user.groups.includes(adminsGroup)
    return { ...this.#rbac.rulesFor(user, namespace), isIncomplete }
  }
}
