import type { StyledSpan } from './ansi.ts'

/** Text that is shown in one way. */
export type Piece = { readonly text: string; readonly classes: string; readonly isMatch: boolean }

/** Divides a line where its colours and the matches of a search begin and end. */
export function piecesOf(
  text: string,
  spans: readonly StyledSpan[],
  matches: readonly { readonly start: number; readonly end: number }[],
): Piece[] {
  if (spans.length === 0 && matches.length === 0) return text === '' ? [] : [{ text, classes: '', isMatch: false }]
  const edges = new Set([0, text.length])
  for (const { start, end } of [...spans, ...matches]) edges.add(start).add(end)
  const sorted = [...edges].sort((a, b) => a - b)
  return sorted.slice(1).map((end, index) => {
    const start = sorted[index] as number
    const covers = (range: { readonly start: number; readonly end: number }) => range.start <= start && range.end >= end
    return { text: text.slice(start, end), classes: spans.find(covers)?.classes ?? '', isMatch: matches.some(covers) }
  })
}
