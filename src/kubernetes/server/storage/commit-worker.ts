import { parentPort, workerData } from 'node:worker_threads'
import { Database, toStartError } from './database.ts'
import type { FromStorageThread, Row, RowsBatch, StorageThreadOptions, ToStorageThread } from './protocol.ts'
import type { Corruption } from './read-rows.ts'
import { ServerStartError } from './start-error.ts'

// The thread that owns the file: fsync stops this event loop, never the one that answers requests.
const port = parentPort!
const post = (message: FromStorageThread) => port.postMessage(message)
const batchBytes = 512 * 1024
const batchesAhead = 4

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
      post({ type: 'failed', errcode: errcode ?? 0, message: text })
    }
  })
}

function open(options: StorageThreadOptions): Database | undefined {
  try {
    const opened = new Database(options)
    const corruptions = [...opened.structureErrors().map(what => ({ what, rows: 0 })), ...readAll(opened, options)]
    const { foundFormat, compactedBytes } = opened
    post({ type: 'ready', revisions: opened.revisions(), floor: opened.floor(), report: { foundFormat, compactedBytes, corruptions } })
    // Nobody waits for this but the first write.
    if (options.synchronous === 'FULL') opened.preallocateWal()
    return opened
  } catch (caught) {
    const error = toStartError(caught, options.file)
    const message = error instanceof Error ? error.message : String(error)
    const code = error instanceof ServerStartError ? error.code : 'DataCorrupt'
    post({ type: 'refused', code, message })
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
    for (let taken = Atomics.load(loadedBatches, 0); posted - taken > batchesAhead; taken = Atomics.load(loadedBatches, 0)) {
      Atomics.wait(loadedBatches, 0, taken, 1_000)
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

function toRowsBatch(rows: readonly Row[]): RowsBatch {
  const resources: string[] = []
  const numbers = new Float64Array(rows.length * 3)
  const keys = new Array<string>(rows.length)
  const texts = new Array<string>(rows.length)
  for (const [i, [id, name, key, revision, text]] of rows.entries()) {
    let resource = resources.lastIndexOf(name)
    if (resource < 0) resource = resources.push(name) - 1
    numbers[3 * i] = id
    numbers[3 * i + 1] = revision
    numbers[3 * i + 2] = resource
    keys[i] = key
    texts[i] = text
  }
  return { type: 'rows', resources, numbers, keys, texts }
}
