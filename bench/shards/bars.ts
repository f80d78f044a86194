/** The bars of issue 16: pure, from the rows that a bench prints. A figure that is missing or not a number does not meet its bar. */
import type { FaultName } from './faults.ts'

type Row = Readonly<Record<string, string | number>>
type Bar = { column: string; atLeast?: number; atMost?: number }

/** Of several replicas against one. */
export const unmetThroughput = (rows: readonly Row[]): string[] =>
  rows.length < 2 ? ['no row of several replicas'] : unmet(rows.at(-1)!, [{ column: 'ratio, median of pairs', atLeast: 4.5 }])

/** Of every replica that shares the objects with others, one fifth and 15 % of what a single one needs. */
export function unmetMemory(rows: readonly Row[]): string[] {
  const shared = rows.filter(({ replica }) => replica !== 'single')
  const bars = ['received of a single one, %', 'heap of a single one, %', 'of a single one, %'].map(column => ({ column, atMost: 35 }))
  return shared.length === 0
    ? ['no row of several replicas']
    : shared.flatMap(row => unmet(row, bars).map(text => `${row.replica}: ${text}`))
}

export function unmetFaults(fault: FaultName, row: Row): string[] {
  const withoutExcuse = Number(row['two at work on a key']) - Number(row['of these: the call begun before the pause'])
  const idleS = fault === 'restart' ? 2 : Number(row['Lease, s']) + 2
  return unmet({ ...row, 'two at work on a key, but for the call begun before a pause': withoutExcuse }, [
    { column: 'reconciles', atLeast: 1 },
    { column: 'writes accepted', atLeast: 1 },
    { column: 'two at work on a key, but for the call begun before a pause', atMost: 0 },
    { column: 'began with a lower fence', atMost: 0 },
    { column: 'writes of a lower fence', atMost: 0 },
    { column: 'max, s', atMost: idleS },
    ...(fault === 'restart' ? [{ column: 'most moves of a key', atMost: 2 }] : []),
  ])
}

function unmet(row: Row, bars: readonly Bar[]): string[] {
  return bars.flatMap(({ column, atLeast = Number.NEGATIVE_INFINITY, atMost = Number.POSITIVE_INFINITY }) => {
    const value = row[column]
    if (typeof value === 'number' && value >= atLeast && value <= atMost) return []
    return [`${column} is ${value}, the bar is ${atLeast > Number.NEGATIVE_INFINITY ? `>= ${atLeast}` : `<= ${atMost}`}`]
  })
}
