/**
 * Compares two resource versions of one kind: below 0 if `left` is older. They are decimal integers of any length
 * (Kubernetes since 1.35, and invariant 6), so the length is compared before the digits, without rounding.
 */
export function compareResourceVersions(left: string, right: string): number {
  if (left.length !== right.length) return left.length - right.length
  return left < right ? -1 : left > right ? 1 : 0
}
