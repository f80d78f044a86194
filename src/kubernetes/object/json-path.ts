import { getOwn, isJsonObject } from './json.ts'

type Step =
  | { kind: 'field'; name: string }
  | { kind: 'index'; index: number }
  | { kind: 'slice'; from: number | undefined; to: number | undefined }
  | { kind: 'every' }
  | { kind: 'deep'; name: string }
  | { kind: 'filter'; path: Step[]; operator: string | undefined; value: unknown }

/**
 * Compiles the JSONPath of printer columns and selectable fields: `.spec.a`, `.a['b.c']`, `.a.b\.c`, `[0]`, `[-1]`,
 * `[1:3]`, `[*]`, `..name`, `[?(@.type=="Ready")]`, with or without braces and a leading `$`. The returned function never
 * throws: it skips what is absent.
 * @throws {SyntaxError} with the position of the error.
 */
export function compileJsonPath(path: string): (object: unknown) => unknown[] {
  let text = path.trim()
  if (text.startsWith('{') && text.endsWith('}')) text = text.slice(1, -1).trim()
  if (text.startsWith('$')) text = text.slice(1)
  const parser = new Parser(text, path)
  const steps = parser.steps()
  parser.expectEnd()
  if (steps.every(step => step.kind === 'field')) {
    // Nearly all paths: no lists of intermediate values are needed.
    const names = steps.map(step => step.name)
    return object => {
      let value: unknown = object
      for (const name of names) {
        if (!isJsonObject(value)) return []
        value = getOwn(value, name)
      }
      return value === undefined ? [] : [value]
    }
  }
  return object => walk(steps, [object])
}

function walk(steps: readonly Step[], start: unknown[]): unknown[] {
  let values = start
  for (const step of steps) {
    const next: unknown[] = []
    for (const value of values) visit(step, value, next)
    values = next
  }
  return values
}

function visit(step: Step, value: unknown, out: unknown[]): void {
  switch (step.kind) {
    case 'field': {
      const child = isJsonObject(value) ? getOwn(value, step.name) : undefined
      if (child !== undefined) out.push(child)
      return
    }
    case 'index': {
      const child = Array.isArray(value) ? value.at(step.index) : undefined
      if (child !== undefined) out.push(child)
      return
    }
    case 'slice':
      if (Array.isArray(value)) out.push(...value.slice(step.from, step.to))
      return
    case 'every':
      if (Array.isArray(value)) out.push(...value)
      else if (isJsonObject(value)) out.push(...Object.values(value))
      return
    case 'deep':
      if (isJsonObject(value)) visit({ kind: 'field', name: step.name }, value, out)
      if (typeof value === 'object' && value !== null) for (const child of Object.values(value)) visit(step, child, out)
      return
    case 'filter':
      for (const item of Array.isArray(value) ? value : []) {
        const found = walk(step.path, [item])
        if (step.operator === undefined ? found.length > 0 : found.some(one => compare(one, step.operator!, step.value))) out.push(item)
      }
  }
}

function compare(left: unknown, operator: string, right: unknown): boolean {
  if (operator === '==') return left === right
  if (operator === '!=') return left !== right
  if (!(typeof left === 'number' && typeof right === 'number') && !(typeof left === 'string' && typeof right === 'string')) return false
  switch (operator) {
    case '<':
      return left < right
    case '<=':
      return left <= right
    case '>':
      return left > right
    default:
      return left >= right
  }
}

class Parser {
  readonly #text: string
  readonly #path: string
  #at = 0

  constructor(text: string, path: string) {
    this.#text = text
    this.#path = path
  }

  /** Parses steps up to the end, or to a character that starts no step. */
  steps(): Step[] {
    const steps: Step[] = []
    for (;;) {
      if (this.#takes('..')) steps.push({ kind: 'deep', name: this.#name() })
      else if (this.#takes('.')) {
        if (this.#takes('*')) steps.push({ kind: 'every' })
        // A single dot is the object itself; `.[0]` is `[0]`.
        else if (this.#at < this.#text.length && this.#text[this.#at] !== '[') steps.push({ kind: 'field', name: this.#name() })
      } else if (this.#takes('[')) steps.push(this.#bracket())
      else return steps
    }
  }

  expectEnd(): void {
    if (this.#at < this.#text.length) this.#reject(`expected "." or "["`)
  }

  #bracket(): Step {
    let step: Step
    if (this.#takes('*')) step = { kind: 'every' }
    else if (this.#takes('?(')) {
      step = this.#filter()
      this.#expect(')')
    } else if (this.#text[this.#at] === "'" || this.#text[this.#at] === '"') step = { kind: 'field', name: this.#quoted() }
    else {
      const match = this.#match(/(-?\d{1,9})?(?:(:)(-?\d{1,9})?)?/y)
      if (match[0] === '') this.#reject('expected an index, a quoted name, "*" or "?("')
      const [, from, colon, to] = match
      step =
        colon === undefined
          ? { kind: 'index', index: Number(from) }
          : { kind: 'slice', from: from === undefined ? undefined : Number(from), to: to === undefined ? undefined : Number(to) }
    }
    this.#expect(']')
    return step
  }

  #filter(): Step {
    this.#match(/\s*/y)
    this.#expect('@')
    const path = this.steps()
    const [, operator] = this.#match(/\s*(==|!=|<=|>=|<|>)?\s*/y)
    if (operator === undefined) return { kind: 'filter', path, operator, value: undefined }
    const isQuoted = this.#text[this.#at] === "'" || this.#text[this.#at] === '"'
    const value = isQuoted ? this.#quoted() : this.#literal()
    this.#match(/\s*/y)
    return { kind: 'filter', path, operator, value }
  }

  #literal(): unknown {
    const [text] = this.#match(/true|false|null|-?\d+(\.\d+)?([eE][-+]?\d+)?/y)
    if (text === '') this.#reject('expected a quoted string, a number, true, false or null')
    return JSON.parse(text!)
  }

  #quoted(): string {
    const quote = this.#text[this.#at++]
    let name = ''
    for (; this.#at < this.#text.length; this.#at++) {
      const character = this.#text[this.#at]!
      if (character === quote) {
        this.#at++
        return name
      }
      name += character === '\\' ? (this.#text[++this.#at] ?? '') : character
    }
    return this.#reject(`expected a closing ${quote}`)
  }

  #name(): string {
    const [text] = this.#match(/(?:\\.|[^\\.[\](){}\s=!<>@?*'"])+/y)
    if (text === '') this.#reject('expected a name')
    return text!.replace(/\\(.)/g, '$1')
  }

  #takes(token: string): boolean {
    if (!this.#text.startsWith(token, this.#at)) return false
    this.#at += token.length
    return true
  }

  #expect(token: string): void {
    if (!this.#takes(token)) this.#reject(`expected ${JSON.stringify(token)}`)
  }

  #match(pattern: RegExp): RegExpExecArray | [''] {
    pattern.lastIndex = this.#at
    const match = pattern.exec(this.#text)
    if (match === null) return ['']
    this.#at += match[0].length
    return match
  }

  #reject(why: string): never {
    const got = this.#at < this.#text.length ? JSON.stringify(this.#text.slice(this.#at, this.#at + 20)) : 'the end'
    throw new SyntaxError(`json path ${JSON.stringify(this.#path)}: ${why}, got ${got}`)
  }
}
