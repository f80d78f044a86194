/** The static types of CEL. Objects are equal by identity: each schema has its own. */
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
/** The type of what is already known to be wrong: it fits everywhere, so that one mistake is told once. */
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

/** Types that only functions know inside of, such as `net.IP`. */
export function opaque(name: string): CelType {
  let found = opaques.get(name)
  if (!found) {
    found = { kind: 'opaque', name }
    opaques.set(name, found)
  }
  return found
}

/** A type as error messages name it. */
export function formatType(type: CelType, bindings?: Bindings): string {
  const resolved = bindings?.resolve(type) ?? type
  const say = (inner: CelType) => formatType(inner, bindings)
  switch (resolved.kind) {
    case 'simple':
      if (resolved.name === 'google.protobuf.Timestamp') return 'timestamp'
      if (resolved.name === 'google.protobuf.Duration') return 'duration'
      return resolved.name === 'null_type' ? 'null' : resolved.name === 'error' ? '!error!' : resolved.name
    case 'list':
      return `list(${say(resolved.of)})`
    case 'map':
      return `map(${say(resolved.key)}, ${say(resolved.value)})`
    case 'optional':
      return `optional_type(${say(resolved.of)})`
    case 'type':
      return `type(${say(resolved.of)})`
    default:
      return resolved.name
  }
}

/** What type parameters stand for, as found so far in one expression. */
export class Bindings {
  readonly #bound = new Map<number, CelType>()
  /** Parameters in the order they were bound, so that a failed attempt can be taken back. */
  readonly #trail: number[] = []
  #count = 0

  fresh(name: string): CelType {
    return { kind: 'param', id: this.#count++, name }
  }

  /** The type with its outermost parameter replaced. */
  resolve(type: CelType): CelType {
    let resolved = type
    while (resolved.kind === 'param') {
      const next = this.#bound.get(resolved.id)
      if (!next) return resolved
      resolved = next
    }
    return resolved
  }

  /** The type with all parameters replaced, those that stand for nothing by dyn. */
  settle(type: CelType): CelType {
    const resolved = this.resolve(type)
    switch (resolved.kind) {
      case 'param':
        return dyn
      case 'list':
      case 'optional':
      case 'type':
        return { kind: resolved.kind, of: this.settle(resolved.of) }
      case 'map':
        return map(this.settle(resolved.key), this.settle(resolved.value))
      default:
        return resolved
    }
  }

  /** Binds parameters so that each of `from` fits its `to`, or changes nothing. */
  assign(pairs: readonly (readonly [to: CelType, from: CelType])[]): boolean {
    const before = this.#trail.length
    if (pairs.every(([to, from]) => this.#fits(to, from))) return true
    while (this.#trail.length > before) this.#bound.delete(this.#trail.pop()!)
    return false
  }

  #fits(toType: CelType, fromType: CelType): boolean {
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
        return from.kind === to.kind && this.#fits(to.of, from.of)
      case 'type':
        return from.kind === 'type'
      case 'map':
        return from.kind === 'map' && this.#fits(to.key, from.key) && this.#fits(to.value, from.value)
      case 'object':
        return false
    }
  }

  #bind(param: CelType & { kind: 'param' }, type: CelType): boolean {
    if (this.#mentions(type, param.id)) return false
    this.#bound.set(param.id, type)
    this.#trail.push(param.id)
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
