/** Formats a duration as Kubernetes' `HumanDuration` does: `45s`, `3m12s`, `5h`, `3d4h`, `2y30d`. */
export function humanDuration(ms: number): string {
  const seconds = Math.floor(ms / 1_000)
  if (seconds < -1) return '<invalid>'
  if (seconds < 0) return '0s'
  if (seconds < 120) return `${seconds}s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 10) return twoUnits(minutes, 'm', seconds % 60, 's')
  if (minutes < 180) return `${minutes}m`
  const hours = Math.floor(minutes / 60)
  if (hours < 8) return twoUnits(hours, 'h', minutes % 60, 'm')
  if (hours < 48) return `${hours}h`
  const days = Math.floor(hours / 24)
  if (hours < 192) return twoUnits(days, 'd', hours % 24, 'h')
  if (days < 730) return `${days}d`
  const years = Math.floor(days / 365)
  if (years < 8) return twoUnits(years, 'y', days % 365, 'd')
  return `${years}y`
}

function twoUnits(large: number, largeUnit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${large}${largeUnit}` : `${large}${largeUnit}${small}${smallUnit}`
}

/** The age at `nowMs` of an RFC 3339 time; `<unknown>` if it is missing. */
export function formatAge(time: unknown, nowMs: number): string {
  if (typeof time !== 'string') return '<unknown>'
  const ms = Date.parse(time)
  return Number.isNaN(ms) ? '<invalid>' : humanDuration(nowMs - ms)
}
