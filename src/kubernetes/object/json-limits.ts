/**
 * Limits on the properties of JSON, other than its length, that make it expensive to process. A field of an object with more than
 * {@link wideFields} fields costs about ten times as much as another: the object is a hash table then. So does a new name.
 */
export type JsonLimits = {
  /** How deep arrays and objects may be nested. */
  readonly depth: number
  /** The number of fields and items, at all depths together. */
  readonly nodes: number
  /** The number of different names of fields. Default: no limit. */
  readonly names?: number
  /** The number of fields of all objects with more than {@link wideFields} fields together. Default: no limit. */
  readonly wide?: number
}

/** Objects with more fields are wide. V8 stores them as hash tables. */
export const wideFields = 1_000

/** The limit that `value` exceeds, if any. Stops at the limits, so it is safe for untrusted input. */
export function exceededJsonLimit(value: unknown, limits: JsonLimits): keyof JsonLimits | undefined {
  // Names are counted only if there are more fields than names are allowed: that takes longer than the rest.
  const { names: maxNames = Number.POSITIVE_INFINITY, ...others } = limits
  const first = new Counter(others)
  const exceeded = walkJson(value, limits.depth, first)
  if (exceeded || first.fields <= maxNames) return exceeded
  return walkJson(value, limits.depth, new Counter(limits))
}

function walkJson(part: unknown, deeper: number, counter: Counter): keyof JsonLimits | undefined {
  if (typeof part !== 'object' || part === null) return undefined
  if (deeper <= 0) return 'depth'
  if (Array.isArray(part)) {
    let exceeded: keyof JsonLimits | undefined = counter.addNodes(part.length)
    for (let index = 0; index < part.length && !exceeded; index++) exceeded = walkJson(part[index], deeper - 1, counter)
    return exceeded
  }
  const names = Object.keys(part)
  let exceeded: keyof JsonLimits | undefined = counter.addNodes(names.length) ?? counter.addFields(names)
  for (let index = 0; index < names.length && !exceeded; index++) {
    const child = (part as Record<string, unknown>)[names[index]!]
    if (typeof child === 'object') exceeded = walkJson(child, deeper - 1, counter)
  }
  return exceeded
}

/**
 * Like {@link exceededJsonLimit}, but for text before it is parsed: JSON.parse takes half a second for three megabytes of
 * brackets. For text that is not JSON the result is unspecified.
 */
export function exceededJsonTextLimit(text: string, limits: JsonLimits): keyof JsonLimits | undefined {
  const { depth, nodes, names = Number.POSITIVE_INFINITY, wide = Number.POSITIVE_INFINITY } = limits
  // Each level and each node takes at least one character, and a level another one for its end. A field takes five: `"":0,`.
  if (text.length <= 2 * depth && text.length <= nodes && text.length <= 5 * Math.min(names, wide)) return undefined
  const counter = new Counter(limits)
  /** The number of fields of each open object, of `[` too. */
  const fields: number[] = []
  for (let at = 0; at < text.length; at++) {
    let exceeded: keyof JsonLimits | undefined
    switch (text.charCodeAt(at)) {
      case 34: {
        const end = endOfString(text, at)
        if (end < 0) return undefined
        let next = end + 1
        while (isJsonSpace(text.charCodeAt(next))) next++
        if (text.charCodeAt(next) === 58 && fields.length > 0) {
          const count = ++fields[fields.length - 1]!
          if (count > wideFields) exceeded = counter.addWide(count === wideFields + 1 ? count : 1)
          exceeded ??= counter.addName(hashOf(text, at + 1, end))
        }
        at = next - 1
        break
      }
      // [ and {
      case 91:
      case 123:
        if (fields.push(0) > depth) return 'depth'
        exceeded = counter.addNodes(1)
        break
      // ] and }
      case 93:
      case 125:
        fields.pop()
        break
      case 44:
        exceeded = counter.addNodes(1)
    }
    if (exceeded) return exceeded
  }
  return undefined
}

class Counter {
  fields = 0
  #nodes: number
  #wide: number
  readonly #maxNames: number
  readonly #names: Set<string | number> | undefined

  constructor({ nodes, names, wide = Number.POSITIVE_INFINITY }: JsonLimits) {
    this.#nodes = nodes
    this.#wide = wide
    this.#maxNames = names ?? 0
    this.#names = names === undefined ? undefined : new Set()
  }

  addNodes(count: number): 'nodes' | undefined {
    this.#nodes -= count
    return this.#nodes < 0 ? 'nodes' : undefined
  }

  /** The fields of one object. */
  addFields(names: readonly string[]): 'wide' | 'names' | undefined {
    this.fields += names.length
    if (names.length > wideFields && this.addWide(names.length)) return 'wide'
    if (this.#names) for (const name of names) if (this.addName(name)) return 'names'
    return undefined
  }

  addWide(count: number): 'wide' | undefined {
    this.#wide -= count
    return this.#wide < 0 ? 'wide' : undefined
  }

  /** @param name or its hash. */
  addName(name: string | number): 'names' | undefined {
    return this.#names && this.#names.add(name).size > this.#maxNames ? 'names' : undefined
  }
}

const seed = Math.floor(Math.random() * 2 ** 32)

/** FNV-1a, seeded so that a client cannot choose names with the same hash. A set of strings would take twenty times as long. */
function hashOf(text: string, from: number, to: number): number {
  let hash = seed
  for (let at = from; at < to; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  return hash
}

const isJsonSpace = (code: number) => code === 32 || code === 10 || code === 13 || code === 9

/** The index of the quote that closes the string opened at `at`, or -1. */
export function endOfString(text: string, at: number): number {
  const end = text.indexOf('"', at + 1)
  if (end < 0 || text.charCodeAt(end - 1) !== 92) return end
  // With escapes: one by one, because a string may consist of them.
  for (let next = text.indexOf('\\', at + 1); next < text.length; next++) {
    const code = text.charCodeAt(next)
    if (code === 34) return next
    if (code === 92) next++
  }
  return -1
}
