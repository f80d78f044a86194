import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import { StateDatabase, type StateLimits } from './state-database.ts'
import { StateStoreError, type StateStoreErrorCode, toStateStoreError } from './state-store-error.ts'

export type StoreMethod = Exclude<keyof StateDatabase, 'transaction'>
export type ToThread = { id: number; method: StoreMethod; args: readonly unknown[] }
export type FromThread =
  | { id: number; ok: true; value: unknown }
  | { id: number; ok: false; code: StateStoreErrorCode; message: string; cause?: string }
export type ThreadOptions = { directory: string; key: Uint8Array; limits: StateLimits }

/** Calls answered by one commit at most; what waits longer than one fsync is served by the next. */
const callsPerCommit = 64

if (parentPort !== null) serve(parentPort, workerData as ThreadOptions)

/**
 * The thread of the store: calls that wait together share one transaction, and are answered after it is on disk (invariant 5).
 * Answer 0 says whether the database opened.
 */
function serve(port: NonNullable<typeof parentPort>, options: ThreadOptions): void {
  const fail = (id: number, error: unknown): FromThread => {
    const { code, message, cause } = toStateStoreError(error, 'answering')
    return { id, ok: false, code, message, cause: cause === undefined ? undefined : String((cause as Error).message ?? cause) }
  }
  let database: StateDatabase
  try {
    database = new StateDatabase(options)
  } catch (error) {
    port.postMessage(fail(0, error))
    port.close()
    return
  }
  port.postMessage({ id: 0, ok: true, value: undefined } satisfies FromThread)

  const call = ({ id, method, args }: ToThread): FromThread => {
    const run = database[method] as (...args: unknown[]) => unknown
    return { id, ok: true, value: run.apply(database, [...args]) }
  }
  // One failing call must not take the others of its commit with it, so a failed commit is repeated call by call.
  const oneByOne = (calls: ToThread[]) =>
    calls.map(message => {
      try {
        return database.transaction(() => call(message))
      } catch (error) {
        return fail(message.id, error)
      }
    })
  const together = (calls: ToThread[]) => {
    try {
      return database.transaction(() =>
        calls.map(message => {
          try {
            return call(message)
          } catch (error) {
            // Refused before anything was written: the other calls are not affected.
            if (error instanceof StateStoreError) return fail(message.id, error)
            throw error
          }
        }),
      )
    } catch {
      return oneByOne(calls)
    }
  }

  port.on('message', (first: ToThread) => {
    const calls = [first]
    while (calls.length < callsPerCommit) {
      const next = receiveMessageOnPort(port)
      if (next === undefined) break
      calls.push(next.message as ToThread)
    }
    const close = calls.find(({ method }) => method === 'close')
    const answers = together(calls.filter(message => message !== close))
    for (const answer of answers) port.postMessage(answer, transferables(answer))
    if (close !== undefined) {
      try {
        database.close()
        port.postMessage({ id: close.id, ok: true, value: undefined } satisfies FromThread)
      } catch (error) {
        port.postMessage(fail(close.id, error))
      }
      port.close()
    }
  })
}

function transferables(answer: FromThread): ArrayBuffer[] {
  const bytes = answer.ok ? (answer.value as { bytes?: unknown } | undefined)?.bytes : undefined
  // Small buffers share one pool in Node, which must not be given away.
  return bytes instanceof Uint8Array && bytes.byteLength === bytes.buffer.byteLength ? [bytes.buffer as ArrayBuffer] : []
}
