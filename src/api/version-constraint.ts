/**
 * Whether a version of an engine will do. A constraint is a comma-separated list, all of which must hold, of an operator
 * (`=`, `!=`, `>`, `>=`, `<`, `<=`, `~>`; none is `=`) and a version of up to three numbers, as in Terraform's
 * `required_version` (https://developer.hashicorp.com/terraform/language/expressions/version-constraints): `~> 1.9` allows
 * 1.10 and not 2.0, `~> 1.9.2` allows 1.9.3 and not 1.10. What is left out of a version is 0; pre-release parts are ignored.
 */
export function versionMatches(version: string, constraint: string): boolean {
  const have = numbersOf(version)
  return have !== undefined && constraint.split(',').every(part => partMatches(have, part))
}

type Numbers = readonly [number, number, number]

function numbersOf(version: string): Numbers | undefined {
  const match = /^\s*v?(\d+)(?:\.(\d+))?(?:\.(\d+))?/.exec(version)
  return match ? [Number(match[1]), Number(match[2] ?? 0), Number(match[3] ?? 0)] : undefined
}

function partMatches(have: Numbers, part: string): boolean {
  const [, operator = '=', text = ''] = /^\s*(=|!=|>=?|<=?|~>)?\s*(.*)$/.exec(part) ?? []
  const want = numbersOf(text)
  if (!want) return false
  const order = have[0] - want[0] || have[1] - want[1] || have[2] - want[2]
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
      // ~>: only the last number that is written may rise.
      const written = text.trim().split('.').length
      const isSame = have[0] === want[0] && (written < 3 || have[1] === want[1])
      return order >= 0 && isSame
    }
  }
}
