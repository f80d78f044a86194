import { chargeCost } from '../../object/cost-limit.ts'
import {
  ArrayListValue,
  CelError,
  compare,
  Duration,
  ListValue,
  MapValue,
  Timestamp,
  TypeValue,
  typeName,
  Uint,
  type Value,
} from '../values.ts'
import { formatDouble, formatDuration, formatTimestamp } from './conversions.ts'
import { asInt, asList, asPosition, asString, type FunctionTable } from './implementation.ts'

/** cel-go's `strings`, version 2; positions count code points. */
export const strings: FunctionTable = {
  contains: (text, part) => {
    const [whole, wanted] = [asString(text), asString(part)]
    chargeCost((whole.length + wanted.length) >> 4)
    return whole.includes(wanted)
  },
  startsWith: (text, part) => {
    chargeCost(asString(part).length >> 4)
    return asString(text).startsWith(asString(part))
  },
  endsWith: (text, part) => {
    chargeCost(asString(part).length >> 4)
    return asString(text).endsWith(asString(part))
  },
  charAt: (text, index) => {
    const characters = runes(text!)
    return characters[asPosition(index, characters.length)] ?? ''
  },
  lowerAscii: text => mapText(text!, whole => whole.replace(/[A-Z]+/g, part => part.toLowerCase())),
  upperAscii: text => mapText(text!, whole => whole.replace(/[a-z]+/g, part => part.toUpperCase())),
  trim: text => mapText(text!, whole => whole.trim()),
  replace: (text, old, replacement, limit) => {
    const [whole, wanted, by] = [asString(text), asString(old), asString(replacement)]
    const most = limit === undefined ? -1n : asInt(limit)
    if (most === 0n) return whole
    // Charged in advance: a short string may become a very long one.
    const parts = cut(whole, wanted, most < 0n ? Number.POSITIVE_INFINITY : Number(most))
    chargeCost((parts.length * (by.length + 1)) >> 3)
    return parts.join(by)
  },
  split: (text, separator, limit) => {
    const most = limit === undefined ? -1n : asInt(limit)
    if (most === 0n) return new ArrayListValue([])
    const whole = asString(text)
    const at = asString(separator)
    const times = most < 0n ? Number.POSITIVE_INFINITY : Number(most) - 1
    if (at !== '') return new ArrayListValue(cut(whole, at, times))
    const characters = runes(whole)
    if (times >= characters.length) return new ArrayListValue(characters)
    return new ArrayListValue([...characters.slice(0, times), characters.slice(times).join('')])
  },
  substring: (text, from, to) => {
    const characters = runes(text!)
    const start = asPosition(from, characters.length)
    const end = to === undefined ? characters.length : asPosition(to, characters.length)
    if (start > end) throw new CelError(`invalid substring range. start: ${start}, end: ${end}`)
    return characters.slice(start, end).join('')
  },
  join: (list, separator) => {
    const values = asList(list)
    const between = separator === undefined ? '' : asString(separator)
    chargeCost(values.size + ((values.size * between.length) >> 4))
    const parts: string[] = []
    for (const value of values.values()) {
      const part = asString(value)
      chargeCost(part.length >> 4)
      parts.push(part)
    }
    return parts.join(between)
  },
  'strings.quote': text => mapText(text!, quote),
  format: (template, args) => format(asString(template), asList(args)),
}

export function stringIndexOf(text: Value | undefined, part: Value | undefined, from: Value | undefined): bigint {
  return search(text, part, from, 0n, (whole, wanted, start) => {
    const skipped = whole.slice(0, start).join('').length
    return whole.join('').indexOf(wanted.join(''), skipped)
  })
}

export function stringLastIndexOf(text: Value | undefined, part: Value | undefined, from: Value | undefined): bigint {
  return search(text, part, from, undefined, (whole, wanted, start) => {
    const last = Math.min(start, whole.length - wanted.length)
    return last < 0 ? -1 : whole.join('').lastIndexOf(wanted.join(''), whole.slice(0, last).join('').length)
  })
}

type Search = (text: readonly string[], part: readonly string[], start: number) => number

/** Finds `part` by code points. @param otherwise where to start without `from`: at the end of the string if undefined. */
function search(
  text: Value | undefined,
  part: Value | undefined,
  from: Value | undefined,
  otherwise: bigint | undefined,
  find: Search,
): bigint {
  const whole = runes(text!)
  const wanted = [...asString(part)]
  const start = from === undefined ? (otherwise ?? BigInt(whole.length)) : asInt(from)
  if (wanted.length === 0) return start
  if (start < 0n) throw new CelError(`index out of range: ${start}`)
  if (from !== undefined && start >= BigInt(whole.length)) return -1n
  const found = find(whole, wanted, Number(start))
  return found < 0 ? -1n : BigInt([...whole.join('').slice(0, found)].length)
}

function runes(text: Value): string[] {
  const whole = asString(text)
  chargeCost(whole.length)
  return [...whole]
}

function mapText(text: Value, change: (text: string) => string): string {
  const whole = asString(text)
  chargeCost(whole.length >> 3)
  return change(whole)
}

