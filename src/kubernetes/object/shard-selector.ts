import { fnv1a64 } from './fnv-1a.ts'
import { badRequest, type StatusError } from './status-error.ts'

/** The field whose hash assigns objects to shards. */
export type ShardField = 'uid' | 'namespace'

/** A range of hashes that includes `start` and excludes `end`, in the notation of the request, such as `0x8000000000000000`. */
export type ShardRange = { readonly start: string; readonly end: string }

/** Selects a part of a collection: the objects whose hash is in one of `ranges` (KEP-5866). */
export type ShardSelector = { readonly field: ShardField; readonly ranges: readonly ShardRange[] }

type Token = { readonly kind: 'name' | 'string' | 'number' | 'symbol' | 'end'; readonly text: string }

const fieldPaths: Readonly<Record<string, ShardField>> = { 'object.metadata.uid': 'uid', 'object.metadata.namespace': 'namespace' }
// Far above the needs of any client: a shard has a few ranges.
const maxRanges = 1_024
const maxDepth = 32

/**
 * Parses `shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000') || shardRange(…)`, a small subset of
 * CEL. All ranges must use the same field.
 * @throws {StatusError} BadRequest, in Kubernetes' words where it has them.
 */
export function parseShardSelector(text: string): ShardSelector {
  if (text.trim() === '') throw invalid('empty shard selector is not allowed; omit the parameter for unfiltered lists')
  const parser = new Parser(scan(text))
  const ranges = parser.read()
  const [first] = ranges
  const other = ranges.find(range => range.path !== first!.path)
  if (other) {
    throw invalid(`all shard ranges must use the same field, got ${JSON.stringify(first!.path)} and ${JSON.stringify(other.path)}`)
  }
  return { field: fieldPaths[first!.path]!, ranges: ranges.map(({ start, end }) => ({ start, end })) }
}

/** Formats a selector in the syntax of {@link parseShardSelector}, as lists return it. */
export function formatShardSelector({ field, ranges }: ShardSelector): string {
  return ranges.map(({ start, end }) => `shardRange(object.metadata.${field}, '${start}', '${end}')`).join(' || ')
}

/** Returns a predicate for whether the hash of a value is in the ranges of a selector. */
export function shardTest({ ranges }: ShardSelector): (value: string) => boolean {
  const bounds = ranges.map(({ start, end }) => [readHex(start), readHex(end)] as const)
  return value => {
    const [high, low] = fnv1a64(value)
    return bounds.some(([start, end]) => !isBelow(high, low, start) && isBelow(high, low, end))
  }
}

/**
 * Like {@link shardTest}, for a reader that has stored the upper half of the hash (`shardHashHigh`): the value is hashed again only at a boundary
 * of a range.
 */
export function shardTestOfHash({ ranges }: ShardSelector): (high: number, value: string) => boolean {
  const bounds = ranges.map(({ start, end }) => [readHex(start), readHex(end)] as const)
  return (high, value) => {
    let low: number | undefined
    for (const [start, end] of bounds) {
      if (high < start[0] || high > end[0]) continue
      if (high > start[0] && high < end[0]) return true
      low ??= fnv1a64(value)[1]
      if (!isBelow(high, low, start) && isBelow(high, low, end)) return true
    }
    return false
  }
}

/** The upper 32 bits of the 64-bit FNV-1a hash of a string in UTF-8. */
export function shardHashHigh(value: string): number {
  return fnv1a64(value)[0]
}

/** The 64-bit FNV-1a hash of a string in UTF-8, as 16 hexadecimal digits. */
export function shardHash(value: string): string {
  const [high, low] = fnv1a64(value)
  return high.toString(16).padStart(8, '0') + low.toString(16).padStart(8, '0')
}

type Halves = ReturnType<typeof fnv1a64>

/** 16 digits, or 2^64, whose upper half exceeds 32 bits by one. */
function readHex(text: string): Halves {
  const digits = text.slice(2)
  return [Number.parseInt(digits.slice(0, -8), 16), Number.parseInt(digits.slice(-8), 16)]
}

function isBelow(high: number, low: number, [boundHigh, boundLow]: Halves): boolean {
  return high < boundHigh || (high === boundHigh && low < boundLow)
}

type ReadRange = ShardRange & { readonly path: string }
/** An argument or operand; `kind` is Kubernetes' number for it in messages. */
type Part =
  | { readonly is: 'path'; readonly path: string; readonly kind: 4 | 7 }
  | { readonly is: 'literal'; readonly value: string; readonly type: 'string' | 'int64'; readonly kind: 5 }
  | { readonly is: 'call'; readonly name: string; readonly parts: readonly Part[]; readonly kind: 1 }

