import { SyntaxIssue } from './source-error.ts'
import { Uint, type Value } from './values.ts'

export type Token = {
  readonly kind: 'ident' | 'value' | 'symbol' | 'end'
  /** The identifier or symbol. */
  readonly text: string
  readonly value?: Value
  readonly at: number
}

const symbols = ['&&', '||', '<=', '>=', '==', '!=', ...'.,[](){}?:+-*/%<>!']
const number = /0x([0-9a-fA-F]+)([uU]?)|([0-9]+(?:\.[0-9]+)?[eE][+-]?[0-9]+|[0-9]*\.[0-9]+)|([0-9]+)([uU]?)/y
const identifier = /[_a-zA-Z][_a-zA-Z0-9]*/y
const space = /(?:[\t\n\f\r ]|\/\/[^\n]*)+/y
const quote = /([rR]?[bB]?|[bB][rR])("""|'''|"|')/y
const maxTokens = 100_000
const maxInt = 2n ** 63n
const maxUint = 2n ** 64n

/**
 * Splits CEL source into tokens, the last of kind `end`.
 * @throws {SyntaxIssue}
 */
export function lex(source: string): Token[] {
  const tokens: Token[] = []
  let at = 0
  const take = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at
    return pattern.exec(source)
  }
  for (;;) {
    at += take(space)?.[0].length ?? 0
    if (at >= source.length) break
    if (tokens.length >= maxTokens) throw new SyntaxIssue(at, `expression code point size exceeds limit: ${maxTokens} tokens`)
    const quoted = take(quote)
    if (quoted) {
      const { value, end } = readString(source, at, quoted)
      tokens.push({ kind: 'value', text: source.slice(at, end), value, at })
      at = end
      continue
    }
    const word = take(identifier)
    if (word) {
      tokens.push({ kind: 'ident', text: word[0], at })
      at += word[0].length
      continue
    }
    const digits = take(number)
    if (digits) {
      tokens.push({ kind: 'value', text: digits[0], value: readNumber(digits, at), at })
      at += digits[0].length
      continue
    }
    const symbol = symbols.find(candidate => source.startsWith(candidate, at))
    if (!symbol) throw new SyntaxIssue(at, `Syntax error: token recognition error at: '${[...source.slice(at, at + 2)][0]}'`)
    tokens.push({ kind: 'symbol', text: symbol, at })
    at += symbol.length
  }
  tokens.push({ kind: 'end', text: '<EOF>', at: source.length })
  return tokens
}

function readNumber(match: RegExpExecArray, at: number): Value {
  const [, hex, hexUnsigned, double, digits, unsigned] = match
  if (double !== undefined) {
    if (!Number.isFinite(Number(double))) throw new SyntaxIssue(at, 'invalid double literal')
    return Number(double)
  }
  const value = BigInt(hex === undefined ? digits! : `0x${hex}`)
  if (hexUnsigned || unsigned) {
    if (value >= maxUint) throw new SyntaxIssue(at, 'invalid uint literal')
    return new Uint(value)
  }
  // 2^63 is accepted for a preceding minus sign; the parser checks it again.
  if (value > maxInt) throw new SyntaxIssue(at, 'invalid int literal')
  return value
}

function readString(source: string, at: number, [opening, prefix, mark]: RegExpExecArray): { value: Value; end: number } {
  const isRaw = /r/i.test(prefix!)
  const isBytes = /b/i.test(prefix!)
  let text = ''
  let bytes: number[] = []
  const add = (part: string) => {
    if (isBytes) bytes = bytes.concat([...new TextEncoder().encode(part)])
    else text += part
  }
  let index = at + opening.length
  let plainFrom = index
  for (;;) {
    if (index >= source.length || (mark!.length === 1 && (source[index] === '\n' || source[index] === '\r'))) {
      throw new SyntaxIssue(at, `Syntax error: token recognition error at: '${source.slice(at, at + 20)}'`)
    }
    if (source.startsWith(mark!, index)) break
    if (source[index] !== '\\') {
      index++
      continue
    }
    if (isRaw) {
      index += 2
      continue
    }
    if (index > plainFrom) add(source.slice(plainFrom, index))
    const escaped = readEscape(source, index, isBytes)
    if (typeof escaped.value === 'number') bytes.push(escaped.value)
    else add(escaped.value)
    index += escaped.length
    plainFrom = index
  }
  if (index > plainFrom) add(source.slice(plainFrom, index))
  return { value: isBytes ? Uint8Array.from(bytes) : text, end: index + mark!.length }
}

const simpleEscapes: Record<string, string> = {
  a: '\x07',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
  '\\': '\\',
  "'": "'",
  '"': '"',
  '`': '`',
  '?': '?',
}
const codeEscape = /\\(?:[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2}))/y

/** In bytes, `\x` and octal escapes are bytes; in strings they are code points. */
function readEscape(source: string, at: number, isBytes: boolean): { value: string | number; length: number } {
  const simple = simpleEscapes[source[at + 1] ?? '']
  if (simple !== undefined) return { value: simple, length: 2 }
  codeEscape.lastIndex = at
  const match = codeEscape.exec(source)
  const [whole, hex, short, long, octal] = match ?? []
  if (!whole) throw new SyntaxIssue(at, `Syntax error: token recognition error at: '${source.slice(at, at + 2)}'`)
  const code = octal === undefined ? Number.parseInt(hex ?? short ?? long!, 16) : Number.parseInt(octal, 8)
  if (isBytes && (hex !== undefined || octal !== undefined)) return { value: code, length: whole.length }
  if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) throw new SyntaxIssue(at, 'invalid unicode code point')
  return { value: String.fromCodePoint(code), length: whole.length }
}
