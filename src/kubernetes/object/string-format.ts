import { isIP, isIPv4, isIPv6 } from 'node:net'

const hostname = /^[a-zA-Z0-9]([-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?(\.[a-zA-Z0-9]([-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?)*$/
const dateTime = /^(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/
const goDuration = /^[+-]?(\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)((\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h))*$|^[+-]?0$/
const uuid = (version: string) => new RegExp(`^[0-9a-f]{8}-?[0-9a-f]{4}-?${version}[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$`, 'i')

const formats: Record<string, (value: string) => boolean> = Object.assign(Object.create(null), {
  'date-time': isDateTime,
  datetime: isDateTime,
  date: isDate,
  duration: (value: string) =>
    goDuration.test(value) || /^\d+ ?(nanosecond|microsecond|millisecond|second|minute|hour|day|week)s?$/.test(value),
  email: (value: string) => value.length <= 320 && /^[^\s@<>,]+@[^\s@<>,]+$/.test(value),
  hostname: (value: string) => value.length <= 255 && hostname.test(value),
  ipv4: isIPv4,
  ipv6: isIPv6,
  cidr: isCidr,
  mac: (value: string) => /^[0-9a-f]{2}([:-][0-9a-f]{2}){5}$|^[0-9a-f]{4}(\.[0-9a-f]{4}){2}$/i.test(value),
  uri: isUri,
  uuid: (value: string) => uuid('[0-9a-f]').test(value),
  uuid3: (value: string) => uuid('3').test(value),
  uuid4: (value: string) => uuid('4').test(value),
  uuid5: (value: string) => uuid('5').test(value),
  byte: (value: string) => value.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(value),
  hexcolor: (value: string) => /^#?([0-9a-f]{3}|[0-9a-f]{6})$/i.test(value),
})

/** True if `value` has `format`, or if `format` is one that Kubernetes does not check. */
export function hasStringFormat(value: string, format: string): boolean {
  const check = formats[format]
  return check === undefined || check(value)
}

function isDate(value: string): boolean {
  const match = /^(\d{4})-(\d\d)-(\d\d)$/.exec(value)
  return match !== null && isDay(Number(match[1]), Number(match[2]), Number(match[3]))
}

function isDateTime(value: string): boolean {
  const match = dateTime.exec(value)
  if (!match) return false
  const [, year, month, day, hour, minute, second] = match
  return isDay(Number(year), Number(month), Number(day)) && Number(hour) < 24 && Number(minute) < 60 && Number(second) < 60
}

const daysOfMonths = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]

// Every status has times: this takes a tenth of what a Date takes.
function isDay(year: number, month: number, day: number): boolean {
  const isLeapDay = month === 2 && day === 29 && year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)
  return isLeapDay || (day >= 1 && day <= (daysOfMonths[month - 1] ?? 0))
}

function isCidr(value: string): boolean {
  const [address = '', bits = '', ...rest] = value.split('/')
  const family = isIP(address)
  return rest.length === 0 && family !== 0 && /^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128)
}

// Go's url.ParseRequestURI: an absolute URI or an absolute path.
function isUri(value: string): boolean {
  return (value.startsWith('/') || URL.canParse(value)) && !/\s/.test(value)
}
