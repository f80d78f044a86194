import type { Alias, Document, Node, Pair, Scalar, Tags, YAMLMap } from 'yaml'
import { yaml } from './yaml.ts'

/** Deeper than any Kubernetes object, and far less than what overflows the stack of recursive code. */
const maxDepth = 1_000
/** What aliases may add to a document, in {@link sizeOf} units: with nested aliases a small document expands without bound. */
const maxAliased = 200_000

/** `message` quotes no scalar of the text, which may be a password, and ends with line and column. */
export class YamlError extends Error {
  override readonly name = 'YamlError'
}

export type YamlOptions = {
  /** Called with the text of each number; throws what parsing shall throw. */
  checkNumber?(source: string): void
}

/**
 * Parses YAML of a user. As kube-apiserver, it reads YAML 1.1 without dates and sexagesimal numbers, and rejects duplicate keys and keys
 * that are maps or lists. The library's own conversion is not used: it formats such keys, at a cost of n⁵ for n nested ones, and expands
 * merges without a limit. Takes linear time.
 * @throws {YamlError} for text that is not exactly one document.
 */
export function parseUntrustedYaml(text: string, options: YamlOptions = {}): unknown {
  return fromDocument(yaml().parseDocument(text, parserOptions), text, options)
}

/** The values of all documents, one after another; calling `next` parses one. @throws {YamlError} as {@link parseUntrustedYaml}. */
export function* parseUntrustedDocuments(text: string): Generator<unknown> {
  const { Composer, Parser } = yaml()
  for (const document of new Composer(parserOptions).compose(new Parser().parse(text), false, text.length))
    yield fromDocument(document, text, {})
}

const unsupportedTags = ['timestamp', 'omap', 'pairs', 'set'].map(name => `tag:yaml.org,2002:${name}`)

const parserOptions = {
  // With uniqueKeys the parser compares every pair of keys: a mapping of 60,000 takes a minute.
  uniqueKeys: false,
  prettyErrors: false,
  logLevel: 'error',
  version: '1.1',
  // `yes` and `on` are booleans and 0777 is octal, but dates stay strings and 1:30 is not a number.
  customTags: (tags: Tags): Tags =>
    tags.filter(tag => typeof tag === 'string' || (!unsupportedTags.includes(tag.tag) && tag.format !== 'TIME')),
} as const

type Anchored = { value: unknown; size: number }

function fromDocument(document: Document.Parsed | Document, text: string, options: YamlOptions): unknown {
  const [error] = document.errors
  if (error) {
    // The parser quotes the text after a colon.
    const [message = ''] = error.message.split(/:|\n/, 1)
    throw errorAt(text, error.pos[0], error.code === 'RESOURCE_EXHAUSTION' ? 'nests too deeply' : message)
  }
  return new Conversion(text, options).convert(document.contents, 0)
}

/** Converts the nodes of one document. */
class Conversion {
  readonly #text: string
  readonly #options: YamlOptions
  readonly #anchors = new Map<string, Anchored>()
  #size = 0
  #aliased = 0

  constructor(text: string, options: YamlOptions) {
    this.#text = text
    this.#options = options
  }

  convert(node: unknown, depth: number): unknown {
    const { isAlias, isMap, isScalar, isSeq } = yaml()
    if (depth > maxDepth) throw this.#error(node, `nests deeper than ${maxDepth} levels`)
    if (isAlias(node)) return this.#resolve(node)
    const before = this.#size
    let value: unknown = null
    if (isScalar(node)) value = this.#scalar(node)
    else if (isSeq(node)) value = node.items.map(item => this.convert(item, depth + 1))
    else if (isMap(node)) value = this.#map(node, depth)
    this.#size += sizeOf(value)
    const anchor = (node as Node | null)?.anchor
    if (anchor) this.#anchors.set(anchor, { value, size: this.#size - before })
    return value
  }

  #scalar({ value, source }: Scalar): unknown {
    if (typeof value === 'number' && source !== undefined) this.#options.checkNumber?.(source)
    // !!binary
    return value instanceof Uint8Array ? Buffer.from(value).toString() : value
  }

  #map(map: YAMLMap, depth: number): unknown {
    const entries = new Map<string, unknown>()
    const merged = new Map<string, unknown>()
    for (const pair of map.items) {
      const name = this.#key(pair)
      const value = this.convert(pair.value, depth + 1)
      if (name === undefined) {
        for (const [key, item] of this.#mergeSource(pair, value)) if (!merged.has(key)) merged.set(key, item)
      } else if (entries.has(name)) throw this.#error(pair.key, `duplicate key ${JSON.stringify(name)} in a mapping`)
      else entries.set(name, value)
    }
    for (const [key, value] of merged) if (!entries.has(key)) entries.set(key, value)
    return Object.fromEntries(entries)
  }

  /** Undefined for the merge key `<<`. */
  #key({ key, value }: Pair): string | undefined {
    if (!yaml().isScalar(key)) throw this.#error(key ?? value, 'a key must be a string, not a map, a list or an alias')
    if (typeof key.value === 'symbol') return undefined
    if (key.value === null) throw this.#error(key, 'a key must not be empty')
    const name = String(this.#scalar(key))
    this.#size += name.length
    return name
  }

  #mergeSource({ key }: Pair, value: unknown): [string, unknown][] {
    return (Array.isArray(value) ? value : [value]).flatMap(source => {
      if (typeof source !== 'object' || source === null || Array.isArray(source)) throw this.#error(key, 'only maps can be merged')
      return Object.entries(source)
    })
  }

  #resolve(alias: Alias): unknown {
    const found = this.#anchors.get(alias.source)
    if (!found) throw this.#error(alias, 'an alias must follow its anchor')
    this.#size += found.size
    this.#aliased += found.size
    if (this.#aliased > maxAliased) throw this.#error(alias, 'aliases expand to too many values')
    // A caller may change one of them.
    return structuredClone(found.value)
  }

  #error(node: unknown, problem: string): YamlError {
    return errorAt(this.#text, (node as Node | null)?.range?.[0] ?? 0, problem)
  }
}

const sizeOf = (value: unknown): number => 10 + (typeof value === 'string' ? value.length : 0)

function errorAt(text: string, position: number, problem: string): YamlError {
  const before = text.slice(0, position).split('\n')
  return new YamlError(`${problem} at line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}`)
}
