import { chargeCost } from '../object/cost-limit.ts'
import type { Expr } from './ast.ts'
import { functions, type Implementation } from './functions/index.ts'
import {
  CelError,
  compare,
  equal,
  ListValue,
  MapValue,
  noSuchOverload,
  Optional,
  PlainList,
  PlainMap,
  TypeValue,
  typeName,
  Uint,
  type Value,
} from './values.ts'

/** The variables of one evaluation. Comprehensions append theirs; compiled code accesses them by index. */
export type Activation = Value[]

/** A compiled expression. It throws {@link CelError}, and CostLimitExceededError. */
export type Program = (activation: Activation) => Value

/**
 * Compiles a checked expression to closures.
 * @param variables the names of the variables that the caller sets.
 */
export function compile(expr: Expr, variables: readonly string[], qualified: ReadonlyMap<Expr, string>): Program {
  const compiler = new Compiler(qualified)
  const program = compiler.compile(expr, variables)
  const { nodes } = expr
  return activation => {
    chargeCost(nodes)
    return program(activation)
  }
}

class Compiler {
  readonly #qualified: ReadonlyMap<Expr, string>

  constructor(qualified: ReadonlyMap<Expr, string>) {
    this.#qualified = qualified
  }

  compile(expr: Expr, scope: readonly string[]): Program {
    const qualified = this.#qualified.get(expr)
    switch (expr.op) {
      case 'const': {
        const { value } = expr
        return () => value
      }
      case 'ident': {
        const slot = scope.lastIndexOf(expr.name)
        if (slot >= 0) return activation => activation[slot]!
        const type = new TypeValue(expr.name)
        return () => type
      }
      case 'select': {
        if (qualified !== undefined) {
          const type = new TypeValue(qualified)
          return () => type
        }
        return select(this.compile(expr.operand, scope), expr)
      }
      case 'call': {
        const { name, target, args } = expr
        const operands = (qualified === undefined && target ? [target, ...args] : args).map(arg => this.compile(arg, scope))
        return call(qualified ?? name, operands)
      }
      case 'list': {
        const items = expr.items.map(item => this.compile(item, scope))
        const { optional } = expr
        if (optional.size === 0) return activation => new PlainList(items.map(item => item(activation)))
        return activation =>
          new PlainList(
            items.flatMap((item, index) => {
              const value = item(activation)
              if (!optional.has(index)) return [value]
              const inner = unwrap(value)
              return inner === undefined ? [] : [inner]
            }),
          )
      }
      case 'map': {
        const entries = expr.entries.map(({ key, value, isOptional }) => ({
          key: this.compile(key, scope),
          value: this.compile(value, scope),
          isOptional,
        }))
        return activation => {
          const result = new PlainMap()
          for (const entry of entries) {
            const key = entry.key(activation)
            const given = entry.value(activation)
            const value = entry.isOptional ? unwrap(given) : given
            if (value !== undefined) result.set(key, value)
          }
          return result
        }
      }
      case 'optMap': {
        const target = this.compile(expr.target, scope)
        const slot = scope.length
        const body = this.compile(expr.body, [...scope, expr.name])
        const { isFlat } = expr
        return activation => {
          const value = unwrap(target(activation))
          if (value === undefined) return Optional.none
          activation[slot] = value
          const result = body(activation)
          if (!isFlat) return new Optional(result)
          if (result instanceof Optional) return result
          throw noSuchOverload()
        }
      }
      case 'comprehension':
        return this.#comprehension(expr, scope)
    }
  }

