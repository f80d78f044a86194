import { addQuantities, compareQuantities, parseQuantity, type Quantity, quantityValue } from '../../object/quantity.ts'
import { opaqueNames } from '../declarations.ts'
import { CelError, Opaque, type Value } from '../values.ts'
import { asString, type FunctionTable, int64, unwrapOpaque } from './implementation.ts'
import { semverLess } from './versions.ts'

const nano = 1_000_000_000n

/** Quantities such as `1.5Gi`. Includes the functions that share their names with those of versions. */
export const quantities: FunctionTable = {
  quantity: text => {
    const quantity = parse(asString(text))
    if (!quantity) throw new CelError("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")
    return make(quantity)
  },
  isQuantity: text => parse(asString(text)) !== undefined,
  sign: value => {
    const { nanos } = read(value!)
    return nanos > 0n ? 1n : nanos < 0n ? -1n : 0n
  },
  isGreaterThan: (a, b) => order(a!, b!) > 0,
  isLessThan: (a, b) => order(a!, b!) < 0,
  compareTo: (a, b) => BigInt(Math.sign(order(a!, b!))),
  asApproximateFloat: value => quantityValue(read(value!)),
  isInteger: value => read(value!).nanos % nano === 0n,
  asInteger: value => {
    const { nanos } = read(value!)
    if (nanos % nano !== 0n) throw new CelError('cannot convert value to integer')
    return int64(nanos / nano)
  },
  add: (a, b) => make(addQuantities(read(a!), amount(b!))),
  sub: (a, b) => {
    const taken = amount(b!)
    return make(addQuantities(read(a!), { ...taken, nanos: -taken.nanos }))
  },
}

function order(a: Value, b: Value): number {
  if (a instanceof Opaque && a.type === opaqueNames.Semver) return semverLess(a, b)
  return compareQuantities(read(a), read(b))
}

function parse(text: string): Quantity | undefined {
  try {
    return parseQuantity(text)
  } catch {
    return undefined
  }
}

function make(quantity: Quantity): Opaque {
  return new Opaque(opaqueNames.Quantity, quantity, String(quantity.nanos))
}

function read(value: Value): Quantity {
  return unwrapOpaque(value, opaqueNames.Quantity, isQuantity)
}

function amount(value: Value): Quantity {
  return typeof value === 'bigint' ? { nanos: value * nano, form: 'decimal' } : read(value)
}

function isQuantity(inner: unknown): inner is Quantity {
  return typeof inner === 'object' && inner !== null && 'nanos' in inner
}
