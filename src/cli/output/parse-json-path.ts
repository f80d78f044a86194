/** A part of a JSONPath template of kubectl; see `json-path.ts` for what each selects. */
export type PathNode =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'field'; readonly name: string }
  | { readonly kind: 'slice'; readonly from?: number | undefined; readonly to?: number | undefined; readonly step: number }
  | { readonly kind: 'index'; readonly index: number }
  | { readonly kind: 'wildcard' | 'recursive' }
  | { readonly kind: 'union'; readonly paths: readonly Path[] }
  | { readonly kind: 'filter'; readonly left: Path; readonly operator: FilterOperator | 'exists'; readonly right: Path }
  | { readonly kind: 'value'; readonly value: string | number | boolean }
  | { readonly kind: 'range' | 'end' }
/** Each node selects from what the one before has selected. */
export type Path = readonly PathNode[]

const operators = ['==', '!=', '<=', '>=', '<', '>'] as const
export type FilterOperator = (typeof operators)[number]

/** The template is not valid. */
export class JsonPathError extends Error {
  override name = 'JsonPathError'
}

/** How deep filters and unions may be nested. */
const maxDepth = 32

/** Text and expressions in braces, one after another. @throws {JsonPathError} */
export function parseTemplate(template: string): Path[] {
  const parts: Path[] = []
  for (let at = 0; at < template.length; ) {
    const open = template.indexOf('{', at)
    if (open !== at) parts.push([{ kind: 'text', text: template.slice(at, open < 0 ? undefined : open) }])
    if (open < 0) break
    const close = endOf(template, open + 1, '}')
    if (close < 0) throw new JsonPathError(`{ at position ${open + 1} is not closed`)
    parts.push(parsePath(template.slice(open + 1, close), 0))
    at = close + 1
  }
  return parts
}

