import { badRequest, exceededJsonLimit, exceededJsonTextLimit, firstLossyNumber, type JsonLimits, StatusError } from '../../object/index.ts'

/** Far more than any object needs, and far less than what overflows the stack of those that walk it, here and in clients. */
const depth = 1_000
/**
 * Fields and items of an object without its managedFields. The largest definitions have some 60,000; each costs the server some
 * 4 microseconds in a write, in which nobody else is served.
 */
const nodes = 100_000
const objectLimits: JsonLimits = { depth, nodes }
/** Of a body as it comes: managedFields name every field once more. */
const textLimits: JsonLimits = { depth, nodes: 3 * nodes }
/** A text up to here is within the limits of an object, if it is within those of a text. */
const maxSmallText = nodes

/**
 * Bounds what a body may hold before it is parsed: how deep it nests, how many fields it has, and that its numbers can be stored.
 * @throws {StatusError} BadRequest, RequestEntityTooLarge.
 */
export function checkText(text: string): void {
  throwIfExceeded(exceededJsonTextLimit(text, textLimits), textLimits)
  const number = firstLossyNumber(text)
  if (number !== undefined) throw unstorableNumber(number)
}

/**
 * Bounds an object or a patch that did not come as JSON text, or came of a patch.
 * @throws {StatusError} BadRequest, RequestEntityTooLarge.
 */
export function checkSize<T>(value: T): T {
  throwIfExceeded(exceededJsonLimit(withoutManagedFields(value), objectLimits), objectLimits)
  return value
}

/** {@link checkSize} for what was parsed of `text`, which {@link checkText} has let through. */
export function checkParsed<T>(value: T, text: string): T {
  return text.length <= maxSmallText ? value : checkSize(value)
}

/** A number that would be stored as another one is refused: a Go client might not even be able to read it. */
export function unstorableNumber(number: string): StatusError {
  return badRequest(
    `the number ${number.slice(0, 40)} cannot be stored exactly: integers beyond 2^53 (${Number.MAX_SAFE_INTEGER}) must be sent as strings`,
  )
}

function throwIfExceeded(exceeded: keyof JsonLimits | undefined, limits: JsonLimits): void {
  if (exceeded === 'depth') throw badRequest(`the body of the request must not nest deeper than ${limits.depth} levels`)
  if (exceeded === 'nodes') {
    throw new StatusError('RequestEntityTooLarge', `the body of the request must have at most ${limits.nodes} fields and items`)
  }
}

function withoutManagedFields(value: unknown): unknown {
  const object = value as { metadata?: { managedFields?: unknown } } | null | undefined
  if (object?.metadata?.managedFields === undefined) return value
  const { managedFields: _, ...metadata } = object.metadata
  return { ...object, metadata }
}
