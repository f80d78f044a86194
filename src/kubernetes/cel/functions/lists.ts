import { chargeCost } from '../../object/cost-limit.ts'
import { ArrayListValue, CelError, compare, equal, ListValue, noSuchOverload, Optional, type Value } from '../values.ts'
import { asInt, asList, type FunctionTable } from './implementation.ts'
import { operators } from './operators.ts'
import { stringIndexOf, stringLastIndexOf } from './strings.ts'

/** Lists and sets: Kubernetes' library and cel-go's `lists` (version 3) and `sets`. */
export const lists: FunctionTable = {
  isSorted: list => {
    const items = read(list!)
    return items.every((item, index) => index === 0 || compare(items[index - 1]!, item) <= 0)
  },
  sum: list => {
    const items = read(list!)
    if (items.length === 0) return 0n
    return items.reduce((sum, item) => operators['_+_']!(sum, item))
  },
  min: list => extreme('min', list!, -1),
  max: list => extreme('max', list!, 1),
  indexOf: (receiver, wanted, from) => {
    if (typeof receiver === 'string') return stringIndexOf(receiver, wanted, from)
    return BigInt(read(receiver!).findIndex(item => equal(item, wanted!)))
  },
  lastIndexOf: (receiver, wanted, from) => {
    if (typeof receiver === 'string') return stringLastIndexOf(receiver, wanted, from)
    return BigInt(read(receiver!).findLastIndex(item => equal(item, wanted!)))
  },
  slice: (list, from, to) => {
    const values = asList(list)
    const [start, end] = [asInt(from), asInt(to)]
    if (start < 0n || end < 0n) throw new CelError(`cannot slice(${start}, ${end}), negative indexes not supported`)
    if (start > end) throw new CelError(`cannot slice(${start}, ${end}), start index must be less than or equal to end index`)
    if (end > BigInt(values.size)) throw new CelError(`cannot slice(${start}, ${end}), list is length ${values.size}`)
    return new ArrayListValue(read(values).slice(Number(start), Number(end)))
  },
  flatten: (list, depth) => {
    const levels = depth === undefined ? 1n : asInt(depth)
    if (levels < 0n) throw new CelError('level must be non-negative')
    return new ArrayListValue(flatten(asList(list), levels))
  },
  sort: list => sorted(list!),
  'lists.range': count => {
    const size = asInt(count)
    if (size <= 0n) return new ArrayListValue([])
    chargeCost(Number(size))
    return new ArrayListValue(Array.from({ length: Number(size) }, (_, index) => BigInt(index)))
  },
  reverse: list => new ArrayListValue(read(list!).reverse()),
  distinct: list => {
    const kept: Value[] = []
    const seen = new Set<string>()
    for (const item of read(list!)) {
      if (typeof item === 'string') {
        if (seen.has(item)) continue
        seen.add(item)
      } else {
        chargeCost(kept.length)
        if (kept.some(other => equal(other, item))) continue
      }
      kept.push(item)
    }
    return new ArrayListValue(kept)
  },
  first: list => new Optional(asList(list).size > 0 ? asList(list).at(0) : undefined),
  last: list => new Optional(asList(list).size > 0 ? asList(list).at(asList(list).size - 1) : undefined),
  'sets.contains': (list, wanted) => containsAll(read(list!), read(wanted!)),
  'sets.equivalent': (a, b) => containsAll(read(a!), read(b!)) && containsAll(read(b!), read(a!)),
  'sets.intersects': (a, b) => {
    const others = read(b!)
    return read(a!).some(item => contains(others, item))
  },
}

function read(value: Value): Value[] {
  const list = asList(value)
  chargeCost(list.size)
  return [...list.values()]
}

function extreme(name: string, list: Value, sign: number): Value {
  const items = read(list)
  if (items.length === 0) throw new CelError(`${name} called on empty list`)
  return items.reduce((best, item) => (compare(item, best) * sign > 0 ? item : best))
}

function sorted(list: Value): ArrayListValue {
  const items = read(list)
  chargeCost(items.length * Math.ceil(Math.log2(items.length + 1)))
  const [first] = items
  const isSortable = first === undefined || (!(first instanceof ListValue) && !(first instanceof Optional))
  if (!isSortable) throw noSuchOverload()
  return new ArrayListValue(items.sort(compare))
}

function flatten(list: ListValue, levels: bigint): Value[] {
  chargeCost(list.size)
  return [...list.values()].flatMap(item => (item instanceof ListValue && levels > 0n ? flatten(item, levels - 1n) : [item]))
}

function contains(list: readonly Value[], wanted: Value): boolean {
  return list.some(item => {
    chargeCost(1)
    return equal(item, wanted)
  })
}

function containsAll(list: readonly Value[], wanted: readonly Value[]): boolean {
  return wanted.every(item => contains(list, item))
}
