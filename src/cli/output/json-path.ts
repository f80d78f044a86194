import { JsonPathError, type Path, type PathNode, parseTemplate } from './parse-json-path.ts'

export { JsonPathError } from './parse-json-path.ts'

/**
 * Renders a JSONPath template in the dialect of kubectl: text and `{…}` with fields, `[*]`, `..`, indexes, slices, unions, filters with one
 * comparison, quoted text, and `{range …}…{end}`. Written here, because the libraries for JSONPath have another dialect (jsonpath-plus executes
 * scripts). A field that an object lacks is empty.
 * @throws {JsonPathError} if the template is not valid, or does not fit the value.
 */
export function renderJsonPath(template: string, value: unknown): string {
  return renderParts(groupRanges(parseTemplate(template)), value)
}

/** The values that a path selects. @throws {JsonPathError} */
export function selectPath(path: Path, value: unknown): unknown[] {
  return path.reduce<unknown[]>((selected, node) => select(node, selected), [value])
}

type Part =
  | { readonly kind: 'path'; readonly path: Path }
  | { readonly kind: 'range'; readonly path: Path; readonly parts: readonly Part[] }

function groupRanges(paths: readonly Path[]): Part[] {
  const outer: Part[] = []
  const open: { path: Path; parts: Part[] }[] = []
  for (const path of paths) {
    const parts = open.at(-1)?.parts ?? outer
    if (path[0]?.kind === 'range') open.push({ path: path.slice(1), parts: [] })
    else if (path[0]?.kind === 'end') {
      const range = open.pop()
      if (!range) throw new JsonPathError('{end} has no {range}')
      ;(open.at(-1)?.parts ?? outer).push({ kind: 'range', ...range })
    } else parts.push({ kind: 'path', path })
  }
  if (open.length > 0) throw new JsonPathError('{range} has no {end}')
  return outer
}

function renderParts(parts: readonly Part[], value: unknown): string {
  return parts
    .map(part => {
      const selected = selectPath(part.path, value)
      return part.kind === 'range' ? selected.map(each => renderParts(part.parts, each)).join('') : selected.map(textOf).join(' ')
    })
    .join('')
}

const textOf = (value: unknown) => (typeof value === 'object' && value !== null ? goJson(value) : value === null ? 'null' : String(value))

/** As Go prints JSON: keys sorted, and characters of HTML escaped. */
function goJson(value: unknown): string {
  const sorted = JSON.stringify(value, (_, each: unknown) =>
    typeof each === 'object' && each !== null && !Array.isArray(each)
      ? Object.fromEntries(Object.entries(each).sort(([a], [b]) => (a < b ? -1 : 1)))
      : each,
  )
  return sorted.replace(/[<>&\u2028\u2029]/g, char => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

function select(node: PathNode, values: readonly unknown[]): unknown[] {
  switch (node.kind) {
    case 'text':
      return [node.text]
    case 'value':
      return [node.value]
    case 'field':
      return values.flatMap(value => (isMap(value) && Object.hasOwn(value, node.name) ? [value[node.name]] : []))
    case 'wildcard':
      return values.flatMap(children)
    case 'recursive':
      return values.flatMap(descendants)
    case 'index':
      return present(values).map(value => {
        const list = listOf(value)
        return list[inBounds(node.index < 0 ? node.index + list.length : node.index, list)]
      })
    case 'slice':
      return present(values).flatMap(value => slice(node, listOf(value)))
    case 'union':
      return node.paths.flatMap(path => path.reduce<unknown[]>((selected, each) => select(each, selected), [...values]))
    case 'filter':
      return present(values).flatMap(value => listOf(value).filter(element => matches(node, element)))
    case 'range':
    case 'end':
      throw new JsonPathError(`${node.kind} must be the first word in its braces`)
  }
}

const isMap = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value)
const present = (values: readonly unknown[]) => values.filter(value => value !== null && value !== undefined)
const children = (value: unknown): unknown[] => (Array.isArray(value) ? value : isMap(value) ? Object.values(value) : [])

/** Each map and list below a value, and the value itself, from the outside in. */
function descendants(value: unknown): unknown[] {
  const found: unknown[] = []
  const open = [value]
  while (open.length > 0) {
    const next = open.pop()
    const inner = children(next)
    if (inner.length === 0) continue
    found.push(next)
    for (let at = inner.length - 1; at >= 0; at--) open.push(inner[at])
  }
  return found
}

function listOf(value: unknown): unknown[] {
  if (!Array.isArray(value)) throw new JsonPathError(`${isMap(value) ? 'a map' : `${JSON.stringify(value)}`} is not a list`)
  return value
}

function inBounds(index: number, list: readonly unknown[]): number {
  if (index < 0 || index >= list.length) throw new JsonPathError(`index ${index} is out of bounds of a list of ${list.length}`)
  return index
}

function slice({ from = 0, to, step }: Extract<PathNode, { kind: 'slice' }>, list: readonly unknown[]): unknown[] {
  const start = from < 0 ? from + list.length : from
  const end = to === undefined ? list.length : to < 0 ? to + list.length : to
  if (start === end) return []
  inBounds(start, list)
  inBounds(end - 1, list)
  if (start > end) throw new JsonPathError(`the start ${start} of a slice is greater than its end ${end}`)
  return list.slice(start, end).filter((_, at) => at % step === 0)
}

function matches({ left, operator, right }: Extract<PathNode, { kind: 'filter' }>, element: unknown): boolean {
  const lefts = selectPath(left, element)
  if (operator === 'exists') return lefts.length > 0
  const rights = selectPath(right, element)
  if (lefts.length === 0 || rights.length === 0) return false
  if (lefts.length > 1 || rights.length > 1) throw new JsonPathError('a filter can compare only one value at a time')
  const [a] = lefts
  const [b] = rights
  if (operator === '==' || operator === '!=') return (a === b) === (operator === '==')
  if (typeof a !== typeof b || (typeof a !== 'number' && typeof a !== 'string'))
    throw new JsonPathError(`cannot compare ${JSON.stringify(a)} with ${JSON.stringify(b)}`)
  const order = (a as number) < (b as number) ? -1 : a === b ? 0 : 1
  return operator === '<' ? order < 0 : operator === '<=' ? order <= 0 : operator === '>' ? order > 0 : order >= 0
}
