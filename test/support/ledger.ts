import { existsSync, readFileSync } from 'node:fs'

/** A line that a command of an engine appended: which step of which item, in which Run, when. */
export type LedgerLine = { what: string; item: string; runUid: string; atMs: number }

/** A shell command that appends a line to the ledger at `path`. */
export const record = (path: string, what: string, item: string): string =>
  `echo ${what} ${item} $OARLOCK_RUN_UID $(date +%s%3N) >> ${path}`

export function readLedger(path: string): LedgerLine[] {
  if (!existsSync(path)) return []
  return readFileSync(path, 'utf8')
    .split('\n')
    .filter(Boolean)
    .map(line => line.split(' '))
    .map(([what = '', item = '', runUid = '', atMs]) => ({ what, item, runUid, atMs: Number(atMs) }))
}

/** How often each item was completed, as `{ a: 1, b: 2 }`. */
export function countDone(lines: readonly LedgerLine[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { what, item } of lines) if (what === 'done') counts[item] = (counts[item] ?? 0) + 1
  return counts
}
