import { invalidValue, type StatusCause } from '../../../object/index.ts'
import { notNegative } from './checks.ts'
import type { Fields } from './type-rules.ts'

/** Errors of those `fields` that are negative numbers. */
export function negativeErrors(value: Fields, path: string, fields: readonly string[]): StatusCause[] {
  return fields.flatMap(field => notNegative(`${path}.${field}`, value[field]))
}

/** Errors of a field such as `maxSurge`, which is a non-negative integer or a percentage. */
export function intOrPercentErrors(value: unknown, path: string): StatusCause[] {
  if (typeof value === 'number') return notNegative(path, value)
  if (typeof value !== 'string' || isPercent(value)) return []
  const reason = `a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')`
  return [invalidValue(path, value, reason)]
}

export function over100PercentErrors(value: unknown, path: string): StatusCause[] {
  return typeof value === 'string' && isPercent(value) && numberOf(value) > 100
    ? [invalidValue(path, value, 'must not be greater than 100%')]
    : []
}

/** The number in `3` or `25%`; 0 for other values. */
export function numberOf(value: unknown): number {
  return typeof value === 'number' ? value : typeof value === 'string' ? Number.parseInt(value, 10) || 0 : 0
}

const isPercent = (text: string) => /^[0-9]+%$/.test(text)
