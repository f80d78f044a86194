import { chargeCost } from '../object/cost-limit.ts'

/**
 * The values of expressions. An int is a bigint, a double a number. Lists and maps are accessed through {@link ListValue} and
 * {@link MapValue}, so that those of a Kubernetes object are converted on access only.
 */
export type Value =
  | null
  | boolean
  | number
  | bigint
  | string
  | Uint8Array
  | Uint
  | Timestamp
  | Duration
  | Optional
  | TypeValue
  | Opaque
  | ListValue
  | MapValue

/** An evaluation error. `&&`, `||`, `all` and `exists` may have a result despite the part that failed. */
export class CelError extends Error {}

export const noSuchOverload = (): CelError => new CelError('no such overload')

export class Uint {
  readonly value: bigint

  constructor(value: bigint) {
    this.value = value
  }
}

/** Nanoseconds since 1970. */
export class Timestamp {
  readonly nanos: bigint

  constructor(nanos: bigint) {
    if (nanos < minTimestamp || nanos > maxTimestamp) throw new CelError('timestamp overflow')
    this.nanos = nanos
  }
}

/** Nanoseconds. */
export class Duration {
  readonly nanos: bigint

  constructor(nanos: bigint) {
    if (nanos !== BigInt.asIntN(64, nanos)) throw new CelError('duration overflow')
    this.nanos = nanos
  }
}

// 0001-01-01T00:00:00Z and 9999-12-31T23:59:59.999999999Z.
const minTimestamp = -62_135_596_800n * 1_000_000_000n
const maxTimestamp = 253_402_300_800n * 1_000_000_000n - 1n

export class Optional {
  static readonly none = new Optional(undefined)
  readonly value: Value | undefined

  constructor(value: Value | undefined) {
    this.value = value
  }
}

export class TypeValue {
  readonly name: string

  constructor(name: string) {
    this.name = name
  }
}

/** A value whose contents only its own functions access, such as an IP address; `inner` is what they store. */
export class Opaque {
  readonly type: string
  readonly inner: unknown
  /** Equal values of one type have equal keys. */
  readonly key: string

  constructor(type: string, inner: unknown, key: string) {
    this.type = type
    this.inner = inner
    this.key = key
  }
}

export abstract class ListValue {
  abstract readonly size: number
  abstract at(index: number): Value

  /** Equality with a list of the same size. */
  equals(other: ListValue): boolean {
    for (let index = 0; index < this.size; index++) if (!equal(this.at(index), other.at(index))) return false
    return true
  }

  plus(other: ListValue): ListValue {
    chargeCost(this.size + other.size)
    return new ArrayListValue([...this.values(), ...other.values()])
  }

  *values(): Generator<Value> {
    for (let index = 0; index < this.size; index++) yield this.at(index)
  }
}

export class ArrayListValue extends ListValue {
  readonly #items: readonly Value[]

  constructor(items: readonly Value[]) {
    super()
    this.#items = items
  }

  override get size(): number {
    return this.#items.length
  }

  override at(index: number): Value {
    return this.#items[index]!
  }
}

export abstract class MapValue {
  abstract readonly size: number
  /** Undefined if there is no such key. */
  abstract get(key: Value): Value | undefined
  abstract keys(): Value[]

  /** The field of this name, as `has` and field selection access it. */
  field(name: string): Value | undefined {
    return this.get(name)
  }

  has(name: string): boolean {
    return this.field(name) !== undefined
  }

  /** Equality with a map of the same size. */
  equals(other: MapValue): boolean {
    return this.keys().every(key => {
      const theirs = other.get(key)
      return theirs !== undefined && equal(this.get(key)!, theirs)
    })
  }
}

export class PlainMap extends MapValue {
  readonly #entries = new Map<string, { key: Value; value: Value }>()

  override get size(): number {
    return this.#entries.size
  }

  override get(key: Value): Value | undefined {
    return this.#entries.get(keyText(key))?.value
  }

