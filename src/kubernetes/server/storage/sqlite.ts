import type { DatabaseSync as Database } from 'node:sqlite'

// Not imported: an older Node would report a missing module before `check-node-version.ts` can report its version.
const sqlite = process.getBuiltinModule('node:sqlite')
export type DatabaseSync = Database
export const DatabaseSync: typeof Database = sqlite.DatabaseSync
