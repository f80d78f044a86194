import { endOfString } from './json-limits.ts'

/** The result of strict parsing. `duplicates` are paths such as `spec.a` or `spec.items[2].name`; the last value wins. */
export type StrictJson = { value: unknown; duplicates: string[] }

/** Further duplicates are not reported: the text may be hostile. */
const maxDuplicates = 100

/**
 * Parses JSON and reports keys that occur twice in one object. Text without duplicates costs `JSON.parse` and one scan.
 * @throws {SyntaxError} as `JSON.parse` does.
 */
export function parseJsonStrict(text: string): StrictJson {
  const value: unknown = JSON.parse(text)
  return { value, duplicates: duplicateKeys(text, value) }
}

/** The paths of duplicate keys in `text`, whose parsed value is `value`. Walks `value` recursively: check its depth first. */
export function duplicateKeys(text: string, value: unknown): string[] {
  return countKeys(value) === countColons(text) ? [] : findDuplicates(text)
}

function countKeys(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  let count = 0
  if (Array.isArray(value)) {
    for (const item of value) count += countKeys(item)
    return count
  }
  for (const key of Object.keys(value)) count += 1 + countKeys((value as Record<string, unknown>)[key])
  return count
}

/** The colons outside of strings, one for every key in the text, which must be valid JSON. */
function countColons(text: string): number {
  let count = 0
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === 58) count++
    else if (code === 34) at = endOfString(text, at)
  }
  return count
}

/** Walks valid JSON with an explicit stack, so that deep nesting cannot overflow the call stack. */
function findDuplicates(text: string): string[] {
  const duplicates: string[] = []
  type Level = { path: string; keys: Set<string> | undefined; index: number; key: string }
  const stack: Level[] = []
  const childPath = (level: Level | undefined) => {
    if (level === undefined) return ''
    if (level.keys === undefined) return `${level.path}[${level.index}]`
    return level.path === '' ? level.key : `${level.path}.${level.key}`
  }
  for (let at = 0; at < text.length; at++) {
    const level = stack.at(-1)
    switch (text[at]) {
      case '{':
        stack.push({ path: childPath(level), keys: new Set(), index: 0, key: '' })
        break
      case '[':
        stack.push({ path: childPath(level), keys: undefined, index: 0, key: '' })
        break
      case '}':
      case ']':
        stack.pop()
        break
      case ',':
        if (level) level.index++
        break
      case '"': {
        const end = endOfString(text, at)
        let next = end + 1
        while (/\s/.test(text[next] ?? '')) next++
        if (text[next] === ':' && level?.keys) {
          level.key = JSON.parse(text.slice(at, end + 1))
          if (level.keys.has(level.key) && duplicates.length < maxDuplicates) duplicates.push(childPath(level))
          level.keys.add(level.key)
        }
        at = end
      }
    }
  }
  return duplicates
}
