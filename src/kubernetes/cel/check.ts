import type { Expr } from './ast.ts'
import { overloadsOf, typeNames } from './declarations.ts'
import type { SourceIssue } from './source-error.ts'
import {
  bool,
  bytes,
  type CelType,
  double,
  dyn,
  errorType,
  formatType,
  int,
  isAny,
  list,
  map,
  nullType,
  optional,
  string,
  TypeSubstitution,
  typeOf,
  uint,
} from './types.ts'
import { Uint } from './values.ts'

const maxIssues = 100

export type Checked = {
  readonly type: CelType
  readonly issues: readonly SourceIssue[]
  /** The given variables that the expression uses. */
  readonly used: ReadonlySet<string>
  /** Qualified names that resolve to a function or type, by their node. */
  readonly qualified: ReadonlyMap<Expr, string>
}

/** Determines the type of an expression and finds its type errors, in cel-go's words. */
export function check(expr: Expr, variables: ReadonlyMap<string, CelType>): Checked {
  const checker = new Checker(variables)
  const type = checker.check(expr)
  const { used, qualified } = checker
  // As in Kubernetes, literals with mixed types are reported only if there is no other error.
  const issues = checker.issues.length > 0 ? checker.issues : checker.mixed
  return { type: checker.substitution.substitute(type), issues, used, qualified }
}

type Scope = ReadonlyMap<string, CelType> | { readonly outer: Scope; readonly name: string; readonly type: CelType }

class Checker {
  readonly issues: SourceIssue[] = []
  readonly mixed: SourceIssue[] = []
  readonly used = new Set<string>()
  readonly qualified = new Map<Expr, string>()
  readonly substitution = new TypeSubstitution()
  #scope: Scope

  constructor(variables: ReadonlyMap<string, CelType>) {
    this.#scope = variables
  }

  check(expr: Expr): CelType {
    switch (expr.op) {
      case 'const':
        return constType(expr.value)
      case 'ident':
        return this.#ident(expr, expr.name)
      case 'select':
        return this.#select(expr)
      case 'call':
        return this.#call(expr)
      case 'list':
        return list(this.#join(expr.items.map((item, index) => [item, this.#element(item, expr.optional.has(index))])))
      case 'map': {
        const keys = expr.entries.map(({ key }): [Expr, CelType] => [key, this.check(key)])
        const values = expr.entries.map(({ value, isOptional }): [Expr, CelType] => [value, this.#element(value, isOptional)])
        return map(this.#join(keys), this.#join(values))
      }
      case 'comprehension':
        return this.#comprehension(expr)
      case 'optMap':
        return this.#optMap(expr)
    }
  }

  #issue(at: number, message: string): CelType {
    // A hostile rule can contain any number of errors; more than this are of no use.
    if (this.issues.length < maxIssues) this.issues.push({ at, message })
    return errorType
  }

  #formatType(type: CelType): string {
    return formatType(type, this.substitution)
  }

  #lookup(name: string): CelType | undefined {
    let scope = this.#scope
    while (!isVariables(scope)) {
      if (scope.name === name) return scope.type
      scope = scope.outer
    }
    const type = scope.get(name)
    if (type) this.used.add(name)
    return type
  }

  #within(names: readonly string[], types: readonly CelType[], body: () => CelType): CelType {
    const outer = this.#scope
    for (const [index, name] of names.entries()) this.#scope = { outer: this.#scope, name, type: types[index]! }
    const type = body()
    this.#scope = outer
    return type
  }

