import { existsSync, readFileSync } from 'node:fs'

/** One line that an engine's own command wrote: what happened to what, in which Run, when. */
export type LedgerLine = { what: string; item: string; runUid: string; atMs: number }

/** A shell command that adds a line to the ledger at `path`. */
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

/** How often each item was done, as `{ a: 1, b: 2 }`. */
export function countDone(lines: readonly LedgerLine[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { what, item } of lines) if (what === 'done') counts[item] = (counts[item] ?? 0) + 1
  return counts
}
