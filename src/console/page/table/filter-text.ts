import { FilterError, parseFilter } from '../../protocol/index.ts'

const quoted = (value: string) => (/[\s",:]/.test(value) ? `"${value}"` : value)

/** The values that a filter asks for in `field`, in lower case. Empty for a filter that cannot be read. */
export function valuesOf(text: string, field: string, fields: readonly string[]): readonly string[] {
  try {
    return parseFilter(text, fields).terms.flatMap(term => (term.field === field && !term.negated ? term.values : []))
  } catch (error) {
    if (error instanceof FilterError) return []
    throw error
  }
}

/** The filter with `value` added to what it asks for in `field`, or removed. The rest of the text stays as the user has typed it. */
export function toggleValue(text: string, field: string, value: string, fields: readonly string[]): string {
  const values = valuesOf(text, field, fields)
  const wanted = value.toLowerCase()
  const next = values.includes(wanted) ? values.filter(one => one !== wanted) : [...values, wanted]
  const others = (text.match(/(?:[^\s"]|"[^"]*"?)+/g) ?? []).filter(term => !term.toLowerCase().startsWith(`${field}:`))
  return [...others, ...(next.length > 0 ? [`${field}:${next.map(quoted).join(',')}`] : [])].join(' ')
}