/** Splits at the first `times` occurrences of `separator`; the empty separator occurs between all characters. */
function cut(text: string, separator: string, times: number): string[] {
  if (separator === '') {
    const characters = runes(text)
    const cuts = Math.min(times, characters.length + 1)
    const parts = characters.slice(0, Math.max(0, cuts - 1))
    const rest = characters.slice(parts.length).join('')
    return cuts > characters.length ? ['', ...parts, ''] : ['', ...parts, rest]
  }
  chargeCost((text.length >> 4) + 1)
  const parts: string[] = []
  let from = 0
  for (let found = text.indexOf(separator); found >= 0 && parts.length < times; found = text.indexOf(separator, from)) {
    chargeCost(1)
    parts.push(text.slice(from, found))
    from = found + separator.length
  }
  parts.push(text.slice(from))
  return parts
}

const escapes: Record<string, string> = {
  '\x07': '\\a',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\v': '\\v',
  '\\': '\\\\',
  '"': '\\"',
}

function quote(text: string): string {
  return `"${text.toWellFormed().replace(/[\p{Cc}\\"]/gu, character => escapes[character] ?? character)}"`
}

/** `%s %d %f %e %b %x %X %o %%`, the last five with a precision where Go supports one. */
function format(template: string, args: ListValue): string {
  chargeCost(template.length >> 2)
  let next = 0
  let result = ''
  let from = 0
  for (let at = template.indexOf('%'); at >= 0; at = template.indexOf('%', from)) {
    result += template.slice(from, at)
    const [whole, precision, verb] = /%(?:\.(\d{1,3}))?(.)?/sy.exec(template.slice(at, at + 6)) ?? ['%']
    from = at + whole.length
    if (verb === undefined) throw new CelError('could not parse formatting clause: unexpected end of string')
    if (verb === '%') {
      result += '%'
      continue
    }
    if (next >= args.size) throw new CelError(`index ${next} out of range`)
    const text = clause(verb, args.at(next++), precision === undefined ? 6 : Number(precision))
    chargeCost(text.length >> 4)
    result += text
  }
  return result + template.slice(from)
}

function clause(verb: string, value: Value, precision: number): string {
  const formatError = () => new CelError(`error during formatting: ${kinds[verb]}, was given ${typeName(value)}`)
  switch (verb) {
    case 's':
      return toText(value)
    case 'd':
      if (typeof value === 'bigint') return String(value)
      if (value instanceof Uint) return String(value.value)
      if (typeof value === 'number' && !Number.isFinite(value)) return formatDouble(value)
      throw formatError()
    case 'f':
      if (typeof value !== 'number') throw formatError()
      return fixed(value, precision)
    case 'e':
      if (typeof value !== 'number') throw formatError()
      return value.toExponential(Math.min(precision, 100)).replace(/e([+-])(\d)$/, 'e$10$2')
    case 'b':
      if (typeof value === 'boolean') return value ? '1' : '0'
      return toInteger(value, formatError).toString(2)
    case 'o':
      return toInteger(value, formatError).toString(8)
    case 'x':
    case 'X': {
      const text = value instanceof Uint8Array ? hex(value) : typeof value === 'string' ? hex(new TextEncoder().encode(value)) : undefined
      const digits = text ?? toInteger(value, formatError).toString(16)
      return verb === 'X' ? digits.toUpperCase() : digits
    }
  }
  throw new CelError(`could not parse formatting clause: unrecognized formatting clause "${verb}"`)
}

const kinds: Record<string, string> = {
  d: 'decimal clause can only be used on integers',
  f: 'fixed-point clause can only be used on doubles',
  e: 'scientific clause can only be used on doubles',
  b: 'only integers and bools can be formatted as binary',
  o: 'octal clause can only be used on integers',
  x: 'only integers, byte buffers, and strings can be formatted as hex',
  X: 'only integers, byte buffers, and strings can be formatted as hex',
}

function toInteger(value: Value, formatError: () => CelError): bigint {
  if (typeof value === 'bigint') return value
  if (value instanceof Uint) return value.value
  throw formatError()
}

// As Go's printer for English formats numbers: 1,234.5.
function fixed(value: number, precision: number): string {
  if (!Number.isFinite(value)) return formatDouble(value)
  const digits = Math.min(precision, 100)
  const text = Math.abs(value) < 1e21 ? value.toFixed(digits) : `${BigInt(value)}${digits > 0 ? `.${'0'.repeat(digits)}` : ''}`
  return text.replace(/^-?\d+/, whole => whole.replace(/\d(?=(\d{3})+$)/g, '$&,'))
}

function hex(bytes: Uint8Array): string {
  chargeCost(bytes.length >> 2)
  return Buffer.from(bytes).toString('hex')
}

/** @param isNested within a list or a map, where strings are quoted. */
function toText(value: Value, isNested = false): string {
  chargeCost(1)
  if (value === null) return 'null'
  if (typeof value === 'string') return isNested ? quote(value) : value
  if (typeof value === 'number') return formatDouble(value)
  if (typeof value === 'boolean' || typeof value === 'bigint') return String(value)
  if (value instanceof Uint) return String(value.value)
  if (value instanceof Uint8Array) return new TextDecoder().decode(value)
  if (value instanceof Timestamp) return formatTimestamp(value)
  if (value instanceof Duration) return formatDuration(value)
  if (value instanceof TypeValue) return value.name
  if (value instanceof ListValue) return `[${[...value.values()].map(item => toText(item, true)).join(', ')}]`
  if (value instanceof MapValue) {
    const entries = value.keys().sort(compare)
    return `{${entries.map(key => `${toText(key, true)}:${toText(value.get(key)!, true)}`).join(', ')}}`
  }
  throw new CelError(
    `error during formatting: string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps`,
  )
}
