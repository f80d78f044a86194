/** Changes of a filter's text (the language is that of `protocol/filter.ts`). What a user has typed otherwise stays as it is. */

const tokenPattern = /(?:[^\s"]|"[^"]*"?)+/g

const tokensOf = (text: string): string[] => text.match(tokenPattern) ?? []

/** The values that a term of the filter has for the field, in lower case. */
export function valuesOf(text: string, field: string): string[] {
  const token = tokensOf(text).find(one => one.toLowerCase().startsWith(`${field.toLowerCase()}:`))
  return token === undefined
    ? []
    : unquoted(token.slice(field.length + 1))
        .split(',')
        .filter(Boolean)
}

const unquoted = (text: string) => text.replaceAll('"', '').toLowerCase()

/** Adds the value to the term of the field, or removes it; a term without values is removed. */
export function toggleValue(text: string, field: string, value: string): string {
  const has = valuesOf(text, field)
  const wanted = value.toLowerCase()
  const values = has.includes(wanted) ? has.filter(one => one !== wanted) : [...has, wanted]
  const others = tokensOf(text).filter(one => !one.toLowerCase().startsWith(`${field.toLowerCase()}:`))
  return [...(values.length > 0 ? [`${field}:${quoted(values.join(','))}`] : []), ...others].join(' ')
}

const quoted = (text: string) => (/\s/.test(text) ? `"${text}"` : text)

export type Completion = {
  /** The text of the field after it was chosen. */
  readonly text: string
  readonly label: string
  readonly count?: number
}

const maxCompletions = 12

/** What the last token of the text may become: the name of a field, or a value that rows have. */
export function completionsOf(
  text: string,
  fields: readonly string[],
  counts: Readonly<Record<string, Readonly<Record<string, number>>>>,
): Completion[] {
  const token = /\s$/.test(text) ? '' : (tokensOf(text).at(-1) ?? '')
  const before = text.slice(0, text.length - token.length)
  const [, sign = '', field, typed = ''] = /^(-?)([a-zA-Z]*):(.*)$/s.exec(token) ?? []
  if (field === undefined) {
    const prefix = token.replace(/^-/, '').toLowerCase()
    const negation = token.startsWith('-') ? '-' : ''
    return fields
      .filter(name => name.startsWith(prefix))
      .map(name => ({ text: `${before}${negation}${name}:`, label: `${name}:` }))
      .slice(0, maxCompletions)
  }
  const earlier = typed.includes(',') ? typed.slice(0, typed.lastIndexOf(',') + 1) : ''
  const part = unquoted(typed.slice(earlier.length))
  return Object.entries(counts[field.toLowerCase()] ?? {})
    .filter(([value]) => value.toLowerCase().includes(part) && value.toLowerCase() !== part)
    .slice(0, maxCompletions)
    .map(([value, count]) => ({ text: `${before}${sign}${field}:${earlier}${quoted(value)} `, label: value, count }))
}
