import { isJsonObject } from '../../object/index.ts'
import type { User } from '../auth/index.ts'

/** A field of a review as an object; empty when it is none. */
export function objectIn(value: unknown): Record<string, unknown> {
  return isJsonObject(value) ? value : {}
}

/** A field of a review as text; empty when it is none. */
export function textIn(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** A field of a review as a list of texts. */
export function textsIn(value: unknown): string[] {
  return Array.isArray(value) ? value.filter(item => typeof item === 'string') : []
}

/** A user as reviews show it. */
export function userInfo({ name, uid, groups, extra }: User): Record<string, unknown> {
  return { username: name, ...(uid && { uid }), groups, ...(extra && { extra }) }
}
