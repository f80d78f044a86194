import type { CreateNodeOptions, DocumentOptions, ParseOptions, SchemaOptions } from 'yaml'
import { escapeControls } from './escape-controls.ts'

/** A value as YAML, of which {@link escapeControls} changes no value: a text with what it replaces is in double quotes. */
export async function stringifyYaml(
  value: unknown,
  options: DocumentOptions & SchemaOptions & ParseOptions & CreateNodeOptions = {},
): Promise<string> {
  const { Document, visit } = await import('yaml')
  const document = new Document(value, null, { aliasDuplicateObjects: false, ...options })
  visit(document, {
    Scalar(_key, node) {
      if (typeof node.value === 'string' && escapeControls(node.value) !== node.value) node.type = 'QUOTE_DOUBLE'
    },
  })
  return document.toString({ lineWidth: 0 }).trimEnd()
}
