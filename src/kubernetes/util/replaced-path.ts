/** Marks what one restore has replaced: its time in UTC, and a random part, as two restores may run in one second. */
export function replacementStamp(nowMs: number): string {
  const time = new Date(nowMs).toISOString().replaceAll(/[-:]|\.\d+/g, '')
  const random = Math.floor(Math.random() * 0x1_0000)
  return `${time}-${random.toString(16).padStart(4, '0')}`
}

/** Where a file or directory is kept that a restore has replaced: `oarlock.db.replaced-20260601T100000Z-1a2b`. */
export const replacedPath = (path: string, stamp: string): string => `${path}.replaced-${stamp}`
