import { badRequest, exceedsDepth } from '../../kube/index.ts'

/** Far more than any object needs, and far less than what overflows the stack of those that walk it, here and in clients. */
const maxDepth = 1_000

/**
 * Bounds how deep objects and patches nest.
 * @throws {StatusError} BadRequest.
 */
export function checkDepth<T>(value: T): T {
  if (exceedsDepth(value, maxDepth)) throw badRequest(`the body of the request must not nest deeper than ${maxDepth} levels`)
  return value
}
