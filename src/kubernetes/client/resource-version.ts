/**
 * Compares two resource versions of one kind: below 0 if `left` is older. They are decimal numbers without bound
 * (Kubernetes since 1.35, and invariant 6), so length decides before digits do; nothing is rounded.
 */
export function compareResourceVersions(left: string, right: string): number {
  if (left.length !== right.length) return left.length - right.length
  return left < right ? -1 : left > right ? 1 : 0
}
