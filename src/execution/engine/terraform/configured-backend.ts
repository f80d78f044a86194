import { isJsonObject } from '../../../kubernetes/object/index.ts'
import { hclBlocks } from './hcl-blocks.ts'

/** What a root module configures to keep its state: a `backend` block, or a `cloud` block. `line` is unknown in JSON. */
export type ConfiguredBackend = { file: string; line?: number; block: string }

/**
 * The first `backend` or `cloud` block of a root module, also in an override file. Terraform ignores those of child modules, so they are
 * not searched.
 */
export function configuredBackend(files: readonly { name: string; text: string }[]): ConfiguredBackend | undefined {
  for (const { name, text } of files) {
    const found = name.endsWith('.json') ? jsonBackend(text) : nativeBackend(text)
    if (found) return { file: name, ...found }
  }
  return undefined
}

function nativeBackend(text: string): Omit<ConfiguredBackend, 'file'> | undefined {
  const found = hclBlocks(text).find(({ type, within }) => within === 'terraform' && (type === 'backend' || type === 'cloud'))
  return found && { line: found.line, block: formatBlock(found.type, found.labels[0]) }
}

/** In JSON a block is an object or a list of objects, and a label is a key: `{"terraform": {"backend": {"s3": {}}}}`. */
function jsonBackend(text: string): Omit<ConfiguredBackend, 'file'> | undefined {
  let root: unknown
  try {
    root = JSON.parse(text)
  } catch {
    return undefined // Terraform reports the syntax error.
  }
  const settings = bodies(root).flatMap(body => bodies(body.terraform))
  for (const { backend, cloud } of settings) {
    const [type] = bodies(backend).flatMap(body => Object.keys(body))
    if (type !== undefined) return { block: formatBlock('backend', type) }
    if (bodies(cloud).length > 0) return { block: 'cloud' }
  }
  return undefined
}

function bodies(value: unknown): Record<string, unknown>[] {
  return (Array.isArray(value) ? value.flat() : [value]).filter(isJsonObject)
}

const formatBlock = (type: string, label: string | undefined): string => (label === undefined ? type : `${type} ${JSON.stringify(label)}`)
