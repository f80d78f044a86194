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
  let expression = schedule
  if (/^(CRON_)?TZ=/.test(expression)) {
    const space = expression.indexOf(' ')
    const zone = expression.slice(expression.indexOf('=') + 1, space < 0 ? undefined : space)
    if (space < 0 || !isTimeZone(zone)) return `provided bad location ${zone}: unknown time zone ${zone}`
    expression = expression.slice(space).trim()
  }
  if (expression.startsWith('@')) return descriptorError(expression)
  const parts = expression.split(/\s+/).filter(part => part !== '')
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

function descriptorError(descriptor: string): string | undefined {
  if (descriptors.has(descriptor)) return undefined
  const prefix = '@every '
  if (!descriptor.startsWith(prefix)) return `unrecognized descriptor: ${descriptor}`
  const duration = descriptor.slice(prefix.length)
  if (/^[-+]?((\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h))+$/.test(duration) || duration === '0') return undefined
  return `failed to parse duration ${descriptor}: time: invalid duration ${JSON.stringify(duration)}`
}

function rangeError(range: string, { min, max, names }: Field): string | undefined {
  const [bounds = '', stepText, ...extraSteps] = range.split('/')
  const [startText = '', endText, ...extraBounds] = bounds.split('-')
  let start: number
  let end: number
  if (startText === '*' || startText === '?') {
    start = min
    end = max
  } else {
    const low = numberIn(startText, names)
    if (typeof low === 'string') return low
    const high = endText === undefined ? low : numberIn(endText, names)
    if (extraBounds.length > 0) return `too many hyphens: ${range}`
    if (typeof high === 'string') return high
    start = low
    end = endText === undefined && stepText !== undefined ? max : high
  }
  if (extraSteps.length > 0) return `too many slashes: ${range}`
  const step = stepText === undefined ? 1 : numberIn(stepText, undefined)
  if (typeof step === 'string') return step
  if (start < min) return `beginning of range (${start}) below minimum (${min}): ${range}`
  if (end > max) return `end of range (${end}) above maximum (${max}): ${range}`
  if (start > end) return `beginning of range (${start}) beyond end of range (${end}): ${range}`
  return step === 0 ? `step of range should be a positive number: ${range}` : undefined
}

function numberIn(text: string, names: readonly string[] | undefined): number | string {
  const nameIndex = names?.indexOf(text.toLowerCase()) ?? -1
  if (nameIndex >= 0) return names === months ? nameIndex + 1 : nameIndex
  if (!/^[-+]?\d+$/.test(text)) return `failed to parse int from ${text}: strconv.Atoi: parsing ${JSON.stringify(text)}: invalid syntax`
  const value = Number(text)
  return value < 0 ? `negative number (${value}) not allowed: ${text}` : value
}
