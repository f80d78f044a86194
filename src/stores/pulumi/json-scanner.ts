/**
 * Where values of a JSON text begin and end, without parsing it: states and entries are stored as the CLI sent them, because parsing and printing them again
 * would change numbers beyond 2^53, and digests. Only brackets and strings matter, so a text that is not valid JSON must be rejected by its parser.
 */

const quote = 0x22
const backslash = 0x5c
const comma = 0x2c
const openBracket = 0x5b
const closeBracket = 0x5d
const openBrace = 0x7b
const closeBrace = 0x7d

/** Where the object or list that begins at `start` ends: the position after it. Undefined if it does not; `deep` if it has more levels than `maxDepth`. */
export function endOfJson(text: string, start: number, maxDepth: number): number | 'deep' | undefined {
  let depth = 0
  for (let at = start; at >= 0 && at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === quote) at = endOfString(text, at)
    else if (code === openBrace || code === openBracket) {
      if (++depth > maxDepth) return 'deep'
    } else if ((code === closeBrace || code === closeBracket) && --depth === 0) return at + 1
  }
  return undefined
}

/** True if `text` has more levels than `maxDepth`. */
export const isDeeperThan = (text: string, maxDepth: number): boolean => endOfJson(text, text.search(/[[{]/), maxDepth) === 'deep'

/** Which limit the first object or list of `text` exceeds. Its values are counted by their commas and opening brackets, so an object counts as two values. */
export function exceededJsonLimit(text: string, limits: { maxDepth: number; maxValues: number }): 'depth' | 'values' | undefined {
  let depth = 0
  let values = 0
  for (let at = text.search(/[[{]/); at >= 0 && at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === quote) at = endOfString(text, at)
    else if (code === openBrace || code === openBracket) {
      if (++depth > limits.maxDepth) return 'depth'
      if (++values > limits.maxValues) return 'values'
    } else if (code === comma) {
      if (++values > limits.maxValues) return 'values'
    } else if ((code === closeBrace || code === closeBracket) && --depth === 0) return undefined
  }
  return undefined
}

/** The position of the quote that ends the string which begins at `start`; the end of the text if there is none. */
export function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let escapes = 0
    while (text.charCodeAt(end - 1 - escapes) === backslash) escapes++
    if (escapes % 2 === 0) return end
  }
  return text.length
}

/** The texts of an object's members, by their name; of equal names the last one, as with JSON.parse. `text` must be valid JSON of an object. */
export function sliceMembers(text: string): Map<string, string> {
  const members = new Map<string, string>()
  for (const item of items(text)) {
    const start = item.search(/\S/)
    const end = endOfString(item, start)
    members.set(JSON.parse(item.slice(start, end + 1)), item.slice(item.indexOf(':', end) + 1).trim())
  }
  return members
}

/** What stands between the commas of the outermost object or list. */
function* items(text: string): Generator<string> {
  const open = text.search(/[[{]/)
  let start = open + 1
  for (let at = start; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === quote) at = endOfString(text, at)
    else if (code === openBrace || code === openBracket) at = Number(endOfJson(text, at, Number.POSITIVE_INFINITY) ?? text.length) - 1
    else if (code === comma || code === closeBrace || code === closeBracket) {
      const item = text.slice(start, at)
      if (code === comma || item.trim() !== '') yield item
      if (code !== comma) return
      start = at + 1
    }
  }
}