  #ident(expr: Expr, name: string): CelType {
    const variable = this.#lookup(name)
    if (variable) return variable
    const type = typeNames.get(name)
    if (type) {
      this.qualified.set(expr, name)
      return typeOf(type)
    }
    return this.#issue(expr.at, `undeclared reference to '${name}' (in container '')`)
  }

  #select(expr: Expr & { op: 'select' }): CelType {
    const path = qualifiedName(expr)
    if (path && typeNames.has(path) && !expr.isTest) return this.#ident(expr, path)
    const operand = this.substitution.resolve(this.check(expr.operand))
    const isWrapped = operand.kind === 'optional'
    const type = this.#field(expr, isWrapped ? this.substitution.resolve(operand.of) : operand)
    if (expr.isTest) return bool
    return isWrapped || expr.isOptional ? optional(type) : type
  }

  #field({ at, field }: Expr & { op: 'select' }, operand: CelType): CelType {
    if (operand.kind === 'map') return operand.value
    if (operand.kind === 'object') {
      // Fields named like reserved words of CEL may also be used unescaped.
      return operand.fields.get(field) ?? operand.fields.get(`__${field}__`) ?? this.#issue(at, `undefined field '${field}'`)
    }
    if (operand.kind === 'param') {
      this.substitution.unify([[operand, dyn]])
      return dyn
    }
    if (isAny(operand)) return dyn
    return this.#issue(at, `type '${this.#formatType(operand)}' does not support field selection`)
  }

  #call(expr: Expr & { op: 'call' }): CelType {
    const { name, target, at } = expr
    const path = target && qualifiedName(target)
    const qualified = path === undefined ? undefined : `${path}.${name}`
    if (qualified !== undefined && overloadsOf(qualified)) {
      this.qualified.set(expr, qualified)
      return this.#resolve(
        at,
        qualified,
        false,
        expr.args.map(arg => this.check(arg)),
      )
    }
    if (target) {
      const receiver = this.check(target)
      const mixed = this.mixed.length
      const args = expr.args.map(arg => this.check(arg))
      // The arguments of format may have different types.
      if (name === 'format' && expr.args[0]?.op === 'list') this.mixed.length = mixed
      return this.#resolve(at, name, true, [receiver, ...args])
    }
    return this.#resolve(
      at,
      name,
      false,
      expr.args.map(arg => this.check(arg)),
    )
  }

  #resolve(at: number, name: string, isMember: boolean, args: readonly CelType[]): CelType {
    const overloads = overloadsOf(name)
    if (!overloads) return this.#issue(at, `undeclared reference to '${name}' (in container '')`)
    if (args.some(arg => this.substitution.resolve(arg) === errorType)) {
      const [first] = overloads
      return first && overloads.every(overload => overload.result === first.result) ? first.result : errorType
    }
    const results: CelType[] = []
    const before = this.substitution
    for (const overload of overloads) {
      if (overload.isMember !== isMember || overload.params.length !== args.length) continue
      const fresh = new Map<number, CelType>()
      const open = (type: CelType): CelType => instantiate(type, fresh, before)
      if (before.unify(overload.params.map((param, index) => [open(param), args[index]!] as const))) results.push(open(overload.result))
    }
    const [first, ...others] = results
    if (!first) {
      const [receiver, ...rest] = args.map(arg => this.#formatType(arg))
      const signature = isMember
        ? `${receiver}.(${rest.join(', ')})`
        : `(${[receiver, ...rest].filter(part => part !== undefined).join(', ')})`
      return this.#issue(at, `found no matching overload for '${name}' applied to '${signature}'`)
    }
    const settled = this.#formatType(first)
    return others.every(other => this.#formatType(other) === settled) ? first : dyn
  }

  #element(expr: Expr, isOptional: boolean): CelType {
    const type = this.check(expr)
    if (!isOptional) return type
    const resolved = this.substitution.resolve(type)
    if (resolved.kind === 'optional') return resolved.of
    if (isAny(resolved)) return resolved
    return this.#issue(expr.at, `expected type 'optional_type(dyn)' but found '${this.#formatType(resolved)}'`)
  }

  /** The common type of the elements of a literal. */
  #join(elements: readonly [Expr, CelType][]): CelType {
    let joined: CelType | undefined
    let isMixed = false
    for (const [expr, type] of elements) {
      if (joined === undefined) joined = type
      else if (isAny(this.substitution.resolve(type))) joined = type
      else if (!this.substitution.unify([[joined, type]])) {
        if (this.mixed.length < maxIssues) {
          this.mixed.push({ at: expr.at, message: `expected type '${this.#formatType(joined)}' but found '${this.#formatType(type)}'` })
        }
        isMixed = true
      }
    }
    if (isMixed) return dyn
    return joined ?? this.substitution.newTypeParam('elem')
  }

  #optMap({ at, isFlat, target, name, body }: Expr & { op: 'optMap' }): CelType {
    const type = this.substitution.resolve(this.check(target))
    if (type.kind !== 'optional' && !isAny(type)) {
      return this.#issue(at, `found no matching overload for 'hasValue' applied to '${this.#formatType(type)}.()'`)
    }
    const result = this.#within([name], [type.kind === 'optional' ? type.of : dyn], () => this.check(body))
    if (!isFlat) return optional(result)
    const resolved = this.substitution.resolve(result)
    if (resolved.kind === 'optional' || isAny(resolved)) return resolved
    return this.#issue(at, `found no matching overload for '_?_:_' applied to '(bool, ${this.#formatType(resolved)}, optional_type(dyn))'`)
  }

  #comprehension({ at, macro, range, names, body }: Expr & { op: 'comprehension' }): CelType {
    const type = this.substitution.resolve(this.check(range))
    const variables = this.#rangeTypes(range.at, type, names.length)
    if (macro === 'sortBy') {
      this.#within(names, variables, () => this.check(body[0]!))
      return type.kind === 'list' ? type : list(dyn)
    }
    return this.#within(names, variables, () => {
      const types = body.map(part => this.check(part))
      const condition = types[0]!
      const result = types.at(-1)!
      switch (macro) {
        case 'all':
        case 'exists': {
          const name = macro === 'all' ? '_&&_' : '_||_'
          if (!this.#isBool(condition)) this.#mismatch(at, name, `bool, ${this.#formatType(condition)}`)
          return bool
        }
        case 'exists_one':
          if (!this.#isBool(condition)) this.#mismatch(at, '_?_:_', `${this.#formatType(condition)}, int, int`)
          return bool
        case 'filter':
          if (!this.#isBool(condition)) {
            const kept = this.#formatType(list(variables[0]!))
            this.#mismatch(at, '_?_:_', `${this.#formatType(condition)}, ${kept}, ${kept}`)
          }
          return list(variables[0]!)
      }
      if (body.length > 1 && !this.#isBool(condition)) this.#mismatch(at, '_?_:_', `${this.#formatType(condition)}, dyn, dyn`)
      if (macro === 'map' || macro === 'transformList') return list(result)
      if (macro === 'transformMap') return map(type.kind === 'map' ? type.key : type.kind === 'list' ? int : dyn, result)
      const entry = this.substitution.resolve(result)
      if (entry.kind === 'map' || isAny(entry)) return entry
      return this.#mismatch(at, 'cel.@mapInsert', `map(dyn, dyn), ${this.#formatType(entry)}`)
    })
  }

  #mismatch(at: number, name: string, args: string): CelType {
    return this.#issue(at, `found no matching overload for '${name}' applied to '(${args})'`)
  }

  #isBool(type: CelType): boolean {
    return this.substitution.unify([[bool, type]])
  }

  #rangeTypes(at: number, range: CelType, count: number): CelType[] {
    if (range.kind === 'list') return count === 1 ? [range.of] : [int, range.of]
    if (range.kind === 'map') return count === 1 ? [range.key] : [range.key, range.value]
    if (!isAny(range) && range.kind !== 'param') {
      const why = `expression of type '${this.#formatType(range)}' cannot be range of a comprehension (must be list, map, or dynamic)`
      this.#issue(at, why)
      return [errorType, errorType]
    }
    return [dyn, dyn]
  }
}

