/**
 * The text of parts of a JSON document. The state of a stack is stored exactly as the CLI sent it: parsing and printing it again would change
 * numbers beyond 2^53, and the digest that a checkpoint delta is checked against.
 */

const quote = 0x22
const backslash = 0x5c
const openBrace = 0x7b
const closeBrace = 0x7d
const openBracket = 0x5b
const closeBracket = 0x5d
const comma = 0x2c

/** Parses JSON. @throws {SyntaxError} if it is not JSON, or nested deeper than `maxDepth`. */
export function parseBoundedJson(text: string, maxDepth: number): unknown {
  let depth = 0
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code === quote) i = endOfString(text, i)
    else if (code === openBrace || code === openBracket) {
      if (++depth > maxDepth) throw new SyntaxError(`JSON is nested deeper than ${maxDepth} levels`)
    } else if (code === closeBrace || code === closeBracket) depth--
  }
  return JSON.parse(text)
}

/** The texts of an object's members, by their name; of equal names the last one, as with JSON.parse. `text` must be valid JSON of an object. */
export function sliceMembers(text: string): Map<string, string> {
  const members = new Map<string, string>()
  forEachItem(text, item => {
    const start = item.search(/\S/)
    const end = endOfString(item, start)
    members.set(JSON.parse(item.slice(start, end + 1)), item.slice(item.indexOf(':', end) + 1).trim())
  })
  return members
}

/** Calls back with what stands between the commas of the outermost object. */
function forEachItem(text: string, visit: (item: string) => void): void {
  let depth = 0
  let start = 0
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code === quote) i = endOfString(text, i)
    else if (code === openBrace || code === openBracket) {
      if (++depth === 1) start = i + 1
    } else if (code === closeBrace || code === closeBracket) {
      if (--depth === 0 && text.slice(start, i).trim() !== '') visit(text.slice(start, i))
    } else if (code === comma && depth === 1) {
      visit(text.slice(start, i))
      start = i + 1
    }
  }
}

/** The index of the closing quote of the string that opens at `start`; the length of the text if it does not end. */
function endOfString(text: string, start: number): number {
  for (let i = start + 1; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code === quote) return i
    if (code === backslash) i++
  }
  return text.length
}
