/** The static types of CEL. Object types are equal by identity: each schema has its own. */
export type CelType =
  | { readonly kind: 'simple'; readonly name: SimpleName }
  | { readonly kind: 'opaque'; readonly name: string }
  | { readonly kind: 'list'; readonly of: CelType }
  | { readonly kind: 'map'; readonly key: CelType; readonly value: CelType }
  | { readonly kind: 'optional'; readonly of: CelType }
  | { readonly kind: 'type'; readonly of: CelType }
  | ObjectType
  | { readonly kind: 'param'; readonly id: number; readonly name: string }

export type ObjectType = { readonly kind: 'object'; readonly name: string; readonly fields: ReadonlyMap<string, CelType> }

export type SimpleName =
  | 'dyn'
  | 'error'
  | 'bool'
  | 'int'
  | 'uint'
  | 'double'
  | 'string'
  | 'bytes'
  | 'null_type'
  | 'google.protobuf.Timestamp'
  | 'google.protobuf.Duration'

const simple = (name: SimpleName): CelType => ({ kind: 'simple', name })

export const dyn = simple('dyn')
/** The type of an invalid expression. It is assignable to every type, so that each error is reported once. */
export const errorType = simple('error')
export const bool = simple('bool')
export const int = simple('int')
export const uint = simple('uint')
export const double = simple('double')
export const string = simple('string')
export const bytes = simple('bytes')
export const nullType = simple('null_type')
export const timestamp = simple('google.protobuf.Timestamp')
export const duration = simple('google.protobuf.Duration')

export const list = (of: CelType): CelType => ({ kind: 'list', of })
export const map = (key: CelType, value: CelType): CelType => ({ kind: 'map', key, value })
export const optional = (of: CelType): CelType => ({ kind: 'optional', of })
export const typeOf = (of: CelType): CelType => ({ kind: 'type', of })

const opaques = new Map<string, CelType>()

/** Types whose contents only their functions access, such as `net.IP`. */
export function opaque(name: string): CelType {
  let found = opaques.get(name)
  if (!found) {
    found = { kind: 'opaque', name }
    opaques.set(name, found)
  }
  return found
}

/** Formats a type as in error messages. */
export function formatType(type: CelType, substitution?: TypeSubstitution): string {
  const resolved = substitution?.resolve(type) ?? type
  const format = (inner: CelType) => formatType(inner, substitution)
  switch (resolved.kind) {
    case 'simple':
      if (resolved.name === 'google.protobuf.Timestamp') return 'timestamp'
      if (resolved.name === 'google.protobuf.Duration') return 'duration'
      return resolved.name === 'null_type' ? 'null' : resolved.name === 'error' ? '!error!' : resolved.name
    case 'list':
      return `list(${format(resolved.of)})`
    case 'map':
      return `map(${format(resolved.key)}, ${format(resolved.value)})`
    case 'optional':
      return `optional_type(${format(resolved.of)})`
    case 'type':
      return `type(${format(resolved.of)})`
    default:
      return resolved.name
  }
}

/** The types of type parameters, as inferred so far in one expression. */
export class TypeSubstitution {
  readonly #bound = new Map<number, CelType>()
  /** Parameters in the order of their binding, so that a failed attempt can be undone. */
  readonly #boundInOrder: number[] = []
  #count = 0

  newTypeParam(name: string): CelType {
    return { kind: 'param', id: this.#count++, name }
  }

  /** The type with its outermost parameter substituted. */
  resolve(type: CelType): CelType {
    let resolved = type
    while (resolved.kind === 'param') {
      const next = this.#bound.get(resolved.id)
      if (!next) return resolved
      resolved = next
    }
    return resolved
  }

  /** The type with all parameters substituted, unbound ones by dyn. */
  substitute(type: CelType): CelType {
    const resolved = this.resolve(type)
    switch (resolved.kind) {
      case 'param':
        return dyn
      case 'list':
      case 'optional':
      case 'type':
        return { kind: resolved.kind, of: this.substitute(resolved.of) }
      case 'map':
        return map(this.substitute(resolved.key), this.substitute(resolved.value))
      default:
        return resolved
    }
  }

  /** Binds parameters so that each `from` is assignable to its `to`; changes nothing if that is impossible. */
  unify(pairs: readonly (readonly [to: CelType, from: CelType])[]): boolean {
    const before = this.#boundInOrder.length
    if (pairs.every(([to, from]) => this.#isAssignable(to, from))) return true
    while (this.#boundInOrder.length > before) this.#bound.delete(this.#boundInOrder.pop()!)
    return false
  }

  #isAssignable(toType: CelType, fromType: CelType): boolean {
    const to = this.resolve(toType)
    const from = this.resolve(fromType)
    if (to === from) return true
    if (from.kind === 'param') return this.#bind(from, to)
    if (to.kind === 'param') return this.#bind(to, from)
    if (isAny(to) || isAny(from)) return true
    if (isNull(from)) return isNullable(to)
    if (isNull(to)) return isNullable(from)
    switch (to.kind) {
      case 'simple':
        return from.kind === 'simple' && to.name === from.name
      case 'opaque':
        return from.kind === 'opaque' && to.name === from.name
      case 'list':
      case 'optional':
        return from.kind === to.kind && this.#isAssignable(to.of, from.of)
      case 'type':
        return from.kind === 'type'
      case 'map':
        return from.kind === 'map' && this.#isAssignable(to.key, from.key) && this.#isAssignable(to.value, from.value)
      case 'object':
        return false
    }
  }

  #bind(param: CelType & { kind: 'param' }, type: CelType): boolean {
    if (this.#mentions(type, param.id)) return false
    this.#bound.set(param.id, type)
    this.#boundInOrder.push(param.id)
    return true
  }

  #mentions(type: CelType, id: number): boolean {
    const resolved = this.resolve(type)
    switch (resolved.kind) {
      case 'param':
        return resolved.id === id
      case 'list':
      case 'optional':
      case 'type':
        return this.#mentions(resolved.of, id)
      case 'map':
        return this.#mentions(resolved.key, id) || this.#mentions(resolved.value, id)
      default:
        return false
    }
  }
}

export const isAny = (type: CelType): boolean => type.kind === 'simple' && (type.name === 'dyn' || type.name === 'error')
const isNull = (type: CelType): boolean => type.kind === 'simple' && type.name === 'null_type'

function isNullable(type: CelType): boolean {
  if (type.kind === 'object' || type.kind === 'opaque' || type.kind === 'optional') return true
  return type.kind === 'simple' && (type.name === 'google.protobuf.Timestamp' || type.name === 'google.protobuf.Duration')
}
