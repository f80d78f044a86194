import { chargeCost } from '../../object/cost-limit.ts'
import { CelError, Duration, noSuchOverload, Opaque, Timestamp, TypeValue, typeName, Uint } from '../values.ts'
import { type FunctionTable, int64, uint64 } from './implementation.ts'

const nanosPerSecond = 1_000_000_000n

/** Type conversions such as `int("3")`. */
export const conversions: FunctionTable = {
  dyn: value => value!,
  type: value => new TypeValue(typeName(value!)),
  int: value => {
    if (typeof value === 'bigint') return value
    if (value instanceof Uint) return int64(value.value)
    if (typeof value === 'number') {
      if (!(Math.abs(value) < 2 ** 63)) throw new CelError('integer overflow')
      return BigInt(Math.trunc(value))
    }
    if (typeof value === 'string') return parseInteger(value, 'int')
    if (value instanceof Timestamp) return floorSeconds(value.nanos)
    if (value instanceof Duration) return value.nanos
    throw noSuchOverload()
  },
  uint: value => {
    if (value instanceof Uint) return value
    if (typeof value === 'bigint') return new Uint(uint64(value))
    if (typeof value === 'number') {
      if (!(value >= 0 && value < 2 ** 64)) throw new CelError('unsigned integer overflow')
      return new Uint(BigInt(Math.trunc(value)))
    }
    if (typeof value === 'string') return new Uint(parseInteger(value, 'uint'))
    throw noSuchOverload()
  },
  double: value => {
    if (typeof value === 'number') return value
    if (typeof value === 'bigint') return Number(value)
    if (value instanceof Uint) return Number(value.value)
    if (typeof value === 'string') return parseDouble(value)
    throw noSuchOverload()
  },
  string: value => {
    if (typeof value === 'string') return value
    if (typeof value === 'bigint' || typeof value === 'boolean') return String(value)
    if (typeof value === 'number') return formatDouble(value)
    if (value instanceof Uint) return String(value.value)
    if (value instanceof Timestamp) return formatTimestamp(value)
    if (value instanceof Duration) return formatDuration(value)
    if (value instanceof Opaque && value.type.startsWith('net.')) return value.key
    if (value instanceof Uint8Array) {
      chargeCost(value.length >> 4)
      try {
        return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(value)
      } catch {
        throw new CelError('invalid UTF-8 in bytes, cannot convert to string')
      }
    }
    throw noSuchOverload()
  },
  bytes: value => {
    if (value instanceof Uint8Array) return value
    if (typeof value !== 'string') throw noSuchOverload()
    chargeCost(value.length >> 4)
    return new TextEncoder().encode(value)
  },
  bool: value => {
    if (typeof value === 'boolean') return value
    if (typeof value !== 'string') throw noSuchOverload()
    if (['1', 't', 'T', 'true', 'TRUE', 'True'].includes(value)) return true
    if (['0', 'f', 'F', 'false', 'FALSE', 'False'].includes(value)) return false
    throw notConvertible('bool')
  },
  duration: value => {
    if (value instanceof Duration) return value
    if (typeof value === 'bigint') return new Duration(value)
    if (typeof value === 'string') return parseGoDuration(value)
    throw noSuchOverload()
  },
  timestamp: value => {
    if (value instanceof Timestamp) return value
    if (typeof value === 'bigint') return new Timestamp(value * nanosPerSecond)
    if (typeof value === 'string') return parseTimestamp(value)
    throw noSuchOverload()
  },
}

function parseInteger(text: string, type: 'int' | 'uint'): bigint {
  // No int is longer, and BigInt is slow for long strings.
  const isInteger = text.length <= 100 && (type === 'int' ? /^[+-]?\d+$/ : /^\d+$/).test(text)
  const value = isInteger ? BigInt(text.replace('+', '')) : -1n
  const isInRange = type === 'int' ? value === BigInt.asIntN(64, value) : value === BigInt.asUintN(64, value)
  if (!isInteger || !isInRange) throw notConvertible(type)
  return value
}

const notConvertible = (type: string) => new CelError(`type conversion error from 'string' to '${type}'`)

