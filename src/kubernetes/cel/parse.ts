import { type ComprehensionMacro, type Expr, node } from './ast.ts'
import { lex, type Token } from './lex.ts'
import { SyntaxIssue } from './source-error.ts'

/** As in cel-go, and well below the depth at which walking the tree overflows the stack. */
const maxDepth = 250

const reserved = new Set('as break const continue else for function if import let loop package namespace return var void while'.split(' '))

/**
 * Parses CEL with the macros that Kubernetes supports; `has`, `all`, `map` and the like become nodes of their own.
 * @throws {SyntaxIssue} at the first error.
 */
export function parse(source: string): Expr {
  const parser = new Parser(lex(source))
  return parser.parse()
}

class Parser {
  readonly #tokens: Token[]
  #index = 0
  #depth = 0

  constructor(tokens: Token[]) {
    this.#tokens = tokens
  }

  parse(): Expr {
    const expr = this.#expression()
    if (this.#token.kind !== 'end') throw this.#unexpected('<EOF>')
    return expr
  }

  get #token(): Token {
    return this.#tokens[this.#index]!
  }

  #next(): Token {
    return this.#tokens[this.#index++]!
  }

  #is(symbol: string): boolean {
    const { kind, text } = this.#token
    return kind === 'symbol' && text === symbol
  }

  #accept(symbol: string): Token | undefined {
    return this.#is(symbol) ? this.#next() : undefined
  }

  #expect(symbol: string): Token {
    if (!this.#is(symbol)) throw this.#unexpected(`'${symbol}'`)
    return this.#next()
  }

  #unexpected(wanted: string): SyntaxIssue {
    return new SyntaxIssue(this.#token.at, `Syntax error: mismatched input '${this.#token.text}' expecting ${wanted}`)
  }

  #make(...parts: Parameters<typeof node>): Expr {
    const created = node(...parts)
    if (created.depth > maxDepth) throw new SyntaxIssue(created.at, `expression recursion limit exceeded: ${maxDepth}`)
    return created
  }

  #call(at: number, name: string, ...args: Expr[]): Expr {
    return this.#make({ op: 'call', at, name, target: undefined, args }, ...args)
  }

  #expression(): Expr {
    if (++this.#depth > maxDepth) throw new SyntaxIssue(this.#token.at, `expression recursion limit exceeded: ${maxDepth}`)
    const condition = this.#logical('||', () => this.#logical('&&', () => this.#relation()))
    const question = this.#accept('?')
    let result = condition
    if (question) {
      const then = this.#logical('||', () => this.#logical('&&', () => this.#relation()))
      this.#expect(':')
      result = this.#call(question.at, '_?_:_', condition, then, this.#expression())
    }
    this.#depth--
    return result
  }

  /** Long chains become balanced trees, so that they do not count as nesting. */
  #logical(operator: '||' | '&&', operand: () => Expr): Expr {
    const terms = [operand()]
    const places: number[] = []
    for (let token = this.#accept(operator); token; token = this.#accept(operator)) {
      places.push(token.at)
      terms.push(operand())
    }
    const balance = (from: number, to: number): Expr => {
      if (from === to) return terms[from]!
      const middle = (from + to) >> 1
      return this.#call(places[middle]!, `_${operator}_`, balance(from, middle), balance(middle + 1, to))
    }
    return balance(0, terms.length - 1)
  }

  #relation(): Expr {
    let left = this.#sum()
    for (;;) {
      const { kind, text, at } = this.#token
      const isIn = kind === 'ident' && text === 'in'
      if (!isIn && !(kind === 'symbol' && ['<', '<=', '>', '>=', '==', '!='].includes(text))) return left
      this.#next()
      left = this.#call(at, isIn ? '@in' : `_${text}_`, left, this.#sum())
    }
  }

  #sum(): Expr {
    let left = this.#product()
    for (;;) {
      const token = this.#accept('+') ?? this.#accept('-')
      if (!token) return left
      left = this.#call(token.at, `_${token.text}_`, left, this.#product())
    }
  }

  #product(): Expr {
    let left = this.#unary()
    for (;;) {
      const token = this.#accept('*') ?? this.#accept('/') ?? this.#accept('%')
      if (!token) return left
      left = this.#call(token.at, `_${token.text}_`, left, this.#unary())
    }
  }

  #unary(): Expr {
    const { at } = this.#token
    for (const [symbol, name] of [
      ['!', '!_'],
      ['-', '-_'],
    ] as const) {
      let count = 0
      while (this.#accept(symbol)) count++
      if (count === 0) continue
      const literal = this.#token
      // -9223372036854775808 is an int although 9223372036854775808 is not.
      if (symbol === '-' && literal.kind === 'value' && (typeof literal.value === 'bigint' || typeof literal.value === 'number')) {
        const isNegative = count % 2 === 1
        const value = isNegative ? -literal.value : literal.value
        if (isInt(value)) {
          this.#next()
          return this.#members(this.#make({ op: 'const', at, value }))
        }
      }
      const operand = this.#members(this.#primary())
      return count % 2 === 0 ? operand : this.#call(at, name, operand)
    }
    return this.#members(this.#primary())
  }

  #members(start: Expr): Expr {
    let left = start
    for (;;) {
      const dot = this.#accept('.')
      if (dot) {
        const isOptional = this.#accept('?') !== undefined
        const name = this.#next()
        if (name.kind !== 'ident' || name.text === 'in') {
          this.#index--
          throw this.#unexpected('IDENTIFIER')
        }
        const opening = isOptional ? undefined : this.#accept('(')
        left = opening
          ? this.#memberCall(opening.at, name.text, left, this.#list(')'))
          : this.#make({ op: 'select', at: dot.at, operand: left, field: name.text, isTest: false, isOptional }, left)
        continue
      }
      const bracket = this.#accept('[')
      if (!bracket) return left
      const isOptional = this.#accept('?') !== undefined
      const index = this.#expression()
      this.#expect(']')
      left = this.#call(bracket.at, isOptional ? '_[?_]' : '_[_]', left, index)
    }
  }

  #primary(): Expr {
    const token = this.#next()
    const { at } = token
    if (token.kind === 'value') {
      if (typeof token.value === 'bigint' && !isInt(token.value)) throw new SyntaxIssue(at, 'invalid int literal')
      return this.#make({ op: 'const', at, value: token.value! })
    }
    if (token.kind === 'ident' && token.text !== 'in') return this.#identifier(token, '')
    if (token.kind === 'symbol') {
      switch (token.text) {
        case '(': {
          const inner = this.#expression()
          this.#expect(')')
          return inner
        }
        case '.': {
          const name = this.#next()
          if (name.kind === 'ident' && name.text !== 'in') return this.#identifier(name, '.')
          break
        }
        case '[':
          return this.#listLiteral(at)
        case '{':
          return this.#mapLiteral(at)
      }
    }
    this.#index--
    throw this.#unexpected(
      "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}",
    )
  }

  #identifier({ text, at }: Token, lead: string): Expr {
    if (lead === '') {
      if (text === 'true' || text === 'false') return this.#make({ op: 'const', at, value: text === 'true' })
      if (text === 'null') return this.#make({ op: 'const', at, value: null })
      if (reserved.has(text)) throw new SyntaxIssue(at, `reserved identifier: ${text}`)
    }
    const opening = this.#accept('(')
    if (!opening) return this.#make({ op: 'ident', at, name: text })
    const args = this.#list(')')
    if (text !== 'has') return this.#make({ op: 'call', at: opening.at, name: text, target: undefined, args }, ...args)
    const [field, ...others] = args
    if (field?.op !== 'select' || others.length > 0 || field.isOptional) {
      throw new SyntaxIssue(field?.at ?? opening.at, 'invalid argument to has() macro')
    }
    return this.#make({ ...field, at: opening.at, isTest: true }, field.operand)
  }

  /** Expressions up to and including `closing`. */
  #list(closing: string): Expr[] {
    const items: Expr[] = []
    while (!this.#is(closing)) {
      items.push(this.#expression())
      if (!this.#accept(',')) break
    }
    this.#expect(closing)
    return items
  }

  #listLiteral(at: number): Expr {
    const items: Expr[] = []
    const optional = new Set<number>()
    while (!this.#is(']')) {
      if (this.#accept('?')) optional.add(items.length)
      items.push(this.#expression())
      if (!this.#accept(',')) break
    }
    this.#expect(']')
    return this.#make({ op: 'list', at, items, optional }, ...items)
  }

  #mapLiteral(at: number): Expr {
    const entries: { key: Expr; value: Expr; isOptional: boolean }[] = []
    while (!this.#is('}')) {
      const isOptional = this.#accept('?') !== undefined
      const key = this.#expression()
      this.#expect(':')
      entries.push({ key, value: this.#expression(), isOptional })
      if (!this.#accept(',')) break
    }
    this.#expect('}')
    return this.#make({ op: 'map', at, entries }, ...entries.flatMap(({ key, value }) => [key, value]))
  }

  #memberCall(at: number, name: string, target: Expr, args: Expr[]): Expr {
    if ((name === 'optMap' || name === 'optFlatMap') && args.length === 2) {
      const body = args[1]!
      return this.#make({ op: 'optMap', at, isFlat: name === 'optFlatMap', target, name: variable(args[0]!), body }, target, body)
    }
    const found = comprehensionMacros.get(name)?.find(macro => macro.args === args.length)
    if (!found) return this.#make({ op: 'call', at, name, target, args }, target, ...args)
    const names = args.slice(0, found.variables).map(variable)
    if (names.length === 2 && names[0] === names[1]) {
      throw new SyntaxIssue(args[1]!.at, `duplicate variable name: ${names[1]}`)
    }
    const body = args.slice(found.variables)
    return this.#make({ op: 'comprehension', at, macro: found.macro, range: target, names, body }, target, ...body)
  }
}

function isInt(value: bigint | number): boolean {
  return typeof value === 'number' || (value < 2n ** 63n && value >= -(2n ** 63n))
}

function variable(expr: Expr): string {
  if (expr.op !== 'ident') throw new SyntaxIssue(expr.at, 'argument must be a simple name')
  return expr.name
}

const quantifier = (macro: ComprehensionMacro) => [0, 1].map(extra => ({ macro, args: 2 + extra, variables: 1 + extra }))
const transform = (macro: ComprehensionMacro) => [0, 1].map(extra => ({ macro, args: 3 + extra, variables: 2 }))

/** The macro of a method name, by its number of arguments, and how many of these are variables. */
const comprehensionMacros: ReadonlyMap<string, readonly { macro: ComprehensionMacro; args: number; variables: number }[]> = new Map([
  ['all', quantifier('all')],
  ['exists', quantifier('exists')],
  ['exists_one', quantifier('exists_one')],
  ['existsOne', [{ macro: 'exists_one', args: 3, variables: 2 }]],
  ['map', [2, 3].map(args => ({ macro: 'map' as const, args, variables: 1 }))],
  ['filter', [{ macro: 'filter', args: 2, variables: 1 }]],
  ['sortBy', [{ macro: 'sortBy', args: 2, variables: 1 }]],
  ['transformList', transform('transformList')],
  ['transformMap', transform('transformMap')],
  ['transformMapEntry', transform('transformMapEntry')],
])
