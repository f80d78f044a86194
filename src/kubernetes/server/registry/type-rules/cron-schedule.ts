/**
 * Validates schedules of CronJobs: five fields as in cron(5) with names of months and days, or `@hourly`, `@daily` and so on, or `@every
 * 1h30m`. The grammar and the error messages are those of github.com/robfig/cron/v3 with its standard parser, which Kubernetes uses.
 */

type Field = { min: number; max: number; names?: readonly string[] }

const months = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec']
const days = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat']
const fields: readonly Field[] = [
  { min: 0, max: 59 },
  { min: 0, max: 23 },
  { min: 1, max: 31 },
  { min: 1, max: 12, names: months },
  { min: 0, max: 6, names: days },
]
const descriptors = new Set(['@yearly', '@annually', '@monthly', '@weekly', '@daily', '@midnight', '@hourly'])

/** Why `schedule` is invalid; undefined if it is valid. */
export function scheduleError(schedule: string): string | undefined {
  let text = schedule
  if (/^(CRON_)?TZ=/.test(text)) {
    const space = text.indexOf(' ')
    const zone = text.slice(text.indexOf('=') + 1, space < 0 ? undefined : space)
    if (space < 0 || !isTimeZone(zone)) return `provided bad location ${zone}: unknown time zone ${zone}`
    text = text.slice(space).trim()
  }
  if (text.startsWith('@')) return descriptorError(text)
  const parts = text.split(/\s+/).filter(part => part !== '')
  if (parts.length !== 5) return `expected exactly 5 fields, found ${parts.length}: [${parts.join(' ')}]`
  for (const [index, part] of parts.entries()) {
    for (const range of part.split(',')) {
      if (range === '') continue
      const reason = rangeError(range, fields[index]!)
      if (reason) return reason
    }
  }
  return undefined
}

/** Whether the name is in the time zone database of this Node. */
export function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: name })
    return name !== '' && !/^[+-]/.test(name)
  } catch {
    return false
  }
}

function descriptorError(text: string): string | undefined {
  if (descriptors.has(text)) return undefined
  const every = '@every '
  if (!text.startsWith(every)) return `unrecognized descriptor: ${text}`
  const duration = text.slice(every.length)
  if (/^[-+]?((\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h))+$/.test(duration) || duration === '0') return undefined
  return `failed to parse duration ${text}: time: invalid duration ${JSON.stringify(duration)}`
}

function rangeError(range: string, { min, max, names }: Field): string | undefined {
  const [span = '', step, ...more] = range.split('/')
  const [low = '', high, ...rest] = span.split('-')
  let start: number
  let end: number
  if (low === '*' || low === '?') {
    start = min
    end = max
  } else {
    const first = numberIn(low, names)
    if (typeof first === 'string') return first
    const second = high === undefined ? first : numberIn(high, names)
    if (rest.length > 0) return `too many hyphens: ${range}`
    if (typeof second === 'string') return second
    start = first
    end = high === undefined && step !== undefined ? max : second
  }
  if (more.length > 0) return `too many slashes: ${range}`
  const every = step === undefined ? 1 : numberIn(step, undefined)
  if (typeof every === 'string') return every
  if (start < min) return `beginning of range (${start}) below minimum (${min}): ${range}`
  if (end > max) return `end of range (${end}) above maximum (${max}): ${range}`
  if (start > end) return `beginning of range (${start}) beyond end of range (${end}): ${range}`
  return every === 0 ? `step of range should be a positive number: ${range}` : undefined
}

function numberIn(text: string, names: readonly string[] | undefined): number | string {
  const named = names?.indexOf(text.toLowerCase()) ?? -1
  if (named >= 0) return names === months ? named + 1 : named
  if (!/^[-+]?\d+$/.test(text)) return `failed to parse int from ${text}: strconv.Atoi: parsing ${JSON.stringify(text)}: invalid syntax`
  const value = Number(text)
  return value < 0 ? `negative number (${value}) not allowed: ${text}` : value
}
