/** A block such as `resource "aws_instance" "web" {`. `within` is the type of the block around it. */
export type HclBlock = {
  readonly type: string
  readonly labels: readonly string[]
  readonly within: string | undefined
  readonly line: number
}

export type HclToken = {
  readonly kind: 'word' | 'string' | 'newline' | 'open' | 'close' | 'other'
  readonly text: string
  readonly at: number
}

/**
 * The blocks at the top level of a file in HCL's native syntax, and the blocks directly in those. Nothing is evaluated: comments, strings
 * with `${…}` in them and heredocs are skipped. A file with syntax errors has the blocks that could be recognized; Terraform reports the errors.
 */
export function hclBlocks(text: string): HclBlock[] {
  const blocks: HclBlock[] = []
  let depth = 0
  /** The type of the block at the top level around the token; undefined also in a list or an object there. */
  let within: string | undefined
  let statement: HclToken[] = []
  let line = 1
  let counted = 0
  for (const token of hclTokens(text)) {
    if (token.kind === 'other' || token.kind === 'word' || token.kind === 'string') {
      statement.push(token)
      continue
    }
    if (token.kind === 'open') {
      const [first, ...labels] = statement
      const isBlock = token.text === '{' && first?.kind === 'word' && labels.every(({ kind }) => kind === 'word' || kind === 'string')
      if (isBlock && (depth === 0 || (depth === 1 && within !== undefined))) {
        line += text.slice(counted, first.at).split('\n').length - 1
        counted = first.at
        blocks.push({ type: first.text, labels: labels.map(label => label.text), within: depth === 0 ? undefined : within, line })
      }
      if (depth === 0) within = isBlock ? first.text : undefined
      depth++
    } else if (token.kind === 'close') depth = Math.max(0, depth - 1)
    statement = []
  }
  return blocks
}

export function* hclTokens(text: string): Generator<HclToken> {
  // Terraform ignores a byte order mark.
  let at = text.startsWith('\uFEFF') ? 1 : 0
  const word = /[\p{ID_Start}_][\p{ID_Continue}-]*/uy
  while (at < text.length) {
    const from = at
    const pair = text.slice(at, at + 2)
    const char = text[at] ?? ''
    word.lastIndex = at
    const found = word.exec(text)?.[0]
    if (found !== undefined) {
      at += found.length
      yield { kind: 'word', text: found, at: from }
    } else if (char === '#' || pair === '//') {
      at = indexAfter(text, '\n', at)
      yield { kind: 'newline', text: '\n', at: from }
    } else if (pair === '/*') at = indexAfter(text, '*/', at + 2)
    else if (pair === '<<') {
      at = endOfHeredoc(text, at)
      yield { kind: 'other', text: '<<', at: from }
    } else if (char === '"') {
      at = endOfString(text, at)
      yield { kind: 'string', text: text.slice(from + 1, text[at - 1] === '"' ? at - 1 : at), at: from }
    } else {
      at++
      if (char === '\n') yield { kind: 'newline', text: char, at: from }
      else if ('{[('.includes(char)) yield { kind: 'open', text: char, at: from }
      else if ('}])'.includes(char)) yield { kind: 'close', text: char, at: from }
      else if (!/\s/.test(char)) yield { kind: 'other', text: char, at: from }
    }
  }
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
