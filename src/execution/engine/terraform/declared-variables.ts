import { isJsonObject } from '../../../kubernetes/object/index.ts'
import { hclBlocks } from './hcl-blocks.ts'

/**
 * The names of the root module's variables, from the text of its files (`*.tf` and `*.tf.json`, also `*.tofu`). Terraform itself reports
 * them only after a plan, and warns about every value of an undeclared variable. A file with syntax errors adds the names that could be
 * read; Terraform reports the errors.
 */
export function declaredVariables(files: readonly { name: string; text: string }[]): Set<string> {
  const names = new Set<string>()
  for (const { name, text } of files) {
    if (/\.(tf|tofu)$/.test(name)) for (const found of nativeNames(text)) names.add(found)
    else if (/\.(tf|tofu)\.json$/.test(name)) for (const found of jsonNames(text)) names.add(found)
  }
  return names
}

function jsonNames(text: string): string[] {
  try {
    const root: unknown = JSON.parse(text)
    if (!isJsonObject(root)) return []
    const blocks = Array.isArray(root.variable) ? root.variable : [root.variable]
    return blocks.flatMap(block => (isJsonObject(block) ? Object.keys(block) : []))
  } catch {
    return []
  }
}

function nativeNames(text: string): string[] {
  const variables = hclBlocks(text).filter(({ type, labels, within }) => type === 'variable' && labels.length === 1 && within === undefined)
  return variables.map(({ labels }) => labels[0] ?? '').filter(name => name !== '' && !/[\n$]/.test(name))
}
