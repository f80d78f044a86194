import { getOwn } from '../object/json.ts'
import type { StructuralSchema } from '../object/structural-schema.ts'

const segment = /\.([^.[\]]+)|\['((?:[^'\\]|\\.)*)'\]/sy
const escapes: Record<string, string> = { a: '\x07', b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v', "'": "'", '\\': '\\' }

/**
 * Converts the `fieldPath` of a rule, such as `.spec.ports['http']`, into the notation of error messages. Undefined if it is
 * not a path to a field of `schema`; items of lists have no path.
 */
export function fieldPathOf(path: string, schema: StructuralSchema): string | undefined {
  let formatted = ''
  let at: StructuralSchema | undefined = schema
  let end = 0
  while (end < path.length) {
    segment.lastIndex = end
    const match = segment.exec(path)
    if (!match || !at) return undefined
    end = segment.lastIndex
    const name: string = match[1] ?? match[2]!.replace(/\\(.)/gs, (whole, character: string) => escapes[character] ?? whole)
    if (at.properties) {
      at = getOwn(at.properties, name)
      formatted += formatted === '' ? name : `.${name}`
    } else if (at.additionalProperties !== undefined) {
      at = typeof at.additionalProperties === 'object' ? at.additionalProperties : {}
      formatted += `[${name}]`
    } else return undefined
    if (!at) return undefined
  }
  return formatted
}