/** A path as `--sort-by` takes it: `{.a.b}`, `.a.b` or `a.b`. @throws {JsonPathError} */
export function parseFieldPath(text: string): Path {
  const inner = /^\{(.*)\}$/s.exec(text)?.[1] ?? text
  const path = parsePath(/^[.[@$]/.test(inner) ? inner : `.${inner}`, 0)
  if (path.length === 0 || path.some(({ kind }) => kind === 'range' || kind === 'end' || kind === 'value'))
    throw new JsonPathError(`${JSON.stringify(text)} is not the path of a field, such as .metadata.name`)
  return path
}

/** The position of `closing` that is not in quotes or brackets; -1 if there is none. */
function endOf(text: string, from: number, closing: string): number {
  const brackets = { '[': ']', '(': ')' } as Record<string, string>
  const open: string[] = []
  for (let at = from; at < text.length; at++) {
    const char = text[at]!
    if (char === '\\') at++
    else if (char === '"' || char === "'") {
      do at++
      while (at < text.length && text[at] !== char && (text[at] !== '\\' || ++at))
    } else if (open.length === 0 && char === closing) return at
    else if (brackets[char]) open.push(brackets[char])
    else if (char === open.at(-1)) open.pop()
  }
  return -1
}

function parsePath(text: string, depth: number): Path {
  if (depth > maxDepth) throw new JsonPathError(`filters and unions are nested deeper than ${maxDepth}`)
  const nodes: PathNode[] = []
  let at = 0
  const take = (pattern: RegExp): string | undefined => {
    pattern.lastIndex = at
    const found = pattern.exec(text)?.[0]
    at += found?.length ?? 0
    return found
  }
  while (at < text.length) {
    if (take(/[\s@$]+/y) !== undefined) continue
    const char = text[at]!
    if (char === '.') {
      at++
      if (text[at] === '.') nodes.push({ kind: 'recursive' })
      else if (text[at] !== '[' && at < text.length) nodes.push(...fieldOf(take(/(\\.|[^\s.[\]{}(),=<>!?@$"'|+:;`~^&])+/y), text))
    } else if (char === '[') {
      const end = endOf(text, at + 1, ']')
      if (end < 0) throw new JsonPathError(`[ in ${JSON.stringify(text)} is not closed`)
      nodes.push(parseBrackets(text.slice(at + 1, end), depth))
      at = end + 1
    } else if (char === '"' || char === "'") nodes.push({ kind: 'value', value: unquote(take(/"(\\.|[^"\\])*"|'(\\.|[^'\\])*'/sy), text) })
    else if (/[-+\d]/.test(char)) nodes.push({ kind: 'value', value: numberOf(take(/[-+\w.]+/y)!) })
    else if (char === '*') {
      at++
      nodes.push({ kind: 'wildcard' })
    } else {
      const word = take(/\w+/y)
      if (word === 'range' || word === 'end') nodes.push({ kind: word })
      else if (word === 'true' || word === 'false') nodes.push({ kind: 'value', value: word === 'true' })
      // After `..`, the name of a field.
      else if (word !== undefined && nodes.at(-1)?.kind === 'recursive') nodes.push({ kind: 'field', name: word })
      else throw new JsonPathError(`unexpected ${JSON.stringify(word ?? char)} in ${JSON.stringify(text)}`)
    }
  }
  return nodes
}

function fieldOf(name: string | undefined, text: string): PathNode[] {
  if (name === undefined) throw new JsonPathError(`the name of a field is missing in ${JSON.stringify(text)}`)
  return [name === '*' ? { kind: 'wildcard' } : { kind: 'field', name: name.replace(/\\(.)/g, '$1') }]
}

function unquote(quoted: string | undefined, text: string): string {
  if (quoted === undefined) throw new JsonPathError(`a quote in ${JSON.stringify(text)} is not closed`)
  const escapes: Record<string, string> = { n: '\n', t: '\t', r: '\r' }
  return quoted.slice(1, -1).replace(/\\(.)/gs, (_, char: string) => escapes[char] ?? char)
}

function numberOf(text: string): number {
  const value = Number(text)
  if (Number.isNaN(value)) throw new JsonPathError(`${JSON.stringify(text)} is not a number`)
  return value
}

function parseBrackets(text: string, depth: number): PathNode {
  const inner = text.trim()
  if (inner === '*') return { kind: 'wildcard' }
  const filter = /^\?\((.*)\)$/s.exec(inner)?.[1]
  if (filter !== undefined) return parseFilter(filter, depth)
  const elements = splitAt(inner, ',')
  if (elements.length > 1) return { kind: 'union', paths: elements.map(element => [parseBrackets(element, depth + 1)]) }
  if (/^".*"$/s.test(inner)) return { kind: 'field', name: unquote(inner, inner) }
  // As in kubectl, a dot in single quotes divides, unless it is escaped.
  const dotted = /^'(.*)'$/s.exec(inner)?.[1]
  if (dotted !== undefined) return { kind: 'union', paths: [dottedPath(dotted)] }
  if (/^-?\d+$/.test(inner)) return { kind: 'index', index: Number(inner) }
  const [, from, to, step] = /^(-?\d+)?:(-?\d+)?(?::(-?\d+)?)?$/.exec(inner) ?? []
  if (inner.includes(':') && /^[-\d:]+$/.test(inner)) {
    const optional = (digits: string | undefined) => (digits === undefined ? undefined : Number(digits))
    if (optional(step) !== undefined && Number(step) <= 0) throw new JsonPathError(`the step of [${inner}] must be > 0`)
    return { kind: 'slice', from: optional(from), to: optional(to), step: Number(step ?? 1) }
  }
  throw new JsonPathError(`[${inner}] is not an index, a slice, a quoted name, * or a filter ?(@.name=="value")`)
}

function parseFilter(text: string, depth: number): PathNode {
  for (let at = 0; at < text.length; at++) {
    const operator = operators.find(each => text.startsWith(each, at))
    if (operator === undefined) {
      // Skips quotes and brackets.
      const char = text[at]!
      const closing = char === '[' ? ']' : char === '(' ? ')' : char === '"' || char === "'" ? char : undefined
      if (closing === '"' || closing === "'") at += /^("(\\.|[^"\\])*"|'(\\.|[^'\\])*')/s.exec(text.slice(at))?.[0].length ?? 1
      else if (closing !== undefined) at = Math.max(at, endOf(text, at + 1, closing))
      continue
    }
    const left = parsePath(text.slice(0, at), depth + 1)
    const right = parsePath(text.slice(at + operator.length), depth + 1)
    if (right.length === 0) throw new JsonPathError(`the filter ${JSON.stringify(text)} compares with nothing`)
    return { kind: 'filter', left, operator, right }
  }
  return { kind: 'filter', left: parsePath(text, depth + 1), operator: 'exists', right: [] }
}

const dottedPath = (text: string): Path =>
  (text.match(/(\\.|[^.\\])+/gs) ?? []).map(name => ({ kind: 'field', name: name.replace(/\\(.)/gs, '$1') }))

function splitAt(text: string, separator: string): string[] {
  const parts: string[] = []
  let rest = text
  for (let end = endOf(rest, 0, separator); end >= 0; end = endOf(rest, 0, separator)) {
    parts.push(rest.slice(0, end))
    rest = rest.slice(end + 1)
  }
  return [...parts, rest]
}
