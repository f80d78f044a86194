import { isJsonObject } from '../../object/index.ts'
import type { User } from '../auth/index.ts'

/** A field of a review as an object; empty if it is not one. */
export function objectIn(value: unknown): Record<string, unknown> {
  return isJsonObject(value) ? value : {}
}

/** A field of a review as text; empty if it is not one. */
export function textIn(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** A field of a review as a list of strings. */
export function textsIn(value: unknown): string[] {
  return Array.isArray(value) ? value.filter(item => typeof item === 'string') : []
}

/** A user in the form of a review. */
export function userInfo({ name, uid, groups, extra }: User): Record<string, unknown> {
  return { username: name, ...(uid && { uid }), groups, ...(extra && { extra }) }
}
