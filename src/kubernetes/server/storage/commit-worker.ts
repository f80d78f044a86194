import { parentPort, workerData } from 'node:worker_threads'
import { toRowsBatch } from './columns.ts'
import { Database, toStartError } from './database.ts'
import type { FromStorageThread, Row, StorageThreadOptions, ToStorageThread } from './protocol.ts'
import type { Corruption } from './read-rows.ts'
import { ServerStartError } from './start-error.ts'

// The thread that owns the file: fsync blocks this event loop, never the one that serves requests.
const port = parentPort!
const post = (message: FromStorageThread) => port.postMessage(message)
const batchBytes = 512 * 1024
const maxBatchesAhead = 4

const database = open(workerData as StorageThreadOptions)
if (database) {
  let backup: Promise<void> | undefined
  const close = () => {
    database.close()
    post({ type: 'closed' })
    port.close()
  }
  port.on('message', (message: ToStorageThread) => {
    if (message.type === 'close') {
      if (backup) void backup.then(close)
      else close()
      return
    }
    if (message.type === 'backup') {
      backup = database.backUp(message.path).then(
        () => post({ type: 'backedUp', error: undefined }),
        (error: Error) => post({ type: 'backedUp', error: error.message }),
      )
      return
    }
    const startMs = performance.now()
    try {
      database.write(message)
      post({ type: 'committed', durationMs: performance.now() - startMs })
    } catch (error) {
      const { errcode, message: text } = error as { errcode?: number; message: string }
      post({ type: 'commitFailed', errcode: errcode ?? 0, message: text })
    }
  })
}

function open(options: StorageThreadOptions): Database | undefined {
  try {
    const opened = new Database(options)
    const corruptions = [...opened.structureErrors().map(what => ({ what, rows: 0 })), ...readAll(opened, options)]
    const { foundFormat, compactedBytes } = opened
    const report = { foundFormat, compactedBytes, corruptions }
    post({ type: 'ready', revisions: opened.revisions(), floor: opened.floor(), reservations: opened.reservations(), report })
    // The server starts meanwhile; only the first write waits for this.
    if (options.synchronous === 'FULL') opened.preallocateWal()
    return opened
  } catch (caught) {
    const error = toStartError(caught, options.file)
    const message = error instanceof Error ? error.message : String(error)
    const code = error instanceof ServerStartError ? error.code : 'DataCorrupt'
    post({ type: 'startFailed', code, message })
    port.close()
    return undefined
  }
}

function readAll(opened: Database, { loadedBatches }: StorageThreadOptions): Corruption[] {
  const corruptions: Corruption[] = []
  let rows: Row[] = []
  let bytes = 0
  let posted = 0
  const postRows = () => {
    post(toRowsBatch(rows))
    rows = []
    bytes = 0
    posted++
    for (let loaded = Atomics.load(loadedBatches, 0); posted - loaded > maxBatchesAhead; loaded = Atomics.load(loadedBatches, 0)) {
      Atomics.wait(loadedBatches, 0, loaded, 1_000)
    }
  }
  for (const read of opened.rows()) {
    if ('corruption' in read) {
      corruptions.push(read.corruption)
      continue
    }
    rows.push(read.row)
    bytes += read.row[4].length
    if (bytes >= batchBytes) postRows()
  }
  if (rows.length > 0) post(toRowsBatch(rows))
  return corruptions
}
