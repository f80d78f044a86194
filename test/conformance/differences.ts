/** The lines of `expected` that are missing (`-`) and those of `got` that are additional (`+`), in order; empty if both are equal. */
export function differences(expected: string, got: string): string {
  if (expected === got) return ''
  const a = expected.split('\n')
  const b = got.split('\n')
  // Longest common subsequence; responses have a few hundred lines at most.
  const lengths = Array.from({ length: a.length + 1 }, () => new Uint32Array(b.length + 1))
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      lengths[i]![j] = a[i] === b[j] ? lengths[i + 1]![j + 1]! + 1 : Math.max(lengths[i + 1]![j]!, lengths[i]![j + 1]!)
    }
  }
  const lines: string[] = []
  let i = 0
  let j = 0
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      i++
      j++
    } else if (j >= b.length || (i < a.length && lengths[i + 1]![j]! >= lengths[i]![j + 1]!)) lines.push(`- ${a[i++]}`.trimEnd())
    else lines.push(`+ ${b[j++]}`.trimEnd())
  }
  return lines.join('\n')
}
