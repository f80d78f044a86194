const units: readonly [name: string, ms: number, next: number][] = [
  ['s', 1_000, 60],
  ['min', 60_000, 60],
  ['h', 3_600_000, 48],
  ['d', 86_400_000, Number.POSITIVE_INFINITY],
]

/** One number with its unit: `12 s`, `3 min`, `47 h`, `2 d`. Less than a second, and what is negative because clocks differ, is `0 s`. */
export function formatDuration(ms: number): string {
  for (const [name, unitMs, next] of units) {
    const count = Math.floor(Math.max(0, ms) / unitMs)
    if (count < next) return `${count} ${name}`
  }
  return ''
}

/** Two numbers for what is being compared: `1 min 12 s`, `3 h 5 min`; below 10 seconds with a tenth. */
export function formatExactDuration(ms: number): string {
  if (ms < 10_000) return `${(Math.max(0, ms) / 1_000).toFixed(1)} s`
  const seconds = Math.floor(ms / 1_000)
  if (seconds < 60) return `${seconds} s`
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`
  return `${Math.floor(seconds / 3_600)} h ${Math.floor((seconds % 3_600) / 60)} min`
}

const numbers = new Intl.NumberFormat('en')
/** `10000` as `10,000`. */
export const formatCount = (count: number): string => numbers.format(count)

/** `1 Stack`, `2 Stacks`, `10,000 Stacks`. */
export const plural = (count: number, one: string, many = `${one}s`): string => `${formatCount(count)} ${count === 1 ? one : many}`
