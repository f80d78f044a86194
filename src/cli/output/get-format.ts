import { InvalidArgumentError } from 'commander'
import { JsonPathError } from './json-path.ts'
import { outputFormats } from './output-formats.ts'
import { parseTemplate } from './parse-json-path.ts'

/** How `oarlock get` prints: a table, or the objects. */
export type GetFormat = { readonly kind: 'table'; readonly wide: boolean } | { readonly kind: 'name' } | ObjectFormat

/** Prints values and not rows. */
export type ObjectFormat = { readonly kind: 'json' | 'yaml' } | { readonly kind: 'jsonpath'; readonly template: string }

/** Reads the value of -o. @throws {InvalidArgumentError} */
export function parseGetFormat(text: string): GetFormat {
  if (text === 'wide') return { kind: 'table', wide: true }
  if (text === 'json' || text === 'yaml' || text === 'name') return { kind: text }
  const template = /^jsonpath=(.+)$/s.exec(text)?.[1]
  if (template === undefined) throw new InvalidArgumentError(`Allowed are ${outputFormats.join(', ')} and jsonpath=TEMPLATE.`)
  try {
    parseTemplate(template)
    return { kind: 'jsonpath', template }
  } catch (error) {
    throw error instanceof JsonPathError ? new InvalidArgumentError(`The template is not valid: ${error.message}.`) : error
  }
}
