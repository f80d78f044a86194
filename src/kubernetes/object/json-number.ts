import { endOfString } from './json-limits.ts'

/** Too long to be safe, or so large that it is none: everything else is kept as it was sent. */
const suspicious = /[0-9]{16}|[eE]\+?[0-9]{3}/
const numberAt = /-?[0-9][0-9.eE+-]*/y

/**
 * The first number in a JSON text that would be stored as another one: an integer that a Go client reads exactly and JavaScript does
 * not (beyond 2^53, within 64 bits), or one that is too large for any number. Undefined when all are kept.
 */
export function firstLossyNumber(text: string): string | undefined {
  if (!suspicious.test(text)) return undefined
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === 34) {
      at = endOfString(text, at)
      if (at < 0) return undefined
    } else if (code === 45 || (code >= 48 && code <= 57)) {
      numberAt.lastIndex = at
      const [number = ''] = numberAt.exec(text) ?? []
      if (!isLosslessNumber(number)) return number
      at += Math.max(number.length, 1) - 1
    }
  }
  return undefined
}

/** True when a number in JSON's notation comes out as it came in. */
export function isLosslessNumber(number: string): boolean {
  const value = Number(number)
  if (Number.isSafeInteger(value) || Number.isNaN(value)) return true
  if (!Number.isFinite(value)) return false
  if (!/^-?[0-9]+$/.test(number) || number.length > 20) return true
  return String(value) === number || BigInt.asIntN(64, BigInt(number)) !== BigInt(number)
}
