/** Go's character classes inside brackets; ours have no notation for them. */
const posixClasses: Record<string, string> = {
  alnum: '0-9A-Za-z',
  alpha: 'A-Za-z',
  ascii: '\\x00-\\x7F',
  blank: '\\t ',
  cntrl: '\\x00-\\x1F\\x7F',
  digit: '0-9',
  graph: '!-~',
  lower: 'a-z',
  print: ' -~',
  punct: '!-\\/:-@\\[-`{-~',
  space: '\\t\\n\\v\\f\\r ',
  upper: 'A-Z',
  word: '0-9A-Za-z_',
  xdigit: '0-9A-Fa-f',
}

/** Patterns are those of schemas, so few; the limit is for a client that keeps changing a CRD. */
const maxCompiled = 10_000
const compiled = new Map<string, RegExp | undefined>()

/**
 * Compiles a `pattern` of a schema, which is Go's RE2 notation: `\A`, `\z`, `(?P<name>…)`, `[[:alpha:]]` and leading
 * `(?i)` flags are said in ours. Undefined if it is not a pattern.
 * Trap: RE2 is linear and V8 backtracks, so a hostile pattern in a CRD can be slow; who may write CRDs is trusted.
 */
export function compileGoPattern(pattern: string): RegExp | undefined {
  if (compiled.has(pattern)) return compiled.get(pattern)
  if (compiled.size >= maxCompiled) compiled.clear()
  const expression = compile(pattern)
  compiled.set(pattern, expression)
  return expression
}

function compile(pattern: string): RegExp | undefined {
  const [, letters = '', rest = pattern] = /^\(\?([ims]+)\)(.*)$/s.exec(pattern) ?? []
  const source = rest
    .replace(/\[:([a-z]+):\]/g, (whole, name: string) => (Object.hasOwn(posixClasses, name) ? posixClasses[name]! : whole))
    .replace(/\(\?P</g, '(?<')
    .replace(/\\(.)/gs, (whole, character: string) => (character === 'A' ? '^' : character === 'z' ? '$' : whole))
  for (const flags of [`${letters}u`, letters]) {
    try {
      return new RegExp(source, flags)
    } catch {
      // The u flag refuses escapes such as \_ and \- that Go allows: try without it.
    }
  }
  return undefined
}
