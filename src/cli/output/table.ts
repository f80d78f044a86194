import { pad, visibleWidth } from './style.ts'

const gap = '   '

/** The lines of a table as kubectl prints it: columns as wide as their widest cell, three spaces apart, no trailing spaces. */
export function renderTable(headers: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const widths = headers.map((header, column) => Math.max(header.length, ...rows.map(row => visibleWidth(row[column] ?? ''))))
  return [headers, ...rows].map(row =>
    headers
      .map((_, column) => pad(row[column] ?? '', widths[column]!))
      .join(gap)
      .trimEnd(),
  )
}
