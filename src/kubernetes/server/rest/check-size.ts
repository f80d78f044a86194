import { countOwned, type OwnedCount } from '../../apply/index.ts'
import {
  badRequest,
  exceededJsonLimit,
  exceededJsonTextLimit,
  firstLossyNumber,
  type JsonLimits,
  type KubeObject,
  StatusError,
  wideFields,
} from '../../object/index.ts'
import type { Kind } from '../registry/index.ts'

/** Far more than any object needs, and far less than what overflows the stack of recursive code here and in clients. */
const depth = 1_000
/** Fields and items of an object without its managedFields. The largest CustomResourceDefinitions have about 60,000. */
const nodes = 100_000
/** Different names, and fields in maps of more than 1,000: they cost most. Even a ConfigMap of 1 MB with so many keys is unusual. */
const names = 10_000
/** What managedFields name: each costs about as much as five fields of a CustomResourceDefinition, which are atomic; a list item costs most. */
const owned: OwnedCount = { fields: 30_000, items: 5_000 }
const objectLimits: JsonLimits = { depth, nodes, names, wide: names }
/** Limits with managedFields, which name every field again: of an unparsed body, and of a stored object. */
const wholeLimits: JsonLimits = { depth, nodes: 3 * nodes, names: 3 * names, wide: 3 * names }
/** A text up to this length that is within `wholeLimits` is also within `objectLimits`. */
const maxSmallText = 5 * names

/**
 * Checks an unparsed JSON body: its depth, its number of fields, and that its numbers can be stored exactly.
 * @throws {StatusError} BadRequest, RequestEntityTooLarge.
 */
export function checkText(text: string): void {
  throwIfExceeded(exceededJsonTextLimit(text, wholeLimits), wholeLimits)
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

/**
 * Checks how much of `object` can have owners of its own.
 * @param length of its JSON, or of what it was merged from.
 * @throws {StatusError} RequestEntityTooLarge.
 */
export function checkOwned({ schema }: Kind, object: KubeObject, length: number): void {
  // An item takes at least two characters.
  if (length <= 2 * owned.items) return
  const { fields, items } = countOwned(schema, object, owned)
  const exceeded =
    items > owned.items
      ? `${owned.items} items in lists of type set or map`
      : fields > owned.fields && `${owned.fields} fields that can have owners of their own`
  if (exceeded) throw new StatusError('RequestEntityTooLarge', `the object must have at most ${exceeded}`)
}

/** The error for a number that would be stored as a different one, which a Go client might be unable to parse. */
export function unstorableNumber(number: string): StatusError {
  return badRequest(
    `the number ${number.slice(0, 40)} cannot be stored exactly: integers beyond 2^53 (${Number.MAX_SAFE_INTEGER}) must be sent as strings`,
  )
}

/**
 * Checks an object with its managedFields before it is stored: each further manager that owns every field adds as many fields as the object has.
 * @param length of the JSON of its last version.
 * @throws {StatusError} RequestEntityTooLarge.
 */
export function checkStored(object: KubeObject, length: number): void {
  // Two managers are within the limits if the object itself is.
  if (length <= maxSmallText || (object.metadata.managedFields?.length ?? 0) <= 2) return
  throwIfExceeded(exceededJsonLimit(object, wholeLimits), wholeLimits, 'the object with its managedFields')
}

function throwIfExceeded(exceeded: keyof JsonLimits | undefined, limits: JsonLimits, what = 'the body of the request'): void {
  if (exceeded === undefined) return
  if (exceeded === 'depth') throw badRequest(`the body of the request must not nest deeper than ${limits.depth} levels`)
  const allowed = {
    nodes: `${limits.nodes} fields and items`,
    names: `${limits.names} different names of fields`,
    wide: `${limits.wide} fields in maps of more than ${wideFields}`,
  }[exceeded]
  throw new StatusError('RequestEntityTooLarge', `${what} must have at most ${allowed}`)
}

function withoutManagedFields(value: unknown): unknown {
  const object = value as { metadata?: { managedFields?: unknown } } | null | undefined
  if (object?.metadata?.managedFields === undefined) return value
  const { managedFields: _, ...metadata } = object.metadata
  return { ...object, metadata }
}
