import type { CreateNodeOptions, DocumentOptions, ParseOptions, SchemaOptions } from 'yaml'
import { visibleText } from './escape-hidden.ts'
import { yaml } from './yaml.ts'

/** A value as YAML of {@link visibleText}, which has the same value: text with what that escapes is in double quotes. Ends with a line feed. */
export function stringifyYaml(value: unknown, options: DocumentOptions & SchemaOptions & ParseOptions & CreateNodeOptions = {}): string {
  const { Document, visit } = yaml()
  const document = new Document(value, null, { aliasDuplicateObjects: false, ...options })
  visit(document, {
    Scalar(_key, node) {
      if (typeof node.value === 'string' && visibleText(node.value) !== node.value) node.type = 'QUOTE_DOUBLE'
    },
  })
  return visibleText(document.toString({ lineWidth: 0 }))
}
