import { rfc3339 } from '../../object/index.ts'
import type { Authorization, ReviewedTokens, ServiceAccountTokens, Tokens } from '../auth/index.ts'
import { type Kind, tokenRequestKind } from '../registry/index.ts'
import { admit, type Call, type Decoded, decodeBody, methodNotAllowed, readWriteOptions, sendObject, withKind } from '../rest/index.ts'
import type { Store } from '../storage/index.ts'
import { reviewAccess, reviewRules } from './access-review.ts'
import { checkReviewSize } from './check-review-size.ts'
import { objectIn, textIn, userInfo } from './review-fields.ts'
import { requestToken } from './token-request.ts'
import { reviewToken } from './token-review.ts'

export type ReviewServices = {
  store: Store
  authorization: Authorization
  tokens: Tokens
  /** Tokens that only another server knows. */
  reviewedTokens?: Pick<ReviewedTokens, 'review'> | undefined
  serviceAccounts: ServiceAccountTokens
}

/** Evaluates the objects of virtual kinds. */
export class Reviews {
  readonly #services: ReviewServices

  constructor(services: ReviewServices) {
    this.#services = services
  }

  /** @throws {StatusError} BadRequest or Invalid. */
  review(call: Call): void | Promise<void> {
    const { reviewedTokens } = this.#services
    if (call.target.kind.kind === 'TokenReview' && reviewedTokens) return this.#reviewToken(call, reviewedTokens)
    respond(call, call.target.kind, decoded => this.#evaluate(call, decoded))
  }

  /** The token of a user that only another server knows is asked for there first. */
  async #reviewToken(call: Call, reviewedTokens: Pick<ReviewedTokens, 'review'>): Promise<void> {
    const { tokens, serviceAccounts, store } = this.#services
    const { kind } = call.target
    const { object } = decodeBody(withKind(call, kind), readWriteOptions('CreateOptions', call.input.query, call.input.userAgent, 0))
    const token = textIn(objectIn(object.spec).token)
    const isKnown = !token || typeof tokens.review(token, serviceAccounts.audiences, store.nowMs) !== 'string'
    if (!isKnown) await reviewedTokens.review(token, undefined)
    respond(call, kind, decoded => this.#evaluate(call, decoded))
  }

  /** Handles the subresource `token` of a ServiceAccount. */
  createToken(call: Call): void {
    respond(call, tokenRequestKind, decoded => {
      const metadata = { ...decoded.object.metadata, name: call.target.name }
      admit(call, { ...decoded.object, metadata }, undefined, { dryRun: false })
      return requestToken(call, decoded, this.#services)
    })
  }

  #evaluate(call: Call, decoded: Decoded): Record<string, unknown> {
    const { authorization, tokens, serviceAccounts, store } = this.#services
    switch (call.target.kind.kind) {
      case 'SelfSubjectReview':
        return { metadata: { creationTimestamp: rfc3339(store.nowMs) }, status: { userInfo: userInfo(call.caller.user) } }
      case 'TokenReview':
        return reviewToken(decoded.object, tokens, serviceAccounts.audiences, store.nowMs)
      case 'SelfSubjectRulesReview':
        return reviewRules(decoded.object, call.caller.user, authorization)
      case 'SelfSubjectAccessReview':
      case 'SubjectAccessReview':
      case 'LocalSubjectAccessReview':
        return reviewAccess(call, decoded, authorization)
      default:
        throw methodNotAllowed()
    }
  }
}

function respond(call: Call, kind: Kind, answer: (decoded: Decoded) => Record<string, unknown>): void {
  const options = readWriteOptions('CreateOptions', call.input.query, call.input.userAgent, 0)
  const decoded = decodeBody(withKind(call, kind), options)
  checkReviewSize(decoded.object)
  const object = kind.strategy.default?.(decoded.object) ?? decoded.object
  const { metadata = {}, ...rest } = answer({ ...decoded, object })
  sendObject(call, { apiVersion: kind.apiVersion, kind: kind.kind, metadata, ...rest }, 201, options.warnings)
}
