import { parentPort, workerData } from 'node:worker_threads'
import { Database, startError } from './database.ts'
import type { FromWorker, Row, ToWorker, WorkerOptions } from './protocol.ts'
import { ServerStartError } from './start-error.ts'

// The thread that owns the file: fsync stops this event loop, never the one that answers requests.
const port = parentPort!
const post = (message: FromWorker) => port.postMessage(message)
const rowsPerMessage = 1_000

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
    let rows: Row[] = []
    for (const row of opened.rows()) {
      rows.push(row)
      if (rows.length < rowsPerMessage) continue
      post({ type: 'rows', rows })
      rows = []
    }
    post({ type: 'rows', rows })
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
