/** The result of parsing Pod indexes of an indexed Job, such as `1,3-5,7`: ascending and less than the number of completions. */
export type ParsedIndexes = { readonly total: number } | { readonly reason: string }

/** The number of indexes in `text`, or why it is invalid. */
export function readIndexes(text: string, completions: number): ParsedIndexes {
  let total = 0
  let last = -1
  if (text === '') return { total }
  for (const fragment of text.split(',')) {
    const interval = readInterval(fragment, completions)
    if (typeof interval === 'string') return { reason: interval }
    const [first, end] = interval
    if (last >= first) return { reason: `non-increasing order, previous: ${last}, current: ${first}` }
    total += end - first + 1
    last = end
  }
  return { total }
}

/** The first index that both texts contain; undefined if there is none. Invalid fragments are skipped. */
export function firstCommonIndex(a: string, b: string, completions: number): number | undefined {
  const intervals = (text: string) =>
    text.split(',').flatMap(fragment => {
      const interval = readInterval(fragment, completions)
      return typeof interval === 'string' ? [] : [interval]
    })
  const others = intervals(b)
  let position = 0
  for (const [from, to] of intervals(a)) {
    while (position < others.length && others[position]![1] < from) position++
    const otherInterval = others[position]
    if (otherInterval && otherInterval[0] <= to) return Math.max(from, otherInterval[0])
  }
  return undefined
}

function readInterval(fragment: string, completions: number): [from: number, to: number] | string {
  const limits = fragment.split('-')
  if (limits.length > 2) {
    return `the fragment ${JSON.stringify(fragment)} violates the requirement that an index interval can have at most two parts separated by '-'`
  }
  const numbers: number[] = []
  for (const limit of limits) {
    if (!/^\+?\d{1,15}$/.test(limit)) return `cannot convert string to integer for index: ${JSON.stringify(limit)}`
    if (Number(limit) >= completions) return `too large index: ${JSON.stringify(limit)}`
    numbers.push(Number(limit))
  }
  const [from = 0, to = from] = numbers
  if (numbers.length === 2 && from >= to) return `non-increasing order, previous: ${from}, current: ${to}`
  return [from, to]
}
