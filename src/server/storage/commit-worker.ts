import { parentPort, workerData } from 'node:worker_threads'
import { Database, startError } from './database.ts'
import type { FromWorker, Row, RowsBatch, ToWorker, WorkerOptions } from './protocol.ts'
import { ServerStartError } from './start-error.ts'

// The thread that owns the file: fsync stops this event loop, never the one that answers requests.
const port = parentPort!
const post = (message: FromWorker) => port.postMessage(message)
const batchBytes = 512 * 1024
const batchesAhead = 4

const database = open(workerData as WorkerOptions)
if (database) {
  port.on('message', (message: ToWorker) => {
    if (message.type === 'close') {
      database.close()
      post({ type: 'closed' })
      port.close()
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

function open(options: WorkerOptions): Database | undefined {
  try {
    const opened = new Database(options)
    readAll(opened, options)
    post({ type: 'ready', revisions: opened.revisions() })
    return opened
  } catch (caught) {
    const error = startError(caught, options.file)
    const message = error instanceof Error ? error.message : String(error)
    const code = error instanceof ServerStartError ? error.code : 'DataCorrupt'
    post({ type: 'refused', code, message })
    port.close()
    return undefined
  }
}

function readAll(opened: Database, { takenBatches }: WorkerOptions): void {
  let rows: Row[] = []
  let bytes = 0
  let posted = 0
  const postRows = () => {
    post(toRowsBatch(rows))
    rows = []
    bytes = 0
    posted++
    for (let taken = Atomics.load(takenBatches, 0); posted - taken > batchesAhead; taken = Atomics.load(takenBatches, 0)) {
      Atomics.wait(takenBatches, 0, taken, 1_000)
    }
  }
  for (const row of opened.rows()) {
    rows.push(row)
    bytes += row[3].length
    if (bytes >= batchBytes) postRows()
  }
  if (rows.length > 0) post(toRowsBatch(rows))
}

function toRowsBatch(rows: readonly Row[]): RowsBatch {
  const resources: string[] = []
  const numbers = new Float64Array(rows.length * 3)
  const texts = new Array<string>(rows.length)
  for (const [i, [id, name, revision, text]] of rows.entries()) {
    let resource = resources.lastIndexOf(name)
    if (resource < 0) resource = resources.push(name) - 1
    numbers[3 * i] = id
    numbers[3 * i + 1] = revision
    numbers[3 * i + 2] = resource
    texts[i] = text
  }
  return { type: 'rows', resources, numbers, texts }
}
