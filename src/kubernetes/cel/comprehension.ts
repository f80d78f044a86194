import { chargeCost } from '../object/cost-limit.ts'
import type { ComprehensionMacro } from './ast.ts'
import { type Activation, attempt, evaluateCondition, formatKey, type Program } from './program.ts'
import { ArrayListValue, CelError, compare, ListValue, MapValue, noSuchOverload, PlainMap, type Value } from './values.ts'

/** The compiled parts of a comprehension. */
export type ComprehensionParts = {
  readonly range: Program
  /** The last part is the result or condition; with two parts, the first is the filter. */
  readonly body: readonly Program[]
  /** The index of the first variable in the activation. */
  readonly slot: number
  /** The number of variables: 1 or 2. */
  readonly variables: number
  /** The cost of one iteration. */
  readonly cost: number
}

/** Compiles a macro that iterates over a list or map. */
export function comprehension(macro: ComprehensionMacro, { range, body, slot, variables, cost }: ComprehensionParts): Program {
  const last = body.at(-1)!
  const filter = body.length > 1 ? body[0]! : undefined
  // With one variable a list yields its items and a map its keys; with two, index and item, or key and value.
  const walk = (activation: Activation, visit: (key: Value, value: Value) => boolean): void => {
    const values = range(activation)
    if (values instanceof ListValue) {
      for (let index = 0; index < values.size; index++) {
        chargeCost(cost)
        const key = BigInt(index)
        const value = values.at(index)
        activation[slot] = variables === 1 ? value : key
        if (variables === 2) activation[slot + 1] = value
        if (!visit(key, value)) return
      }
      return
    }
    if (!(values instanceof MapValue)) throw noSuchOverload()
    chargeCost(values.size)
    for (const key of values.keys()) {
      chargeCost(cost)
      const value = values.get(key)!
      activation[slot] = key
      if (variables === 2) activation[slot + 1] = value
      if (!visit(key, variables === 1 ? key : value)) return
    }
  }
  switch (macro) {
    case 'all':
    case 'exists': {
      const decisive = macro === 'exists'
      return activation => {
        let failure: CelError | undefined
        let isDecided = false
        walk(activation, () => {
          const value = attempt(last, activation)
          if (value === decisive) isDecided = true
          else if (typeof value !== 'boolean') failure ??= value instanceof CelError ? value : noSuchOverload()
          return !isDecided
        })
        if (isDecided) return decisive
        if (failure) throw failure
        return !decisive
      }
    }
    case 'exists_one':
      return activation => {
        let count = 0
        walk(activation, () => {
          if (evaluateCondition(last, activation)) count++
          return true
        })
        return count === 1
      }
    case 'sortBy':
      return activation => {
        const keyed: { key: Value; value: Value }[] = []
        walk(activation, (_, value) => keyed.push({ key: last(activation), value }) > 0)
        chargeCost(keyed.length * (1 + Math.ceil(Math.log2(keyed.length + 1))))
        return new ArrayListValue(keyed.sort((a, b) => compare(a.key, b.key)).map(({ value }) => value))
      }
    case 'filter':
      return activation => {
        const kept: Value[] = []
        walk(activation, (_, value) => {
          if (evaluateCondition(last, activation)) kept.push(value)
          return true
        })
        return new ArrayListValue(kept)
      }
    case 'map':
    case 'transformList':
      return activation => {
        const result: Value[] = []
        walk(activation, () => {
          if (!filter || evaluateCondition(filter, activation)) result.push(last(activation))
          return true
        })
        return new ArrayListValue(result)
      }
    case 'transformMap':
    case 'transformMapEntry':
      return activation => {
        const result = new PlainMap()
        const insert = (key: Value, value: Value) => {
          if (!result.insert(key, value)) throw new CelError(`insert failed: key ${formatKey(key)} already exists`)
        }
        walk(activation, key => {
          if (filter && !evaluateCondition(filter, activation)) return true
          const value = last(activation)
          if (macro === 'transformMap') insert(key, value)
          else if (value instanceof MapValue) for (const each of value.keys()) insert(each, value.get(each)!)
          else throw noSuchOverload()
          return true
        })
        return result
      }
  }
}
