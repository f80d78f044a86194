/** Rows that are rendered before and after the visible ones. */
const overscan = 8
/** The range moves in steps, so that most frames of scrolling render nothing. */
const step = 4

/** The rows to render, `first` to before `end`, of a table that is scrolled to `topPx`. */
export function visibleRows(
  topPx: number,
  heightPx: number,
  rowPx: number,
  total: number,
): { readonly first: number; readonly end: number } {
  const top = Math.floor(topPx / rowPx / step) * step
  const first = Math.max(0, Math.min(top, total) - overscan)
  const end = Math.min(total, top + step + Math.ceil(heightPx / rowPx) + overscan)
  return { first, end: Math.max(first, end) }
}
