import { escapeHidden } from '../../kubernetes/util/index.ts'
import { pad, visibleWidth } from './style.ts'

const gap = '   '

/** The lines of a table as kubectl prints it: columns as wide as their widest cell, three spaces apart, no trailing spaces. */
export function renderTable(headers: readonly string[], rows: readonly (readonly string[])[]): string[] {
  return renderTableWithin([], headers, rows).lines
}

/** A table of which each cell is one line, with hidden characters escaped, and whose columns have at least `minWidths`, and the widths that they have. */
export function renderTableWithin(
  minWidths: readonly number[],
  headers: readonly string[],
  rows: readonly (readonly string[])[],
): { lines: string[]; widths: number[] } {
  const cells = rows.map(row => row.map(escapeHidden))
  const widths = headers.map((header, column) =>
    Math.max(header.length, minWidths[column] ?? 0, ...cells.map(row => visibleWidth(row[column] ?? ''))),
  )
  const lines = [headers, ...cells].map(row =>
    headers
      .map((_, column) => pad(row[column] ?? '', widths[column]!))
      .join(gap)
      .trimEnd(),
  )
  return { lines, widths }
}
