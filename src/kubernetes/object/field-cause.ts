import type { StatusCause } from './status-error.ts'

/** Formats a value as in Kubernetes' field errors: strings quoted, numbers and booleans as they are, the rest as JSON. */
export function formatValue(value: unknown): string {
  const text = value === undefined ? 'null' : JSON.stringify(value)
  return text.length > maxValueLength ? `${text.slice(0, maxValueLength)}…` : text
}

/** A longer value is truncated: this is enough to identify it. */
const maxValueLength = 4_096

/** `Invalid value: "x": <why>`. */
export function invalidValue(field: string, value: unknown, why: string): StatusCause {
  return { reason: 'FieldValueInvalid', message: `Invalid value: ${formatValue(value)}: ${why}`, field }
}

/** `Invalid value: "string": <why>`, for a value of the wrong JSON type. */
export function invalidType(field: string, value: unknown, why: string): StatusCause {
  return { reason: 'FieldValueTypeInvalid', message: `Invalid value: ${formatValue(value)}: ${why}`, field }
}

/** `Required value`, with `: <why>` when given. */
export function requiredValue(field: string, why = ''): StatusCause {
  return { reason: 'FieldValueRequired', message: why ? `Required value: ${why}` : 'Required value', field }
}

/** More allowed values than this are not named: an error may be repeated for many fields. */
const maxNamedValues = 500

/** `Unsupported value: "x": supported values: "a", "b"`. */
export function unsupportedValue(field: string, value: unknown, supported: readonly unknown[]): StatusCause {
  const named = supported
    .slice(0, maxNamedValues)
    .map(allowed => JSON.stringify(typeof allowed === 'string' ? allowed : JSON.stringify(allowed)))
  if (supported.length > maxNamedValues) named.push(`and ${supported.length - maxNamedValues} more`)
  const list = named.join(', ')
  return { reason: 'FieldValueNotSupported', message: `Unsupported value: ${formatValue(value)}: supported values: ${list}`, field }
}

/** `Not found: "x"`. */
export function notFoundValue(field: string, value: unknown): StatusCause {
  return { reason: 'FieldValueNotFound', message: `Not found: ${formatValue(value)}`, field }
}

/** `Duplicate value: "x"`. */
export function duplicateValue(field: string, value: unknown): StatusCause {
  return { reason: 'FieldValueDuplicate', message: `Duplicate value: ${formatValue(value)}`, field }
}

/** `Forbidden: <why>`. */
export function forbiddenField(field: string, why: string): StatusCause {
  return { reason: 'FieldValueForbidden', message: `Forbidden: ${why}`, field }
}

/** `Too long: may not be more than 63 bytes`. */
export function tooLong(field: string, maxBytes: number): StatusCause {
  return { reason: 'FieldValueTooLong', message: `Too long: may not be more than ${maxBytes} bytes`, field }
}

/** `Too many: 3: must have at most 2 items`. */
export function tooMany(field: string, count: number, max: number): StatusCause {
  return { reason: 'FieldValueTooMany', message: `Too many: ${count}: must have at most ${max} items`, field }
}
