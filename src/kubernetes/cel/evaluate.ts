import { chargeCost } from '../object/cost-limit.ts'
import type { Expr } from './ast.ts'
import { comprehension } from './comprehension.ts'
import { functions, type Implementation } from './functions/index.ts'
import { attempt, formatKey, type Program } from './program.ts'
import {
  ArrayListValue,
  CelError,
  compare,
  equal,
  ListValue,
  MapValue,
  noSuchOverload,
  Optional,
  PlainMap,
  TypeValue,
  typeName,
  Uint,
  type Value,
} from './values.ts'

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
        if (optional.size === 0) {
          const create: Program = activation => new ArrayListValue(items.map(item => item(activation)))
          return expr.items.every(isConstant) ? once(create) : create
        }
        return activation =>
          new ArrayListValue(
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
        const create: Program = activation => {
          const result = new PlainMap()
          for (const entry of entries) {
            const key = entry.key(activation)
            const given = entry.value(activation)
            const value = entry.isOptional ? unwrap(given) : given
            if (value !== undefined) result.set(key, value)
          }
          return result
        }
        return expr.entries.every(({ key, value, isOptional }) => isConstant(key) && isConstant(value) && !isOptional)
          ? once(create)
          : create
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
    const inner = [...scope, ...names]
    return comprehension(macro, {
      range: this.compile(range, scope),
      body: body.map(part => this.compile(part, inner)),
      slot: scope.length,
      variables: names.length,
      cost: 1 + body.reduce((sum, part) => sum + part.nodes, 0),
    })
  }
}

const isConstant = ({ op }: Expr): boolean => op === 'const'

/** Evaluates a constant list or map by its first use; nothing changes it. Its cost is charged with the other nodes of the expression. */
function once(create: Program): Program {
  let value: Value | undefined
  return activation => (value ??= create(activation))
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
