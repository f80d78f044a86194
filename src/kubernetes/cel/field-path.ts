import { getOwn } from '../object/json.ts'
import type { StructuralSchema } from '../object/structural-schema.ts'

const segment = /\.([^.[\]]+)|\['((?:[^'\\]|\\.)*)'\]/sy
const escapes: Record<string, string> = { a: '\x07', b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v', "'": "'", '\\': '\\' }

/**
 * Says the `fieldPath` of a rule, such as `.spec.ports['http']`, as paths are said in errors. Undefined when it is not a
 * path to a field of `schema`; items of lists have none.
 */
export function fieldPathOf(path: string, schema: StructuralSchema): string | undefined {
  let said = ''
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
      said += said === '' ? name : `.${name}`
    } else if (at.additionalProperties !== undefined) {
      at = typeof at.additionalProperties === 'object' ? at.additionalProperties : {}
      said += `[${name}]`
    } else return undefined
    if (!at) return undefined
  }
  return said
}
