import { CelError, Duration, noSuchOverload, Timestamp, type Value } from '../values.ts'
import { asDuration, asString, asTimestamp, type FunctionTable } from './implementation.ts'

const nanosPerMs = 1_000_000n
const nanosPerSecond = 1_000_000_000n

/** Parts of timestamps, optionally in a time zone, and of durations. */
export const times: FunctionTable = {
  getFullYear: part(date => date.getUTCFullYear()),
  getMonth: part(date => date.getUTCMonth()),
  getDate: part(date => date.getUTCDate()),
  getDayOfMonth: part(date => date.getUTCDate() - 1),
  getDayOfWeek: part(date => date.getUTCDay()),
  getDayOfYear: part(date => (Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate()) - yearStart(date)) / 86_400_000),
  getHours: partOrWhole(date => date.getUTCHours(), 3_600n * nanosPerSecond),
  getMinutes: partOrWhole(date => date.getUTCMinutes(), 60n * nanosPerSecond),
  getSeconds: partOrWhole(date => date.getUTCSeconds(), nanosPerSecond),
  getMilliseconds: (value, zone) => {
    if (value instanceof Duration) return asDuration(value).nanos / nanosPerMs
    return BigInt(local(value!, zone).getUTCMilliseconds())
  },
}

function part(read: (date: Date) => number) {
  return (value: Value, zone?: Value): Value => BigInt(read(local(value, zone)))
}

function partOrWhole(read: (date: Date) => number, unit: bigint) {
  return (value: Value, zone?: Value): Value => (value instanceof Duration ? value.nanos / unit : BigInt(read(local(value, zone))))
}

function yearStart(date: Date): number {
  const start = new Date(0)
  start.setUTCFullYear(date.getUTCFullYear(), 0, 1)
  return start.getTime()
}

/** A date whose UTC fields are the local time in `zone`. */
function local(value: Value, zone: Value | undefined): Date {
  if (!(value instanceof Timestamp)) throw noSuchOverload()
  const { nanos } = asTimestamp(value)
  const ms = Number((nanos - (((nanos % nanosPerMs) + nanosPerMs) % nanosPerMs)) / nanosPerMs)
  return new Date(zone === undefined ? ms : ms + offsetMs(asString(zone), ms))
}

function offsetMs(zone: string, ms: number): number {
  if (zone === '' || zone === 'UTC') return 0
  const fixed = /^([+-]?)(\d{1,2}):(\d{2})$/.exec(zone)
  if (fixed) return (fixed[1] === '-' ? -1 : 1) * (Number(fixed[2]) * 60 + Number(fixed[3])) * 60_000
  let shown: string | undefined
  try {
    const parts = new Intl.DateTimeFormat('en-US', { timeZone: zone, timeZoneName: 'longOffset' }).formatToParts(ms)
    shown = parts.find(({ type }) => type === 'timeZoneName')?.value
  } catch {
    throw new CelError(`unknown time zone ${zone.slice(0, 100)}`)
  }
  const [, sign, hours = '0', minutes = '0', seconds = '0'] = /([+-])(\d{2}):(\d{2})(?::(\d{2}))?/.exec(shown ?? '') ?? []
  return (sign === '-' ? -1 : 1) * (Number(hours) * 3_600 + Number(minutes) * 60 + Number(seconds)) * 1_000
}
