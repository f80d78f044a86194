import { type PoolWindow, type WorkerPoolSpec, weekdays } from '../../../api/index.ts'

const dayMinutes = 24 * 60
/** Upper bound of the time between two evaluations, as clocks may be changed and summer time begins and ends. */
const maxAheadMinutes = 60

export type WarmMinimum = {
  /** Workers to keep now, even without Runs. */
  readonly min: number
  /** Time until the next evaluation, as a window may open or close; undefined without a schedule. */
  readonly requeueAfterMs: number | undefined
  /** Errors in the schedule; invalid windows are ignored. */
  readonly errors: readonly string[]
}

/**
 * How many workers a pool keeps at `nowMs` (wall clock): the largest of `spec.min` and the minimums of all open windows. A window includes its
 * start and excludes its end, in its own time zone.
 */
export function warmMinimum({ min = 0, schedule = [] }: Pick<WorkerPoolSpec, 'min' | 'schedule'>, nowMs: number): WarmMinimum {
  let keep = min
  let requeueAfterMs: number | undefined
  const errors: string[] = []
  for (const [index, window] of schedule.entries()) {
    const zone = window.timeZone ?? 'UTC'
    const local = localTime(nowMs, zone)
    if (!local) {
      errors.push(
        `spec.schedule[${index}].timeZone ${JSON.stringify(zone)} is not a known time zone; use an IANA name such as Europe/Berlin`,
      )
      continue
    }
    if (isOpen(window, local)) keep = Math.max(keep, window.min)
    const ahead = Math.min(maxAheadMinutes, ...[window.from, window.to].map(clock => minutesUntil(minutesOf(clock), local.minutes)))
    const inMs = ahead * 60_000 - (nowMs % 60_000)
    requeueAfterMs = Math.min(requeueAfterMs ?? Number.POSITIVE_INFINITY, inMs)
  }
  return { min: keep, requeueAfterMs, errors }
}

type LocalTime = { readonly weekday: number; readonly minutes: number }

function isOpen({ days, from, to }: PoolWindow, { weekday, minutes }: LocalTime): boolean {
  const begins = (day: number) => days === undefined || days.includes(weekdays[day]!)
  const fromMinutes = minutesOf(from)
  const toMinutes = minutesOf(to)
  if (fromMinutes < toMinutes) return begins(weekday) && minutes >= fromMinutes && minutes < toMinutes
  // A window across midnight belongs to the day on which it starts.
  return (begins(weekday) && minutes >= fromMinutes) || (begins((weekday + 6) % 7) && minutes < toMinutes)
}

const minutesOf = (clock: string) => Number(clock.slice(0, 2)) * 60 + Number(clock.slice(3, 5))

/** From 1 to a whole day. */
const minutesUntil = (target: number, now: number) => ((target - now + dayMinutes - 1) % dayMinutes) + 1

/** Creating a format takes far longer than using it. */
const formats = new Map<string, Intl.DateTimeFormat | undefined>()

function localTime(nowMs: number, timeZone: string): LocalTime | undefined {
  if (!formats.has(timeZone) && formats.size < 1_000) formats.set(timeZone, makeFormat(timeZone))
  const format = formats.get(timeZone)
  if (!format) return undefined
  const dependencies = Object.fromEntries(format.formatToParts(nowMs).map(({ type, value }) => [type, value]))
  return {
    weekday: weekdays.indexOf(dependencies.weekday as (typeof weekdays)[number]),
    minutes: Number(dependencies.hour) * 60 + Number(dependencies.minute),
  }
}

function makeFormat(timeZone: string): Intl.DateTimeFormat | undefined {
  try {
    return new Intl.DateTimeFormat('en-US', { timeZone, weekday: 'short', hour: '2-digit', minute: '2-digit', hourCycle: 'h23' })
  } catch {
    return undefined
  }
}
