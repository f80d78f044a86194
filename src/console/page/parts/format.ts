const number = new Intl.NumberFormat('en')
const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 2 })
const time = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'medium' })

export const formatNumber = (value: number): string => number.format(value)

/** `999`, `1.2K`, `34K`: at most four characters up to a million, for a narrow column whose title has the number. */
export const formatCompact = (value: number): string => (value < 1_000 ? String(value) : compact.format(value))

/** `3 Stacks`, `1 Stack`. */
export const formatCount = (count: number, noun: string): string => `${formatNumber(count)} ${noun}${count === 1 ? '' : 's'}`

/** `12.3 KiB`; below a KiB `812 B`. */
export function formatBytes(bytes: number): string {
  const power = Math.min(4, Math.floor(Math.log2(Math.max(1, bytes)) / 10))
  const value = bytes / 1024 ** power
  return `${power === 0 ? bytes : value.toFixed(value < 10 ? 1 : 0)} ${['B', 'KiB', 'MiB', 'GiB', 'TiB'][power]}`
}

export const formatTime = (ms: number): string => time.format(ms)

const units = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
] as const

/** The two largest units: `2d 3h`, `4m 10s`, `12s`; below a second `0s`. */
export function formatDuration(durationMs: number): string {
  const ms = Math.max(0, durationMs)
  const at = units.findIndex(([, unitMs]) => ms >= unitMs)
  if (at < 0) return '0s'
  const [unit, unitMs] = units[at] as (typeof units)[number]
  const next = units[at + 1]
  const rest = next && Math.floor((ms % unitMs) / next[1])
  return `${Math.floor(ms / unitMs)}${unit}${next && rest ? ` ${rest}${next[0]}` : ''}`
}

/** The largest unit: what a table has space for. */
export const formatAge = (ms: number): string => formatDuration(ms).split(' ')[0] as string

/** `AwaitingApproval` → `Awaiting approval`. */
export const formatWords = (name: string): string =>
  name.replace(/([a-z])([A-Z])/g, (_, end: string, start: string) => `${end} ${start.toLowerCase()}`)

/** `35ms`, `0.4s`, and from ten seconds on as {@link formatDuration}. */
export function formatSeconds(seconds: number): string {
  if (seconds < 0.1) return `${Math.round(seconds * 1_000)}ms`
  return seconds < 10 ? `${seconds.toFixed(1)}s` : formatDuration(seconds * 1_000)
}

/** What users read of a digest. */
export const shortDigest = (digest: string): string => digest.replace(/^sha256:/, '').slice(0, 12)
