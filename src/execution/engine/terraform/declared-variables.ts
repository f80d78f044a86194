import { isJsonObject } from '../../../kubernetes/object/index.ts'

/**
 * The names of the root module's variables, from the text of its files (`*.tf` and `*.tf.json`, also `*.tofu`). Terraform itself reports
 * them only after a plan, and warns about every value of an undeclared variable. A file with syntax errors adds the names that could be
 * read; Terraform reports the errors.
 */
export function declaredVariables(files: readonly { name: string; text: string }[]): Set<string> {
  const names = new Set<string>()
  for (const { name, text } of files) {
    if (/\.(tf|tofu)$/.test(name)) for (const found of blockNames(text)) names.add(found)
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

/** Finds `variable "name" {` at the top level, skipping comments, strings with `${…}` in them, and heredocs. */
function blockNames(text: string): string[] {
  const names: string[] = []
  let depth = 0
  let at = 0
  while (at < text.length) {
    const rest = text.slice(at, at + 2)
    if (rest[0] === '#' || rest === '//') at = indexAfter(text, '\n', at)
    else if (rest === '/*') at = indexAfter(text, '*/', at + 2)
    else if (rest === '<<') at = endOfHeredoc(text, at)
    else if (rest[0] === '"') at = endOfString(text, at)
    else if (rest[0] === '{' || rest[0] === '[' || rest[0] === '(') {
      depth++
      at++
    } else if (rest[0] === '}' || rest[0] === ']' || rest[0] === ')') {
      depth = Math.max(0, depth - 1)
      at++
    } else if (/[A-Za-z_]/.test(rest[0] ?? '')) {
      const word = /^[\w-]+/.exec(text.slice(at, at + 256))?.[0] ?? ' '
      if (depth === 0 && word === 'variable') {
        const label = /^variable[ \t]+(?:"([^"\n$]*)"|([\w-]+))[ \t]*\{/.exec(text.slice(at, at + 512))
        const name = label?.[1] ?? label?.[2]
        if (name) names.push(name)
      }
      at += word.length
    } else at++
  }
  return names
}

function indexAfter(text: string, mark: string, from: number): number {
  const found = text.indexOf(mark, from)
  return found < 0 ? text.length : found + mark.length
}

function endOfString(text: string, from: number): number {
  let at = from + 1
  while (at < text.length) {
    const char = text[at]
    if (char === '\\') at += 2
    else if (char === '"') return at + 1
    else if (char === '\n')
      return at // an unterminated string must not consume the rest of the file
    else if ((char === '$' || char === '%') && text[at + 1] === '{' && text[at - 1] !== char) at = endOfTemplate(text, at + 2)
    else at++
  }
  return at
}

function endOfTemplate(text: string, from: number): number {
  let depth = 1
  let at = from
  while (at < text.length && depth > 0) {
    const char = text[at]
    if (char === '"') at = endOfString(text, at)
    else {
      if (char === '{') depth++
      if (char === '}') depth--
      at++
    }
  }
  return at
}

function endOfHeredoc(text: string, from: number): number {
  const opening = /^<<-?([A-Za-z_][\w-]*)[ \t]*\r?\n/.exec(text.slice(from, from + 256))
  if (!opening) return from + 2
  const closing = new RegExp(`^[ \\t]*${opening[1]}[ \\t]*\\r?$`, 'm')
  const start = from + opening[0].length
  const found = closing.exec(text.slice(start))
  return found ? start + found.index + found[0].length : text.length
}
