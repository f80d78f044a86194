/** The primary result codes of SQLite that this module handles: https://www.sqlite.org/rescode.html */
export const sqliteBusy = 5
export const sqliteReadOnly = 8
export const sqliteIoError = 10
export const sqliteCorrupt = 11
export const sqliteFull = 13
export const sqliteCantOpen = 14
export const sqliteNotADatabase = 26

/** The primary result code of an SQLite error; 0 for other errors. */
export function sqliteCode(error: unknown): number {
  const errcode = (error as { errcode?: unknown } | undefined)?.errcode
  return typeof errcode === 'number' ? errcode & 0xff : 0
}
