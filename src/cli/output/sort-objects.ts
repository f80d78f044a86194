import { selectPath } from './json-path.ts'
import { JsonPathError, parseFieldPath } from './parse-json-path.ts'

/**
 * Sorts by the field that `path` selects in the object of each item; those without it are first. Numbers are compared as numbers,
 * texts by their characters, as kubectl does, unless both are numbers.
 * @throws {JsonPathError} if no object has the field, or it is not a text, a number or a boolean.
 */
export function sortByPath<T>(items: readonly T[], path: string, objectOf: (item: T) => unknown): T[] {
  const parsed = parseFieldPath(path)
  const keyed = items.map(item => ({ item, key: selectPath(parsed, objectOf(item))[0] ?? undefined }))
  if (items.length > 0 && keyed.every(({ key }) => key === undefined)) throw new JsonPathError(`no object has the field ${path}`)
  for (const { key } of keyed)
    if (typeof key === 'object') throw new JsonPathError(`the field ${path} is not a text, a number or a boolean`)
  return keyed.sort((a, b) => compare(a.key, b.key)).map(({ item }) => item)
}

const isNumber = (text: string) => /^[-+]?\d+(\.\d+)?$/.test(text)

function compare(a: unknown, b: unknown): number {
  if (a === undefined || b === undefined) return Number(a !== undefined) - Number(b !== undefined)
  if (typeof a === 'string' && typeof b === 'string' && !(isNumber(a) && isNumber(b))) return a < b ? -1 : a === b ? 0 : 1
  return Number(a) - Number(b)
}
