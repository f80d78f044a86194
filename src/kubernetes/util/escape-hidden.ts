const hidden = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu
const names: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }

/**
 * Text on one line in which every character can be seen: control characters, line separators, and the format characters that reverse, join or hide
 * others become `\n`, `\u001b`, `\u202e`. Inside a JSON string the value stays the same.
 */
export function escapeHidden(text: string): string {
  return text.replace(hidden, found => names[found] ?? Array.from({ length: found.length }, (_, at) => unitOf(found, at)).join(''))
}

function unitOf(text: string, at: number): string {
  return `\\u${text.charCodeAt(at).toString(16).padStart(4, '0')}`
}
