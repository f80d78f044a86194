import { chargeCost } from '../../object/cost-limit.ts'
import {
  ArrayListValue,
  CelError,
  Duration,
  ListValue,
  MapValue,
  noSuchOverload,
  Optional,
  Timestamp,
  Uint,
  type Value,
} from '../values.ts'
import { asList, type FunctionTable } from './implementation.ts'

/** Optional values: https://pkg.go.dev/github.com/google/cel-go/cel#OptionalTypes. */
export const optionals: FunctionTable = {
  'optional.of': value => new Optional(value),
  'optional.ofNonZeroValue': value => (isZero(value!) ? Optional.none : new Optional(value)),
  'optional.none': () => Optional.none,
  'optional.unwrap': unwrapAll,
  unwrapOpt: unwrapAll,
  hasValue: value => asOptional(value!).value !== undefined,
  value: value => {
    const inner = asOptional(value!).value
    if (inner === undefined) throw new CelError('optional.none() dereference')
    return inner
  },
  or: (a, b) => (asOptional(a!).value === undefined ? asOptional(b!) : a!),
  orValue: (a, b) => asOptional(a!).value ?? (asOptional(a!).value === null ? null : b!),
}

function asOptional(value: Value): Optional {
  if (!(value instanceof Optional)) throw noSuchOverload()
  return value
}

function unwrapAll(list: Value): Value {
  const values = asList(list)
  chargeCost(values.size)
  return new ArrayListValue([...values.values()].map(asOptional).flatMap(({ value }) => (value === undefined ? [] : [value])))
}

function isZero(value: Value): boolean {
  if (value instanceof Uint) return value.value === 0n
  if (value instanceof Timestamp || value instanceof Duration) return value.nanos === 0n
  if (value instanceof ListValue || value instanceof MapValue) return value.size === 0
  if (value instanceof Uint8Array) return value.length === 0
  if (value instanceof Optional) return value.value === undefined
  return value === null || value === false || value === '' || value === 0 || value === 0n
}
