import { badRequest, exceededJsonLimit, type KubeObject } from '../../object/index.ts'
import { objectIn } from './review-fields.ts'

/**
 * Fields and items of one field of a review's spec, such as `groups` or `extra`. Tokens of directory services name up to about a thousand groups;
 * the response repeats the spec, and every group is looked up.
 */
const maxNodes = 5_000

/** @throws {StatusError} BadRequest naming the first field of the spec that is too large. */
export function checkReviewSize({ spec }: KubeObject): void {
  for (const [field, value] of Object.entries(objectIn(spec))) {
    if (exceededJsonLimit(value, { depth: Number.POSITIVE_INFINITY, nodes: maxNodes }) === undefined) continue
    throw badRequest(`spec.${field} must have at most ${maxNodes} fields and items`)
  }
}
