/** The part of a table that the page has asked for. */
export type RowWindow = { readonly offset: number; readonly limit: number }

const step = 50
/** Enough for a large screen, and for some scrolling before the next rows are needed. */
const windowRows = 200
/** The next window is requested when so few rows are left beyond what is visible. */
const marginRows = 40

/** The window for rows `first` to `last` that are visible: the same one as long as it has enough around them. */
export function windowFor(current: RowWindow, first: number, last: number): RowWindow {
  const { offset, limit } = current
  const hasAbove = offset === 0 || first - marginRows >= offset
  const hasBelow = last + marginRows <= offset + limit
  if (hasAbove && hasBelow) return current
  const middle = Math.floor((first + last) / 2)
  const start = Math.max(0, Math.floor((middle - windowRows / 2) / step) * step)
  return start === offset && limit === windowRows ? current : { offset: start, limit: windowRows }
}

export const firstWindow: RowWindow = { offset: 0, limit: windowRows }
