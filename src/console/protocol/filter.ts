import { stateTones } from './rows.ts'

/** One condition: the row's field has this value. A `*` matches any text. */
export type FilterTerm = { readonly field: string; readonly values: readonly string[]; readonly negated: boolean }

/** All terms must match. Words without a field are looked for in the row's text. */
export type Filter = { readonly terms: readonly FilterTerm[]; readonly words: readonly string[] }

/** A filter that cannot be read, with the place. */
export class FilterError extends Error {
  override readonly name = 'FilterError'
}

/** The fields of each table, with what their values are. */
export const filterFields = {
  stacks: ['namespace', 'name', 'tenant', 'engine', 'pool', 'state', 'reason', 'phase', 'label', 'suspended', 'attention'],
  runs: ['namespace', 'name', 'stack', 'tenant', 'engine', 'type', 'trigger', 'phase', 'reason', 'pool', 'worker'],
  queue: ['namespace', 'name', 'stack', 'tenant', 'engine', 'type', 'trigger', 'reason', 'pool'],
  workers: ['name', 'pool', 'phase', 'host', 'partition'],
  pools: ['name', 'mode', 'lifecycle'],
  tenants: ['name', 'partition'],
  controllers: ['name', 'holder', 'ring'],
  partitions: ['name'],
} as const

/** The values of fields that have no others. */
const filterValues: Readonly<Partial<Record<string, readonly string[]>>> = {
  state: Object.keys(stateTones),
  suspended: ['true', 'false'],
}

/**
 * Reads a filter: `tenant:a,b state:failed -engine:pulumi label:team=web "two words"`. A comma separates alternatives, `-` negates a term, quotes
 * keep spaces and colons. Values are compared without regard to case.
 * @throws {FilterError} for an unknown field, an empty value, one that no row can have, or a quote that does not end.
 */
export function parseFilter(text: string, fields: readonly string[]): Filter {
  const terms: FilterTerm[] = []
  const words: string[] = []
  for (const { token, at } of tokensOf(text)) {
    const [, sign = '', field, value = ''] = /^(-?)([a-zA-Z]+):(.*)$/s.exec(token.text) ?? []
    if (field === undefined || token.isQuoted) {
      words.push(token.text.toLowerCase())
      continue
    }
    if (!fields.includes(field.toLowerCase())) throw new FilterError(`unknown field "${field}" at ${at + 1}: use ${fields.join(', ')}`)
    const values = value.split(',').map(one => one.trim().toLowerCase())
    if (values.some(one => one === '')) throw new FilterError(`"${field}:" at ${at + 1} has an empty value`)
    const allowed = filterValues[field.toLowerCase()]
    const unknown = allowed && values.find(one => !allowed.some(name => isLike(name.toLowerCase(), one)))
    if (unknown !== undefined) throw new FilterError(`unknown ${field} "${unknown}" at ${at + 1}: use ${allowed?.join(', ')}`)
    terms.push({ field: field.toLowerCase(), values, negated: sign === '-' })
  }
  return { terms, words }
}

/** A term whose field is `except` is left out. */
export function matchesFilter(row: Readonly<Record<string, unknown>>, { terms, words }: Filter, except?: string): boolean {
  for (const { field, values, negated } of terms)
    if (field !== except && values.some(value => hasValue(row, field, value)) === negated) return false
  if (words.length === 0) return true
  const text = textOf(row)
  return words.every(word => text.includes(word))
}

function hasValue(row: Readonly<Record<string, unknown>>, field: string, value: string): boolean {
  if (field !== 'label') return isLike(String(row[field] ?? '').toLowerCase(), value)
  const [key = '', wanted] = value.split('=', 2)
  return Object.entries((row.labels ?? {}) as Record<string, string>).some(
    ([name, has]) => isLike(name.toLowerCase(), key) && (wanted === undefined || isLike(has.toLowerCase(), wanted)),
  )
}

function isLike(text: string, pattern: string): boolean {
  if (!pattern.includes('*')) return text === pattern
  const parts = pattern.split('*')
  const [first = ''] = parts
  const last = parts.at(-1) ?? ''
  if (!text.startsWith(first) || !text.endsWith(last) || text.length < first.length + last.length) return false
  let at = first.length
  for (const part of parts.slice(1, -1)) {
    const found = text.indexOf(part, at)
    if (found < 0 || found + part.length > text.length - last.length) return false
    at = found + part.length
  }
  return true
}

const searched = ['namespace', 'name', 'stack', 'message', 'reason', 'host', 'worker']
const textOf = (row: Readonly<Record<string, unknown>>) =>
  searched
    .map(field => row[field] ?? '')
    .join('\n')
    .toLowerCase()

type Token = { readonly text: string; readonly isQuoted: boolean }

function* tokensOf(text: string): Generator<{ readonly token: Token; readonly at: number }> {
  let at = 0
  while (at < text.length) {
    if (text[at] === ' ') {
      at++
      continue
    }
    const start = at
    const isQuoted = text[at] === '"'
    let token = ''
    while (at < text.length && text[at] !== ' ') {
      if (text[at] !== '"') {
        token += text[at++]
        continue
      }
      const end = text.indexOf('"', at + 1)
      if (end < 0) throw new FilterError(`the quote at ${at + 1} does not end`)
      token += text.slice(at + 1, end)
      at = end + 1
    }
    if (token !== '') yield { token: { text: token, isQuoted }, at: start }
  }
}
