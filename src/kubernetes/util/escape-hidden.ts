/** What has no glyph of its own, and what joins, hides or reorders others. */
const hidden = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu
/** Of these, what the text of any script does without: control characters but tabs and line feeds, line separators, and what reverses text. */
const misleading = /[^\P{Cc}\t\n]|[\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/gu
const names: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }

/**
 * Text on one line in which every character can be seen: control characters, line separators, and the format characters that reverse, join or hide
 * others become `\n`, `\u001b`, `\u202e`. Inside a JSON string the value stays the same.
 */
export function escapeHidden(text: string): string {
  return text.replace(hidden, found => names[found] ?? unitsOf(found))
}

/**
 * Lines of text in which each character is where it is read: control characters but tabs and line feeds, line separators and what reverses text
 * become `\u001b`, `\u202e`. Inside a JSON string the value stays the same.
 */
export function visibleText(text: string): string {
  return text.replace(misleading, unitsOf)
}

const unitsOf = (text: string) =>
  Array.from({ length: text.length }, (_, at) => `\\u${text.charCodeAt(at).toString(16).padStart(4, '0')}`).join('')
