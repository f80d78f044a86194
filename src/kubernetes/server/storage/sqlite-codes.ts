/** SQLite's primary result codes that mean something to us: https://www.sqlite.org/rescode.html */
export const sqliteBusy = 5
export const sqliteReadOnly = 8
export const sqliteIoError = 10
export const sqliteCorrupt = 11
export const sqliteFull = 13
export const sqliteCantOpen = 14
export const sqliteNotADatabase = 26

/** SQLite's primary result code of an error, 0 when it is not SQLite's. */
export function sqliteCode(error: unknown): number {
  const errcode = (error as { errcode?: unknown } | undefined)?.errcode
  return typeof errcode === 'number' ? errcode & 0xff : 0
}
