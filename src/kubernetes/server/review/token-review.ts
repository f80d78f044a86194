import { badRequest, type KubeObject } from '../../object/index.ts'
import type { Tokens } from '../auth/index.ts'
import { objectIn, textIn, textsIn, userInfo } from './review-fields.ts'

/**
 * Evaluates a TokenReview: the user of the token, and the requested audiences that it is valid for. An invalid token is a result, not an
 * error.
 * @throws {StatusError} BadRequest without a token.
 */
export function reviewToken(object: KubeObject, tokens: Tokens, ownAudiences: readonly string[], nowMs: number): Record<string, unknown> {
  const spec = objectIn(object.spec)
  const token = textIn(spec.token)
  if (!token) throw badRequest('token is required for TokenReview in authentication')
  const requested = textsIn(spec.audiences)
  const read = tokens.review(token, requested.length > 0 ? requested : ownAudiences, nowMs)
  if (typeof read === 'string') {
    const error = read === 'invalid bearer token' ? read : `[invalid bearer token, ${read}]`
    return { spec, status: { user: {}, error } }
  }
  return { spec, status: { authenticated: true, user: userInfo(read.user), audiences: read.audiences } }
}