function parseDouble(text: string): number {
  if (/^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/.test(text.slice(0, 1_000))) return Number(text)
  const special = /^([+-]?)(inf|infinity|nan)$/i.exec(text.slice(0, 20))
  if (special) return special[2]!.toLowerCase() === 'nan' ? Number.NaN : special[1] === '-' ? -Infinity : Infinity
  throw notConvertible('double')
}

/** Formats as Go's `strconv.FormatFloat(x, 'g', -1, 64)`. */
export function formatDouble(value: number): string {
  if (Number.isNaN(value)) return 'NaN'
  if (!Number.isFinite(value)) return value > 0 ? '+Inf' : '-Inf'
  if (Object.is(value, -0)) return '-0'
  const [mantissa = '0', exponent = '0'] = value.toExponential().split('e')
  const power = Number(exponent)
  if (power < -4 || power >= 6) return `${mantissa}e${power < 0 ? '-' : '+'}${String(Math.abs(power)).padStart(2, '0')}`
  return power >= 0 ? String(value) : value.toFixed(Math.max(0, mantissa.replace(/[-.]/g, '').length - 1 - power))
}

export function formatTimestamp({ nanos }: Timestamp): string {
  const seconds = floorSeconds(nanos)
  const fraction = String(nanos - seconds * nanosPerSecond)
    .padStart(9, '0')
    .replace(/0+$/, '')
  const text = new Date(Number(seconds) * 1_000).toISOString().slice(0, 19)
  return `${text}${fraction && `.${fraction}`}Z`
}

export function formatDuration({ nanos }: Duration): string {
  const size = nanos < 0n ? -nanos : nanos
  const fraction = String(size % nanosPerSecond)
    .padStart(9, '0')
    .replace(/0+$/, '')
  return `${nanos < 0n ? '-' : ''}${size / nanosPerSecond}${fraction && `.${fraction}`}s`
}

function floorSeconds(nanos: bigint): bigint {
  const seconds = nanos / nanosPerSecond
  return seconds * nanosPerSecond > nanos ? seconds - 1n : seconds
}

const units: Record<string, bigint> = {
  ns: 1n,
  us: 1_000n,
  µs: 1_000n,
  μs: 1_000n,
  ms: 1_000_000n,
  s: nanosPerSecond,
  m: 60n * nanosPerSecond,
  h: 3_600n * nanosPerSecond,
  d: 86_400n * nanosPerSecond,
}

/**
 * Parses a duration such as `1h30m`, as Go does.
 * @throws {CelError}
 */
export function parseGoDuration(text: string): Duration {
  const [, sign, rest = ''] = /^([+-]?)(.*)$/s.exec(text.slice(0, 200)) ?? []
  if (rest === '0') return new Duration(0n)
  let nanos = 0n
  let end = 0
  for (const [whole, digits = '', fraction = '', unit] of rest.matchAll(/(\d*)(?:\.(\d*))?(ns|us|µs|μs|ms|s|m|h)/gy)) {
    if (digits === '' && fraction === '') break
    const scale = units[unit!]!
    nanos += BigInt(digits || '0') * scale + (fraction === '' ? 0n : (BigInt(fraction) * scale) / 10n ** BigInt(fraction.length))
    end += whole.length
  }
  if (rest === '' || end !== rest.length || text.length > 200) {
    throw notConvertible('google.protobuf.Duration')
  }
  return new Duration(sign === '-' ? -nanos : nanos)
}

/**
 * Parses RFC 3339 with nanoseconds.
 * @throws {CelError}
 */
export function parseTimestamp(text: string): Timestamp {
  const match = /^(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(?:[.,](\d+))?([Zz]|[+-]\d\d:\d\d)$/.exec(text.slice(0, 100))
  const [, date, time, fraction = '', zone = ''] = match ?? []
  const ms = match ? Date.parse(`${date}T${time}${zone.toUpperCase()}`) : Number.NaN
  const isReal = match !== null && !Number.isNaN(ms) && new Date(`${date}T00:00:00Z`).toISOString().startsWith(date!)
  if (!isReal) throw notConvertible('google.protobuf.Timestamp')
  return new Timestamp(BigInt(ms) * 1_000_000n + BigInt(fraction.slice(0, 9).padEnd(9, '0')))
}