function isVariables(scope: Scope): scope is ReadonlyMap<string, CelType> {
  return scope instanceof Map
}

function instantiate(type: CelType, fresh: Map<number, CelType>, substitution: TypeSubstitution): CelType {
  switch (type.kind) {
    case 'param': {
      let param = fresh.get(type.id)
      if (!param) {
        param = substitution.newTypeParam(type.name)
        fresh.set(type.id, param)
      }
      return param
    }
    case 'list':
    case 'optional':
    case 'type':
      return { kind: type.kind, of: instantiate(type.of, fresh, substitution) }
    case 'map':
      return map(instantiate(type.key, fresh, substitution), instantiate(type.value, fresh, substitution))
    default:
      return type
  }
}

function constType(value: unknown): CelType {
  if (value === null) return nullType
  if (value instanceof Uint) return uint
  if (value instanceof Uint8Array) return bytes
  switch (typeof value) {
    case 'boolean':
      return bool
    case 'bigint':
      return int
    case 'number':
      return double
    default:
      return string
  }
}

/** `a.b.c` if the expression is a qualified name. */
function qualifiedName(expr: Expr): string | undefined {
  if (expr.op === 'ident') return expr.name
  if (expr.op !== 'select' || expr.isTest || expr.isOptional) return undefined
  const operand = qualifiedName(expr.operand)
  return operand === undefined ? undefined : `${operand}.${expr.field}`
}
