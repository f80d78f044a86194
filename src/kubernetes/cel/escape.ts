const keywords = new Set(
  'true false null in as break const continue else for function if import let loop package namespace return var void while'.split(' '),
)
const escapes: Record<string, string> = { __: '__underscores__', '.': '__dot__', '-': '__dash__', '/': '__slash__' }
const unescapes: Record<string, string> = { __underscores__: '__', __dot__: '.', __dash__: '-', __slash__: '/' }

/**
 * The name of a field in expressions: `__dash__` for a dash and so on, `__if__` for a reserved word of CEL. Undefined for
 * a field that expressions cannot name. https://kubernetes.io/docs/reference/using-api/cel/#escaping
 */
export function escapeField(name: string): string | undefined {
  if (keywords.has(name)) return `__${name}__`
  if (!/^[A-Za-z_./-][A-Za-z0-9_./-]*$/.test(name)) return undefined
  return name.replace(/__|[-./]/g, part => escapes[part]!)
}

/** The inverse of {@link escapeField}. */
export function unescapeField(name: string): string {
  if (!name.includes('__')) return name
  const word = /^__([a-z]+)__$/.exec(name)?.[1]
  if (word !== undefined && keywords.has(word)) return word
  return name.replace(/__(?:underscores|dot|dash|slash)__/g, part => unescapes[part]!)
}
