/** Prints rows as an aligned table; numbers are right-aligned. */
export function printTable(rows: Record<string, string | number>[]): void {
  const columns = Object.keys(rows[0] ?? {})
  const text = (value: string | number | undefined) => (typeof value === 'number' ? formatNumber(value) : (value ?? ''))
  const width = (column: string) => Math.max(column.length, ...rows.map(row => text(row[column]).length))
  const line = (cells: (column: string) => string, pad: (column: string) => boolean) =>
    columns.map(column => (pad(column) ? cells(column).padStart(width(column)) : cells(column).padEnd(width(column)))).join('  ')
  const numeric = (column: string) => typeof rows[0]?.[column] === 'number'
  console.log(line(column => column, numeric))
  for (const row of rows) console.log(line(column => text(row[column]), numeric))
}

function formatNumber(value: number): string {
  if (Number.isInteger(value) || Math.abs(value) >= 100) return Math.round(value).toLocaleString('en-US')
  return value.toFixed(Math.abs(value) < 10 ? 2 : 1)
}
