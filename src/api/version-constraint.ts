/**
 * True when an engine version satisfies a constraint: a comma-separated list of comparisons, all of which must hold. Each is an
 * operator (`=`, `!=`, `>`, `>=`, `<`, `<=`, `~>`; default `=`) and a version of up to three numbers, as in Terraform's
 * `required_version` (https://developer.hashicorp.com/terraform/language/expressions/version-constraints): `~> 1.9` allows
 * 1.10 and not 2.0, `~> 1.9.2` allows 1.9.3 and not 1.10. Omitted numbers are 0; pre-release parts are ignored.
 */
export function satisfiesVersion(version: string, constraint: string): boolean {
  const actual = parseVersion(version)
  return actual !== undefined && constraint.split(',').every(comparison => satisfiesComparison(actual, comparison))
}

type Numbers = readonly [number, number, number]

function parseVersion(version: string): Numbers | undefined {
  const match = /^\s*v?(\d+)(?:\.(\d+))?(?:\.(\d+))?/.exec(version)
  return match ? [Number(match[1]), Number(match[2] ?? 0), Number(match[3] ?? 0)] : undefined
}

function satisfiesComparison(actual: Numbers, comparison: string): boolean {
  const [, operator = '=', text = ''] = /^\s*(=|!=|>=?|<=?|~>)?\s*(.*)$/.exec(comparison) ?? []
  const required = parseVersion(text)
  if (!required) return false
  const order = actual[0] - required[0] || actual[1] - required[1] || actual[2] - required[2]
  switch (operator) {
    case '=':
      return order === 0
    case '!=':
      return order !== 0
    case '>':
      return order > 0
    case '>=':
      return order >= 0
    case '<':
      return order < 0
    case '<=':
      return order <= 0
    default: {
      // ~>: only the last number of the constraint may be higher.
      const precision = text.trim().split('.').length
      const isSame = actual[0] === required[0] && (precision < 3 || actual[1] === required[1])
      return order >= 0 && isSame
    }
  }
}
