/** Returns a function that keeps the first `max` distinct values and maps all others to `other`. */
export function boundedLabelValues(max: number): (value: string) => string {
  const known = new Set<string>()
  return value => {
    if (known.has(value)) return value
    if (known.size >= max) return 'other'
    known.add(value)
    return value
  }
}
