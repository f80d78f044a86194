const unitMs = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const

/** The `pattern` of a duration field in a schema. */
export const durationPattern = '^([0-9]+(\\.[0-9]+)?(ms|s|m|h|d))+$'

const durationRegExp = new RegExp(durationPattern)

/**
 * Parses a duration such as `90s`, `1h30m` or `250ms` (Go's notation plus `d` for 24 hours) into milliseconds.
 * @throws {RangeError} for other text.
 */
export function parseDuration(text: string): number {
  if (!durationRegExp.test(text)) {
    throw new RangeError(`duration ${JSON.stringify(text)} must be numbers with units ms, s, m, h or d, such as 90s or 1h30m`)
  }
  let ms = 0
  for (const [, amount, unit] of text.matchAll(/([0-9.]+)(ms|s|m|h|d)/g)) ms += Number(amount) * unitMs[unit as keyof typeof unitMs]
  return Math.round(ms)
}

/** Formats milliseconds for people as the two largest units, such as `3m12s`; below a second as `250ms`. */
export function formatDuration(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))}ms`
  let rest = Math.floor(ms / 1_000)
  const parts: string[] = []
  for (const [unit, seconds] of [
    ['d', 86_400],
    ['h', 3_600],
    ['m', 60],
    ['s', 1],
  ] as const) {
    const amount = Math.floor(rest / seconds)
    rest -= amount * seconds
    if (amount > 0) parts.push(`${amount}${unit}`)
    if (parts.length === 2 || (parts.length === 1 && amount === 0)) break
  }
  return parts.join('')
}
