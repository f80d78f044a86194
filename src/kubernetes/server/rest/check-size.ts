import { badRequest, exceededJsonLimit, exceededJsonTextLimit, firstLossyNumber, type JsonLimits, StatusError } from '../../object/index.ts'

/** Far more than any object needs, and far less than what overflows the stack of recursive code here and in clients. */
const depth = 1_000
/**
 * Fields and items of an object without its managedFields. The largest CustomResourceDefinitions have about 60,000; each costs about
 * 4 microseconds in a write, during which the server serves no other request.
 */
const nodes = 100_000
const objectLimits: JsonLimits = { depth, nodes }
/** Limits of an unparsed body: managedFields name every field again. */
const textLimits: JsonLimits = { depth, nodes: 3 * nodes }
/** A text up to this length that is within `textLimits` is also within `objectLimits`. */
const maxSmallText = nodes

/**
 * Checks an unparsed JSON body: its depth, its number of fields, and that its numbers can be stored exactly.
 * @throws {StatusError} BadRequest, RequestEntityTooLarge.
 */
export function checkText(text: string): void {
  throwIfExceeded(exceededJsonTextLimit(text, textLimits), textLimits)
  const number = firstLossyNumber(text)
  if (number !== undefined) throw unstorableNumber(number)
}

/**
 * Checks the depth and the number of fields of an object that was not parsed from JSON text, or that is the result of a patch.
 * @throws {StatusError} BadRequest, RequestEntityTooLarge.
 */
export function checkSize<T>(value: T): T {
  throwIfExceeded(exceededJsonLimit(withoutManagedFields(value), objectLimits), objectLimits)
  return value
}

/** {@link checkSize} for the value parsed from `text`, which {@link checkText} has accepted. */
export function checkParsed<T>(value: T, text: string): T {
  return text.length <= maxSmallText ? value : checkSize(value)
}

/** {@link checkSize} for two accepted objects that were merged, whose JSON has `length` characters together: a merge adds no depth. */
export function checkMerged<T>(value: T, length: number): T {
  return length <= maxSmallText ? value : checkSize(value)
}

/** The error for a number that would be stored as a different one, which a Go client might be unable to parse. */
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