class Parser {
  readonly #tokens: readonly Token[]
  #at = 0

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens
  }

  read(): ReadRange[] {
    const ranges = this.#readOr(0)
    if (this.#peek().kind !== 'end') throw this.#unexpected()
    return ranges
  }

  #readOr(depth: number): ReadRange[] {
    const ranges = this.#readOperand(depth)
    while (this.#takes('||')) ranges.push(...this.#readOperand(depth))
    if (ranges.length > maxRanges) throw invalid(`at most ${maxRanges} ranges are allowed`)
    const { kind, text } = this.#peek()
    if (kind === 'symbol' && operators.has(text)) throw invalid(`unsupported function "_${text}_"; only shardRange() and || are allowed`)
    return ranges
  }

  #readOperand(depth: number): ReadRange[] {
    if (depth > maxDepth) throw invalid(`parentheses must not nest deeper than ${maxDepth} levels`)
    if (this.#takes('(')) {
      const ranges = this.#readOr(depth + 1)
      this.#expect(')')
      return ranges
    }
    const part = this.#readPart(depth)
    if (part.is !== 'call') throw invalid(`unexpected expression kind ${part.kind}; expected shardRange() call or || operator`)
    if (part.name !== 'shardRange') {
      throw invalid(`unsupported function ${JSON.stringify(part.name)}; only shardRange() and || are allowed`)
    }
    return [rangeOf(part.parts)]
  }

  #readPart(depth: number): Part {
    if (depth > maxDepth) throw invalid(`calls must not nest deeper than ${maxDepth} levels`)
    const { kind, text } = this.#peek()
    if (kind === 'string' || kind === 'number') {
      this.#at++
      return { is: 'literal', value: text, type: kind === 'string' ? 'string' : 'int64', kind: 5 }
    }
    if (kind !== 'name') throw this.#unexpected()
    this.#at++
    let path = text
    while (this.#takes('.')) {
      if (this.#peek().kind !== 'name') throw this.#unexpected()
      path += `.${this.#peek().text}`
      this.#at++
    }
    if (!this.#takes('(')) return { is: 'path', path, kind: path.includes('.') ? 7 : 4 }
    const parts: Part[] = []
    while (!this.#takes(')')) {
      if (parts.length > 0) this.#expect(',')
      parts.push(this.#readPart(depth + 1))
    }
    return { is: 'call', name: path, parts, kind: 1 }
  }

  #peek(): Token {
    return this.#tokens[this.#at]!
  }

  #takes(symbol: string): boolean {
    const { kind, text } = this.#peek()
    const isIt = kind === 'symbol' && text === symbol
    if (isIt) this.#at++
    return isIt
  }

  #expect(symbol: string): void {
    if (!this.#takes(symbol)) throw this.#unexpected()
  }

  #unexpected(): StatusError {
    const { kind, text } = this.#peek()
    return invalid(`CEL parse error: unexpected ${kind === 'end' ? 'end of the expression' : JSON.stringify(text.slice(0, 40))}`)
  }
}

const operators = new Set(['&&', '<', '<=', '>', '>=', '==', '!=', '+', '-', '*', '/', '%'])

function rangeOf(parts: readonly Part[]): ReadRange {
  if (parts.length !== 3) throw invalid(`shardRange() requires exactly 3 arguments, got ${parts.length}`)
  const [field, first, last] = parts as [Part, Part, Part]
  if (field.is !== 'path') {
    throw invalid(`shardRange() first argument: expected field path (e.g. object.metadata.uid), got expression kind ${field.kind}`)
  }
  if (!Object.hasOwn(fieldPaths, field.path)) {
    throw invalid(`unsupported field path ${JSON.stringify(field.path)}; supported: ${Object.keys(fieldPaths).join(', ')}`)
  }
  const start = hexOf(first, 'hexStart')
  const end = hexOf(last, 'hexEnd')
  if (start.length > end.length || (start.length === end.length && start >= end)) {
    throw invalid(`shard range start ${start} must be less than end ${end}`)
  }
  return { path: field.path, start, end }
}

function hexOf(part: Part, name: string): string {
  if (part.is !== 'literal') throw invalid(`${name} must be a string literal (e.g. '0xff'), got expression kind ${part.kind}`)
  if (part.type !== 'string') throw invalid(`${name} must be a string literal, got ${part.type}`)
  const { value } = part
  if (!value.startsWith('0x')) throw invalid(`${name} must have '0x' prefix, got ${JSON.stringify(value)}`)
  const digits = value.slice(2)
  if (digits === '') throw invalid(`${name}: hex value is required after '0x'`)
  if (digits.length > 17)
    throw invalid(`${name}: hex value too long (${digits.length} chars, max 17): ${JSON.stringify(digits.slice(0, 40))}`)
  const [illegal] = /[^0-9a-f]/u.exec(digits) ?? []
  if (illegal !== undefined) throw invalid(`${name}: invalid hex character ${JSON.stringify(illegal)} in ${JSON.stringify(value)}`)
  if (digits.length === 17 && value !== '0x10000000000000000') {
    throw invalid(`${name}: 17-digit hex value must be '0x10000000000000000' (2^64), got ${JSON.stringify(value)}`)
  }
  if (digits.length < 16) {
    const padded = JSON.stringify(`0x${digits.padStart(16, '0')}`)
    throw invalid(`${name} must be a 0x-prefixed 16-digit hex value, got ${JSON.stringify(value)} (did you mean ${padded}?)`)
  }
  return value
}

const tokenPattern =
  /\s*(?:(?<name>[A-Za-z_]\w*)|(?<string>'[^'\\\n]*'|"[^"\\\n]*")|(?<number>\d+)|(?<symbol>\|\||&&|[<>=!]=|[().,<>+\-*/%]))/y

function scan(text: string): Token[] {
  const tokens: Token[] = []
  const pattern = new RegExp(tokenPattern)
  const source = text.trimEnd()
  while (pattern.lastIndex < source.length) {
    const at = pattern.lastIndex
    const groups = pattern.exec(source)?.groups
    if (!groups) throw invalid(`CEL parse error: cannot read ${JSON.stringify(source.slice(at, at + 40))}`)
    const { name, string, number, symbol } = groups
    if (name !== undefined) tokens.push({ kind: 'name', text: name })
    else if (string !== undefined) tokens.push({ kind: 'string', text: string.slice(1, -1) })
    else if (number !== undefined) tokens.push({ kind: 'number', text: number })
    else tokens.push({ kind: 'symbol', text: symbol! })
  }
  tokens.push({ kind: 'end', text: '' })
  return tokens
}

function invalid(why: string): StatusError {
  return badRequest(`invalid shard selector: ${why}`)
}