  override keys(): Value[] {
    return [...this.#entries.values()].map(({ key }) => key)
  }

  set(key: Value, value: Value): void {
    this.#entries.set(keyText(key), { key, value })
  }

  /** Like `set`, but returns false if the key exists. */
  insert(key: Value, value: Value): boolean {
    if (this.#entries.has(keyText(key))) return false
    this.set(key, value)
    return true
  }
}

/** Equal keys have equal texts: 1, 1u and 1.0 are the same key. */
function keyText(key: Value): string {
  if (typeof key === 'string') return `s${key}`
  if (typeof key === 'boolean') return `b${key}`
  if (typeof key === 'bigint') return `n${key}`
  if (key instanceof Uint) return `n${key.value}`
  if (typeof key === 'number') return Number.isInteger(key) ? `n${BigInt(key)}` : `d${key}`
  throw new CelError(`unsupported key type: ${typeName(key)}`)
}

/** The name of the type, as returned by `type(value)`. */
export function typeName(value: Value): string {
  if (value === null) return 'null_type'
  switch (typeof value) {
    case 'boolean':
      return 'bool'
    case 'bigint':
      return 'int'
    case 'number':
      return 'double'
    case 'string':
      return 'string'
  }
  if (value instanceof Uint8Array) return 'bytes'
  if (value instanceof Uint) return 'uint'
  if (value instanceof Timestamp) return 'google.protobuf.Timestamp'
  if (value instanceof Duration) return 'google.protobuf.Duration'
  if (value instanceof Optional) return 'optional_type'
  if (value instanceof TypeValue) return 'type'
  if (value instanceof Opaque) return value.type
  return value instanceof ListValue ? 'list' : 'map'
}

/** CEL's equality: numbers are compared by value across types; values of other different types are not equal. */
export function equal(a: Value, b: Value): boolean {
  if (a === b) return true
  if (typeof a === 'string') {
    if (typeof b === 'string') chargeCost(Math.min(a.length, b.length) >> 6)
    return false
  }
  if (typeof a !== 'object' || a === null || a instanceof Uint) return isNumber(a) && isNumber(b) && compareNumbers(a, b) === 0
  if (typeof b !== 'object' || b === null) return false
  chargeCost(1)
  if (a instanceof ListValue) return b instanceof ListValue && a.size === b.size && a.equals(b)
  if (a instanceof MapValue) return b instanceof MapValue && a.size === b.size && a.equals(b)
  if (a instanceof Timestamp) return b instanceof Timestamp && a.nanos === b.nanos
  if (a instanceof Duration) return b instanceof Duration && a.nanos === b.nanos
  if (a instanceof Uint8Array) return b instanceof Uint8Array && compareBytes(a, b) === 0
  if (a instanceof TypeValue) return b instanceof TypeValue && a.name === b.name
  if (a instanceof Opaque) return b instanceof Opaque && a.type === b.type && a.key === b.key
  if (!(b instanceof Optional) || a.value === undefined || b.value === undefined) return b instanceof Optional && a.value === b.value
  return equal(a.value, b.value)
}

export type NumberValue = bigint | number | Uint

export const isNumber = (value: Value): value is NumberValue =>
  typeof value === 'bigint' || typeof value === 'number' || value instanceof Uint

/** Below 0, 0 or above 0; NaN if there is no order. Compared with a double, an int is converted to the nearest double, as in Go. */
function compareNumbers(a: NumberValue, b: NumberValue): number {
  const left = a instanceof Uint ? a.value : a
  const right = b instanceof Uint ? b.value : b
  if (typeof left === typeof right) return left < right ? -1 : left > right ? 1 : left === right ? 0 : Number.NaN
  const difference = Number(left) - Number(right)
  return Number.isNaN(difference) && Number(left) === Number(right) ? 0 : Math.sign(difference)
}

/**
 * Compares two values of an ordered type.
 * @throws {CelError} for other types.
 */
export function compare(a: Value, b: Value): number {
  if (isNumber(a) && isNumber(b)) {
    const order = compareNumbers(a, b)
    if (Number.isNaN(order)) throw new CelError('NaN values cannot be ordered')
    return order
  }
  if (typeof a === 'string' && typeof b === 'string') {
    chargeCost(Math.min(a.length, b.length) >> 6)
    return compareText(a, b)
  }
  if (typeof a === 'boolean' && typeof b === 'boolean') return Number(a) - Number(b)
  if ((a instanceof Timestamp && b instanceof Timestamp) || (a instanceof Duration && b instanceof Duration)) {
    return a.nanos < b.nanos ? -1 : a.nanos > b.nanos ? 1 : 0
  }
  if (a instanceof Uint8Array && b instanceof Uint8Array) return compareBytes(a, b)
  throw noSuchOverload()
}

// By code point, as Go orders UTF-8. Code units would order surrogates below U+E000..U+FFFF.
function compareText(a: string, b: string): number {
  const length = Math.min(a.length, b.length)
  for (let index = 0; index < length; index++) {
    const left = a.charCodeAt(index)
    const right = b.charCodeAt(index)
    if (left === right) continue
    const isLeftHigh = left >= 0xd800 && left < 0xe000
    const isRightHigh = right >= 0xd800 && right < 0xe000
    if (isLeftHigh !== isRightHigh) return isLeftHigh ? 1 : -1
    return left - right
  }
  return a.length - b.length
}

function compareBytes(a: Uint8Array, b: Uint8Array): number {
  chargeCost(Math.min(a.length, b.length) >> 4)
  for (let index = 0; index < Math.min(a.length, b.length); index++) if (a[index] !== b[index]) return a[index]! - b[index]!
  return a.length - b.length
}
