import type { StyledSpan } from './ansi.ts'

/** Text that is shown in one way. */
export type Piece = { readonly text: string; readonly classes: string; readonly isMatch: boolean }
type Range = { readonly start: number; readonly end: number }

/** Divides a line where its colours and the matches of a search begin and end. Both are in their order and do not overlap; what is beyond the text is left out. */
export function piecesOf(text: string, spans: readonly StyledSpan[], matches: readonly Range[]): Piece[] {
  if (spans.length === 0 && matches.length === 0) return text === '' ? [] : [{ text, classes: '', isMatch: false }]
  const edges = new Set([0, text.length])
  for (const ranges of [spans, matches])
    for (const { start, end } of ranges) {
      if (start >= text.length) break
      edges.add(start).add(Math.min(end, text.length))
    }
  const sorted = [...edges].sort((a, b) => a - b)
  let [span, match] = [0, 0]
  return sorted.slice(1).map((end, index) => {
    const start = sorted[index] as number
    const covers = (range: Range | undefined) => range !== undefined && range.start <= start && range.end >= end
    while ((spans[span]?.end ?? end) <= start) span++
    while ((matches[match]?.end ?? end) <= start) match++
    const current = spans[span]
    return { text: text.slice(start, end), classes: covers(current) ? (current?.classes ?? '') : '', isMatch: covers(matches[match]) }
  })
}
