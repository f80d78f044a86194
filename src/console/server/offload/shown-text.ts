import { sensitiveText } from '../../protocol/index.ts'
import { type Marks, partsOf } from './sensitive-values.ts'

/** The beginning of a text, and whether something follows. */
export type ShownText = { readonly text: string; readonly isCut: boolean }

/**
 * A value of a state as text: one that is a text as it is, any other as indented JSON, with {@link sensitiveText} in place of what is sensitive.
 * Undefined: all of it is sensitive. Recursive: states nest at most 500 levels (`stack-tasks.ts`).
 * @param limit in characters: what follows is not even looked at.
 */
export function shownText(value: unknown, marks: Marks, limit: number): ShownText | undefined {
  if (!partsOf(value, marks)) return undefined
  if (typeof value === 'string') return cutText(value, limit)
  const written: string[] = []
  let length = 0
  const write = (text: string) => {
    written.push(text)
    length += text.length
  }
  const add = (part: unknown, of: Marks, indent: string) => {
    const parts = partsOf(part, of)
    if (!parts) write(sensitiveText)
    // A long text is cut before it is quoted.
    else if (parts.length === 0) write(JSON.stringify(typeof part === 'string' ? part.slice(0, limit) : part))
    else {
      const isList = Array.isArray(part)
      const inner = `${indent}  `
      write(isList ? '[' : '{')
      for (const [index, { step, value: item, marks: below }] of parts.entries()) {
        if (length > limit) return
        write(`${index === 0 ? '' : ','}\n${inner}${isList ? '' : `${JSON.stringify(String(step).slice(0, limit))}: `}`)
        add(item, below, inner)
      }
      write(`\n${indent}${isList ? ']' : '}'}`)
    }
  }
  add(value, marks, '')
  return cutText(written.join(''), limit)
}

/** @param limit in characters. */
export function cutText(text: string, limit: number): ShownText {
  if (text.length <= limit) return { text, isCut: false }
  // Not in the middle of a character of two code units.
  const isSplit = /[\ud800-\udbff]/.test(text.charAt(limit - 1))
  return { text: text.slice(0, isSplit ? limit - 1 : limit), isCut: true }
}
