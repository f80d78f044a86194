import type { ServerStartErrorCode } from './start-error.ts'

/** One row of the database: id, resource, key, revision, JSON. */
export type Row = [id: number, resource: string, key: string, revision: number, text: string]

/** One change; without `row` the object with this id is deleted. */
export type RowChange = { id: number; resource: string; revision: number; row: Row | undefined; isNew: boolean }

export type ToWorker = { type: 'commit'; changes: RowChange[] } | { type: 'close' }

export type FromWorker =
  | { type: 'rows'; rows: Row[] }
  | { type: 'ready'; revisions: [resource: string, revision: number][] }
  | { type: 'refused'; code: ServerStartErrorCode; message: string }
  | { type: 'committed'; durationMs: number }
  | { type: 'failed'; errcode: number; message: string }
  | { type: 'closed' }

export type WorkerOptions = { file: string; synchronous: 'FULL' | 'OFF' }
