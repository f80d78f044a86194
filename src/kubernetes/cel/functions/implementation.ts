import { CelError, Duration, ListValue, noSuchOverload, Opaque, Timestamp, type Value } from '../values.ts'

/** The implementation of a function; the receiver of a method is its first argument. Throws {@link CelError}. */
export type Implementation = (...args: Value[]) => Value

/** A part of the library, by function name. */
export type FunctionTable = Readonly<Record<string, Implementation>>

// The type checker accepts dynamic values anywhere, so each function checks the types of its arguments.

export function asString(value: Value | undefined): string {
  if (typeof value !== 'string') throw noSuchOverload()
  return value
}

export function asInt(value: Value | undefined): bigint {
  if (typeof value !== 'bigint') throw noSuchOverload()
  return value
}

export function asBool(value: Value | undefined): boolean {
  if (typeof value !== 'boolean') throw noSuchOverload()
  return value
}

export function asList(value: Value | undefined): ListValue {
  if (!(value instanceof ListValue)) throw noSuchOverload()
  return value
}

export function asTimestamp(value: Value | undefined): Timestamp {
  if (!(value instanceof Timestamp)) throw noSuchOverload()
  return value
}

export function asDuration(value: Value | undefined): Duration {
  if (!(value instanceof Duration)) throw noSuchOverload()
  return value
}

/** The contents of an opaque value of this type. `isInner` is their type guard. */
export function unwrapOpaque<T>(value: Value | undefined, type: string, isInner: (inner: unknown) => inner is T): T {
  if (!(value instanceof Opaque) || value.type !== type || !isInner(value.inner)) throw noSuchOverload()
  return value.inner
}

export function int64(value: bigint): bigint {
  if (value !== BigInt.asIntN(64, value)) throw new CelError('integer overflow')
  return value
}

export function uint64(value: bigint): bigint {
  if (value !== BigInt.asUintN(64, value)) throw new CelError('unsigned integer overflow')
  return value
}

/** An int as a position in a value of `size`, up to and including its end. */
export function asPosition(value: Value | undefined, size: number): number {
  const index = asInt(value)
  if (index < 0n || index > BigInt(size)) throw new CelError(`index out of range: ${index}`)
  return Number(index)
}
