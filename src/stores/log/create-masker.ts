/** Replaces secrets by `***`. */
export type Masker = {
  /** Returns the line with every known secret replaced. Requires whole lines: a secret split over two calls is not found. */
  mask(line: string): string
  add(secret: string): void
  /** Length of the longest text that is replaced. */
  readonly maxLength: number
  /** A text that is replaced, and that begins before position `at` and ends after it. */
  findAcross(text: string, at: number): { start: number; end: number } | undefined
}

const replacement = '***'
/** Shorter values are masked as whole words only, because they occur in most lines by chance. */
const minLength = 4
/** A single character is not masked: it would make the log unreadable and protects nothing. */
const minWordLength = 2

/**
 * Masks secrets in log lines: verbatim, each line of a multi-line secret, and as encoded in JSON, in URLs and in base64 (also as part of a
 * longer base64 text, as in a Basic header). Values of 2 or 3 characters are masked as whole words, a single
 * character is not.
 * The output never contains a secret. One compiled expression: with 300 secrets a line without any takes 0.6 µs (110 characters).
 */
export function createMasker(secrets: Iterable<string>): Masker {
  const forms = new Set<string>()
  const words = new Set<string>()
  let maxLength = 0
  let pattern: { any: RegExp; all: RegExp } | undefined

  const add = (secret: string) => {
    const before = forms.size + words.size
    for (const form of formsOf(secret)) forms.add(form)
    for (const word of wordsOf(secret)) words.add(word)
    if (forms.size + words.size === before) return
    pattern = undefined
    maxLength = [...forms, ...words].reduce((longest, { length }) => Math.max(longest, length), 0)
  }
  for (const secret of secrets) add(secret)

  const compile = () => {
    const longestFirst = [...forms].sort((a, b) => b.length - a.length || (a < b ? -1 : 1))
    const wholeWords = [...words].map(word => `(?<![A-Za-z0-9_])${RegExp.escape(word)}(?![A-Za-z0-9_])`)
    const alternatives = [...longestFirst.map(form => RegExp.escape(form)), ...wholeWords].join('|')
    // The lookahead also finds overlapping matches: everything that any secret covers is replaced.
    return { any: new RegExp(alternatives), all: new RegExp(`(?=(${alternatives}))`, 'g') }
  }

  const mask = (line: string): string => {
    if (maxLength === 0) return line
    pattern ??= compile()
    let text = line
    // Repeated because `***` and adjacent text may form a secret such as `a***`. Each pass shortens the text.
    while (pattern.any.test(text)) text = maskOnce(text, pattern.all)
    return text
  }
  const findAcross: Masker['findAcross'] = (text, at) => {
    if (maxLength === 0) return undefined
    pattern ??= compile()
    // A word depends on the character before and after it.
    const from = Math.max(0, at - maxLength - 1)
    for (const match of text.slice(from, at + maxLength + 1).matchAll(pattern.all)) {
      const start = from + match.index
      const end = start + (match[1]?.length ?? 0)
      if (start < at && at < end) return { start, end }
    }
    return undefined
  }
  return {
    mask,
    add,
    findAcross,
    get maxLength() {
      return maxLength
    },
  }
}

function maskOnce(text: string, all: RegExp): string {
  let masked = ''
  let copied = 0
  let coverStart = -1
  let coverEnd = -1
  for (const match of text.matchAll(all)) {
    const end = match.index + (match[1]?.length ?? 0)
    if (match.index > coverEnd) {
      if (coverStart !== -1) {
        masked += text.slice(copied, coverStart) + replacement
        copied = coverEnd
      }
      coverStart = match.index
      coverEnd = end
    } else if (end > coverEnd) coverEnd = end
  }
  if (coverStart === -1) return text
  return masked + text.slice(copied, coverStart) + replacement + text.slice(coverEnd)
}

/** Only what has a letter or a digit: a replacement must not be a secret again. */
function wordsOf(secret: string): string[] {
  const lines = secret.split(/\r\n|[\n\r]/).map(line => line.trim())
  return lines.filter(({ length }) => length >= minWordLength && length < minLength).filter(line => /[A-Za-z0-9]/.test(line))
}

function* formsOf(secret: string): Generator<string> {
  for (const text of plainForms(secret)) {
    if (text.length >= minLength) yield text
  }
  if (secret.length < minLength) return
  for (const text of base64Forms(secret)) {
    if (text.length >= minLength) yield text
  }
}

function* plainForms(secret: string): Generator<string> {
  if (secret.length < minLength) return
  const escaped = JSON.stringify(secret).slice(1, -1)
  yield* [secret, escaped, JSON.stringify(escaped).slice(1, -1)]
  // JSON as Go and Terraform write it: <, > and & are escaped.
  yield escaped.replaceAll('<', '\\u003c').replaceAll('>', '\\u003e').replaceAll('&', '\\u0026')
  if (secret.isWellFormed()) yield encodeURIComponent(secret)
  const lines = secret.split(/\r\n|[\n\r]/)
  if (lines.length === 1) return
  for (const line of lines) {
    const trimmed = line.trim()
    if (trimmed.length >= minLength) yield* plainForms(trimmed)
  }
}

/** Base64 of the secret, and its part that does not depend on adjacent bytes when 0 to 2 bytes precede it. */
function* base64Forms(secret: string): Generator<string> {
  const bytes = Buffer.from(secret)
  for (const encoding of ['base64', 'base64url'] as const) {
    const whole = bytes.toString(encoding)
    yield* [whole, whole.replace(/=+$/, '')]
    for (const before of [0, 1, 2]) {
      const text = Buffer.concat([Buffer.alloc(before), bytes])
        .toString(encoding)
        .replace(/=+$/, '')
      const first = Math.ceil((before * 8) / 6)
      const inner = text.slice(first, Math.floor(((before + bytes.byteLength) * 8) / 6))
      // A short base64 sequence occurs in too much text by chance.
      if (inner.length >= 8) yield inner
    }
  }
}
