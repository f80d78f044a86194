import { parentPort, workerData } from 'node:worker_threads'
import { toRowsBatch } from './columns.ts'
import { Database, toStartError } from './database.ts'
import type { FromStorageThread, Row, StorageThreadOptions, Task, ToStorageThread } from './protocol.ts'
import type { Corruption } from './read-rows.ts'
import { lockedError, openEncryption, reencryptAll, rotateKey } from './reencryption.ts'
import type { RowEncryption } from './row-encryption.ts'
import { sqliteCode, sqliteFull } from './sqlite-codes.ts'
import { ServerStartError } from './start-error.ts'

// The thread that owns the file: fsync blocks this event loop, never the one that serves requests.
const port = parentPort!
const post = (message: FromStorageThread) => port.postMessage(message)
const batchBytes = 512 * 1024
const maxBatchesAhead = 4

const options = workerData as StorageThreadOptions
let encryption: RowEncryption
const database = await open()
if (database) {
  let task: Promise<void> | undefined
  let isClosing = false
  const close = () => {
    database.close()
    post({ type: 'closed' })
    port.close()
  }
  port.on('message', (message: ToStorageThread) => {
    if (message.type === 'close') {
      isClosing = true
      if (task) void task.then(close)
      else close()
      return
    }
    if (message.type !== 'commit') {
      task = run(database, message, () => isClosing).then(() => {
        task = undefined
      })
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

async function run(opened: Database, task: Task, isClosing: () => boolean): Promise<void> {
  try {
    if (task.type === 'backup') {
      await opened.backUp(task.path)
      post({ type: 'taskEnded', error: undefined })
      return
    }
    const done = await rotateKey(opened, options.encryptionConfig, encryption, task.removesOldKeys, isClosing)
    encryption = done.encryption
    post({ type: 'taskEnded', error: undefined, rotation: done.rotation })
  } catch (error) {
    post({ type: 'taskEnded', error: (error as Error).message })
  }
}

async function open(): Promise<Database | undefined> {
  try {
    const opened = new Database(options)
    encryption = openEncryption(options.encryptionConfig, opened)
    opened.encryptWith(encryption)
    const { corruptions, isOutdated } = readAll(opened)
    corruptions.unshift(...opened.structureErrors().map(what => ({ what, rows: 0 })))
    const reencryptionError = corruptions.length === 0 && isOutdated ? await reencrypt(opened) : undefined
    const report = { foundFormat: opened.foundFormat, compactedBytes: opened.compact(), reencryptionError, corruptions }
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

/** A full disk must not prevent the start: objects are served, and can be deleted. Returns what failed. */
async function reencrypt(opened: Database): Promise<string | undefined> {
  try {
    await reencryptAll(opened)
    return undefined
  } catch (error) {
    if (sqliteCode(error) !== sqliteFull) throw error
    return (error as Error).message
  }
}

function readAll(opened: Database): { corruptions: Corruption[]; isOutdated: boolean } {
  const { loadedBatches, file, encryptionConfig } = options
  const corruptions: Corruption[] = []
  let isOutdated = opened.hasOldForms()
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
    if ('locked' in read) throw lockedError(file, read.locked, encryptionConfig)
    isOutdated ||= read.keyName !== encryption.keyFor(read.row[1])
    rows.push(read.row)
    bytes += read.row[4].length
    if (bytes >= batchBytes) postRows()
  }
  if (rows.length > 0) post(toRowsBatch(rows))
  return { corruptions, isOutdated }
}
