import { endOfString } from './json-limits.ts'

/** Long enough to be beyond 2^53, or with an exponent that may overflow: all other numbers are lossless. */
const suspicious = /[0-9]{16}|[eE]\+?[0-9]{3}/
const numberAt = /-?[0-9][0-9.eE+-]*/y

/**
 * The first number in a JSON text that JavaScript would store as another one: an integer that a Go client reads exactly
 * (beyond 2^53, within 64 bits), or one that overflows. Undefined when all numbers are lossless.
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

/** True if a number in JSON's notation survives parsing and formatting. */
export function isLosslessNumber(number: string): boolean {
  const value = Number(number)
  if (Number.isSafeInteger(value) || Number.isNaN(value)) return true
  if (!Number.isFinite(value)) return false
  if (!/^-?[0-9]+$/.test(number) || number.length > 20) return true
  return String(value) === number || BigInt.asIntN(64, BigInt(number)) !== BigInt(number)
}