  #comprehension({ macro, range, names, body }: Expr & { op: 'comprehension' }, scope: readonly string[]): Program {
    const slot = scope.length
    const inner = [...scope, ...names]
    const parts = body.map(part => this.compile(part, inner))
    const last = parts.at(-1)!
    const filter = parts.length > 1 ? parts[0]! : undefined
    const over = this.compile(range, scope)
    const cost = 1 + body.reduce((sum, part) => sum + part.nodes, 0)
    // With one variable a list yields its items and a map its keys; with two, index and item, or key and value.
    const walk = (activation: Activation, visit: (key: Value, value: Value) => boolean): void => {
      const values = over(activation)
      if (values instanceof ListValue) {
        for (let index = 0; index < values.size; index++) {
          chargeCost(cost)
          const key = BigInt(index)
          const value = values.at(index)
          activation[slot] = names.length === 1 ? value : key
          if (names.length === 2) activation[slot + 1] = value
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
        if (names.length === 2) activation[slot + 1] = value
        if (!visit(key, names.length === 1 ? key : value)) return
      }
    }
    const holds = (activation: Activation, condition: Program): boolean => {
      const value = condition(activation)
      if (typeof value !== 'boolean') throw noSuchOverload()
      return value
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
            if (holds(activation, last)) count++
            return true
          })
          return count === 1
        }
      case 'sortBy':
        return activation => {
          const keyed: { key: Value; value: Value }[] = []
          walk(activation, (_, value) => keyed.push({ key: last(activation), value }) > 0)
          chargeCost(keyed.length * (1 + Math.ceil(Math.log2(keyed.length + 1))))
          return new PlainList(keyed.sort((a, b) => compare(a.key, b.key)).map(({ value }) => value))
        }
      case 'filter':
        return activation => {
          const kept: Value[] = []
          walk(activation, (_, value) => {
            if (holds(activation, last)) kept.push(value)
            return true
          })
          return new PlainList(kept)
        }
      case 'map':
      case 'transformList':
        return activation => {
          const result: Value[] = []
          walk(activation, () => {
            if (!filter || holds(activation, filter)) result.push(last(activation))
            return true
          })
          return new PlainList(result)
        }
      case 'transformMap':
      case 'transformMapEntry':
        return activation => {
          const result = new PlainMap()
          const insert = (key: Value, value: Value) => {
            if (!result.insert(key, value)) throw new CelError(`insert failed: key ${formatKey(key)} already exists`)
          }
          walk(activation, key => {
            if (filter && !holds(activation, filter)) return true
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
}

/** The value of a program, or its error. */
function attempt(program: Program, activation: Activation): Value | CelError {
  try {
    return program(activation)
  } catch (error) {
    if (!(error instanceof CelError)) throw error
    // An error costs as much as about 100 nodes.
    chargeCost(100)
    return error
  }
}

function unwrap(value: Value): Value | undefined {
  if (value instanceof Optional) return value.value
  throw noSuchOverload()
}

function select(operand: Program, { field, isTest, isOptional }: Expr & { op: 'select' }): Program {
  if (isTest) {
    return activation => {
      const value = operand(activation)
      const inner = value instanceof Optional ? value.value : value
      if (inner === undefined) return false
      if (!(inner instanceof MapValue)) throw noSuchOverload()
      return inner.has(field)
    }
  }
  return activation => {
    const value = operand(activation)
    const isWrapped = value instanceof Optional
    const inner = isWrapped ? value.value : value
    if (inner === undefined) return Optional.none
    const found = inner instanceof MapValue ? inner.field(field) : undefined
    if (isWrapped || isOptional) return found === undefined ? Optional.none : new Optional(found)
    if (found === undefined) throw new CelError(`no such key: ${field}`)
    return found
  }
}

function call(name: string, args: readonly Program[]): Program {
  const [first, second, third] = args
  switch (name) {
    case '_&&_':
      return logical(first!, second!, false)
    case '_||_':
      return logical(first!, second!, true)
    case '!_':
      return activation => {
        const value = first!(activation)
        if (typeof value !== 'boolean') throw noSuchOverload()
        return !value
      }
    case '_?_:_':
      return activation => {
        const condition = first!(activation)
        if (typeof condition !== 'boolean') throw noSuchOverload()
        return condition ? second!(activation) : third!(activation)
      }
    case '_==_':
      return activation => equal(first!(activation), second!(activation))
    case '_!=_':
      return activation => !equal(first!(activation), second!(activation))
    case '_<_':
      return activation => compare(first!(activation), second!(activation)) < 0
    case '_<=_':
      return activation => compare(first!(activation), second!(activation)) <= 0
    case '_>_':
      return activation => compare(first!(activation), second!(activation)) > 0
    case '_>=_':
      return activation => compare(first!(activation), second!(activation)) >= 0
    case '@in':
      return activation => isIn(first!(activation), second!(activation))
    case '_[_]':
      return activation => {
        const container = first!(activation)
        const key = second!(activation)
        if (container instanceof Optional) return container.value === undefined ? container : indexed(container.value, key)
        const found = index(container, key)
        if (found !== undefined) return found
        throw new CelError(container instanceof ListValue ? `index out of bounds: ${formatKey(key)}` : `no such key: ${formatKey(key)}`)
      }
    case '_[?_]':
      return activation => {
        const container = first!(activation)
        const key = second!(activation)
        if (container instanceof Optional) return container.value === undefined ? container : indexed(container.value, key)
        return indexed(container, key)
      }
  }
  const implementation = functions.get(name)
  if (!implementation) throw new TypeError(`bug: the CEL function ${name} is declared but not implemented`)
  return invoke(implementation, args)
}

function invoke(implementation: Implementation, args: readonly Program[]): Program {
  const [first, second] = args
  if (args.length === 1) return activation => implementation(first!(activation))
  if (args.length === 2) return activation => implementation(first!(activation), second!(activation))
  return activation => implementation(...args.map(arg => arg(activation)))
}

/** `decisive` on either side determines the result, even if the other side fails. */
function logical(left: Program, right: Program, decisive: boolean): Program {
  return activation => {
    const first = attempt(left, activation)
    if (first === decisive) return decisive
    const second = first === !decisive ? right(activation) : attempt(right, activation)
    if (second === decisive) return decisive
    if (typeof first !== 'boolean') throw first instanceof CelError ? first : noSuchOverload()
    if (typeof second !== 'boolean') throw second instanceof CelError ? second : noSuchOverload()
    return !decisive
  }
}

function isIn(value: Value, container: Value): boolean {
  if (container instanceof MapValue) return container.get(value) !== undefined
  if (!(container instanceof ListValue)) throw noSuchOverload()
  for (let index = 0; index < container.size; index++) {
    chargeCost(1)
    if (equal(value, container.at(index))) return true
  }
  return false
}

function index(container: Value, key: Value): Value | undefined {
  if (container instanceof MapValue) return container.get(key)
  if (!(container instanceof ListValue)) throw noSuchOverload()
  const position = typeof key === 'bigint' ? Number(key) : key instanceof Uint ? Number(key.value) : key
  if (typeof position !== 'number') throw new CelError(`unsupported index type '${typeName(key)}' in list`)
  if (!Number.isInteger(position)) throw new CelError(`unsupported index value ${position} in list`)
  return position >= 0 && position < container.size ? container.at(position) : undefined
}

function indexed(container: Value, key: Value): Optional {
  const found = index(container, key)
  return found === undefined ? Optional.none : new Optional(found)
}

function formatKey(key: Value): string {
  return key instanceof Uint ? String(key.value) : typeof key === 'object' ? 'of an unsupported type' : String(key)
}
