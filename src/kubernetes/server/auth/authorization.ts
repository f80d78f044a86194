import { type NodeAuthorizer, nodeNameOf } from './node/index.ts'
import type { PolicyRule, Rbac } from './rbac/index.ts'
import { type Attributes, type AuthorizerPlugin, adminsGroup, type User } from './user.ts'

/** The decision as a SubjectAccessReview reports it; `denied` if the authorizer of the embedding program rejected it. */
export type AuthorizationReview = { readonly allowed: boolean; readonly denied: boolean; readonly reason: string }

/**
 * Authorizes requests: first the authorizer of the embedding program, if it decides, then `system:masters`, then the
 * rights of kubelets, then RBAC. It runs for every
 * request; for an administrator it costs one lookup of the groups.
 */
export class Authorization {
  readonly #plugin: AuthorizerPlugin | undefined
  readonly #rbac: Rbac
  readonly #nodes: NodeAuthorizer

  constructor(rbac: Rbac, nodes: NodeAuthorizer, own?: AuthorizerPlugin) {
    this.#rbac = rbac
    this.#nodes = nodes
    this.#plugin = own
  }

  /** True, or the reason for a 403; empty when there is nothing to add. */
  readonly authorize = (attributes: Attributes): true | string => {
    const own = this.#plugin?.(attributes)
    if (own !== undefined) return own
    if (attributes.user.groups.includes(adminsGroup) || this.#nodes.allows(attributes)) return true
    const decision = this.#rbac.decide(attributes)
    return decision.allowed || decision.reason
  }

  explain(attributes: Attributes): AuthorizationReview {
    const own = this.#plugin?.(attributes)
    if (own !== undefined) return { allowed: own === true, denied: own !== true, reason: own === true ? '' : own }
    if (attributes.user.groups.includes(adminsGroup) || this.#nodes.allows(attributes)) return { allowed: true, denied: false, reason: '' }
    const { allowed, reason } = this.#rbac.decide(attributes)
    return { allowed, denied: false, reason }
  }

  /** The rules of a user in a namespace. They are incomplete if the embedding program has an authorizer, and for kubelets. */
  rulesFor(user: User, namespace: string): { rules: readonly PolicyRule[]; error: string; isIncomplete: boolean } {
    const isIncomplete = (this.#plugin !== undefined || nodeNameOf(user) !== undefined) && !user.groups.includes(adminsGroup)
    return { ...this.#rbac.rulesFor(user, namespace), isIncomplete }
  }
}
