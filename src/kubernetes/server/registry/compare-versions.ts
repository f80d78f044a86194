/** Compares two versions in Kubernetes' order of preference: v2, v1, v2beta1, v1beta2, v1alpha1, then others by name. */
export function compareVersions(a: string, b: string): number {
  const left = stabilityOf(a)
  const right = stabilityOf(b)
  if (!left || !right) return left ? -1 : right ? 1 : a < b ? -1 : a > b ? 1 : 0
  return right[0] - left[0] || right[1] - left[1] || right[2] - left[2]
}

function stabilityOf(version: string): [stability: number, major: number, minor: number] | undefined {
  const match = /^v([0-9]+)(?:(alpha|beta)([0-9]+))?$/.exec(version)
  if (!match) return undefined
  const stability = match[2] === undefined ? 2 : match[2] === 'beta' ? 1 : 0
  return [stability, Number(match[1]), Number(match[3] ?? 0)]
}
