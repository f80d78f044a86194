import { chargeCost } from '../../object/cost-limit.ts'
import { CelError, Duration, ListValue, MapValue, noSuchOverload, Timestamp, Uint, type Value } from '../values.ts'
import { type FunctionTable, int64, uint64 } from './implementation.ts'

/** Arithmetic, `size`, and the operators that `evaluate.ts` does not handle. */
export const operators: FunctionTable = {
  '_+_': add,
  '_-_': (a, b) => {
    if (typeof a === 'bigint' && typeof b === 'bigint') return int64(a - b)
    if (typeof a === 'number' && typeof b === 'number') return a - b
    if (a instanceof Uint && b instanceof Uint) return new Uint(uint64(a.value - b.value))
    if (a instanceof Timestamp && b instanceof Duration) return new Timestamp(a.nanos - b.nanos)
    if (a instanceof Timestamp && b instanceof Timestamp) return new Duration(a.nanos - b.nanos)
    if (a instanceof Duration && b instanceof Duration) return new Duration(a.nanos - b.nanos)
    throw noSuchOverload()
  },
  '_*_': (a, b) => {
    if (typeof a === 'bigint' && typeof b === 'bigint') return int64(a * b)
    if (typeof a === 'number' && typeof b === 'number') return a * b
    if (a instanceof Uint && b instanceof Uint) return new Uint(uint64(a.value * b.value))
    throw noSuchOverload()
  },
  '_/_': (a, b) => {
    if (typeof a === 'bigint' && typeof b === 'bigint') return int64(a / divisor(b, 'division by zero'))
    if (typeof a === 'number' && typeof b === 'number') return a / b
    if (a instanceof Uint && b instanceof Uint) return new Uint(a.value / divisor(b.value, 'division by zero'))
    throw noSuchOverload()
  },
  '_%_': (a, b) => {
    if (typeof a === 'bigint' && typeof b === 'bigint') {
      if (b === -1n) int64(-a)
      return a % divisor(b, 'modulus by zero')
    }
    if (a instanceof Uint && b instanceof Uint) return new Uint(a.value % divisor(b.value, 'modulus by zero'))
    throw noSuchOverload()
  },
  '-_': value => {
    if (typeof value === 'bigint') return int64(-value!)
    if (typeof value === 'number') return -value
    throw noSuchOverload()
  },
  size: value => {
    if (typeof value === 'string') return BigInt(codePoints(value))
    if (value instanceof Uint8Array) return BigInt(value.length)
    if (value instanceof ListValue || value instanceof MapValue) return BigInt(value.size)
    throw noSuchOverload()
  },
}

function add(a: Value, b: Value): Value {
  if (typeof a === 'bigint' && typeof b === 'bigint') return int64(a + b)
  if (typeof a === 'number' && typeof b === 'number') return a + b
  if (typeof a === 'string' && typeof b === 'string') {
    chargeCost((a.length + b.length) >> 4)
    return a + b
  }
  if (a instanceof Uint && b instanceof Uint) return new Uint(uint64(a.value + b.value))
  if (a instanceof ListValue && b instanceof ListValue) return a.plus(b)
  if (a instanceof Uint8Array && b instanceof Uint8Array) {
    chargeCost((a.length + b.length) >> 4)
    const joined = new Uint8Array(a.length + b.length)
    joined.set(a)
    joined.set(b, a.length)
    return joined
  }
  if (a instanceof Timestamp && b instanceof Duration) return new Timestamp(a.nanos + b.nanos)
  if (a instanceof Duration && b instanceof Timestamp) return new Timestamp(a.nanos + b.nanos)
  if (a instanceof Duration && b instanceof Duration) return new Duration(a.nanos + b.nanos)
  throw noSuchOverload()
}

function divisor(value: bigint, otherwise: string): bigint {
  if (value === 0n) throw new CelError(otherwise)
  return value
}

/** The size of a string in CEL. */
export function codePoints(text: string): number {
  chargeCost(text.length >> 4)
  let count = text.length
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index)
    if (unit >= 0xd800 && unit < 0xdc00) count--
  }
  return count
}
