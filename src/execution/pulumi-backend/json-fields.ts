import { isJsonObject } from '../../kubernetes/object/index.ts'
import { HttpError } from '../../stores/http/index.ts'
import { badRequest } from './route-request.ts'

const maxEntries = 10_000

/** @throws {HttpError} 400 */
export function toObject(value: unknown, what = 'the body'): Record<string, unknown> {
  if (!isJsonObject(value)) throw badRequest(`${what} must be a JSON object`)
  return value
}

/** Text of a field; empty if it is missing. @throws {HttpError} 400 */
export function textField(object: Record<string, unknown>, field: string, maxLength = 16_384): string {
  const value = object[field] ?? ''
  if (typeof value !== 'string' || value.length > maxLength) throw badRequest(`${field} must be a text of at most ${maxLength} characters`)
  return value
}

/** A whole number from 0; 0 if it is missing. @throws {HttpError} 400 */
export function countField(object: Record<string, unknown>, field: string): number {
  const value = object[field] ?? 0
  if (!Number.isSafeInteger(value) || (value as number) < 0) throw badRequest(`${field} must be a whole number from 0`)
  return value as number
}

/** An object of texts; empty if it is missing. @throws {HttpError} 400 */
export function textMap(value: unknown, what: string): Record<string, string> {
  const entries = Object.entries(toObject(value ?? {}, what))
  if (entries.length > maxEntries) throw badRequest(`${what} must have at most ${maxEntries} entries`)
  for (const [, each] of entries) if (typeof each !== 'string') throw badRequest(`${what} must be an object of texts`)
  return Object.fromEntries(entries) as Record<string, string>
}

/** Values in base64; Go sends null for an empty one. @throws {HttpError} 400, 413 above 10,000 values */
export function base64Values(value: unknown, field: string): Buffer[] {
  const values = value ?? []
  if (!Array.isArray(values)) throw badRequest(`${field} must be an array`)
  if (values.length > maxEntries)
    throw new HttpError(413, 'TooLarge', `${field} has ${values.length} values; at most ${maxEntries} are allowed`)
  return values.map(each => base64Value(each, field))
}

/** @throws {HttpError} 400 */
export function base64Value(value: unknown, field: string): Buffer {
  const text = value ?? ''
  const isValid = typeof text === 'string' && text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text)
  if (!isValid) throw badRequest(`${field} must be base64`)
  return Buffer.from(text, 'base64')
}
