import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import type { RequestMessage, ResponseMessage } from '../../kubernetes/util/index.ts'
import { StateDatabase } from './state-database.ts'
import { StateStoreError, type StateStoreErrorCode, toStateStoreError } from './state-store-error.ts'
import type { StateLimits } from './state-types.ts'

export type StoreMethod = Exclude<keyof StateDatabase, 'transaction' | 'stacksWithFacts' | 'openJournals'>
/** `open` comes first, and responds with {@link StateDatabase.stacksWithFacts} once the database is open. */
export type StoreRequest = { method: StoreMethod | 'open'; args: readonly unknown[] }
/** `openJournals`: the present number, after a call that may change it. */
export type StoreResponse =
  | { ok: true; value: unknown; openJournals?: number }
  | { ok: false; code: StateStoreErrorCode; message: string; cause?: string }
export type ThreadOptions = { directory: string; key: Uint8Array; limits: StateLimits }

/** Maximum number of calls in one commit; the others wait for the next one. */
const callsPerCommit = 64

if (parentPort !== null) serve(parentPort, workerData as ThreadOptions)

type Call = RequestMessage<StoreRequest>
type CallResponse = ResponseMessage<StoreResponse>

/** The store's thread: calls that are pending together share one transaction and get their responses when it is on disk (invariant 5). */
function serve(port: NonNullable<typeof parentPort>, options: ThreadOptions): void {
  port.once('message', ({ requestId }: Call) => {
    let database: StateDatabase
    let stacks: string[]
    try {
      database = new StateDatabase(options)
      stacks = database.stacksWithFacts()
    } catch (error) {
      port.postMessage(failure(requestId, error))
      port.close()
      return
    }
    /** Backups in progress: the file is closed after them. */
    const backups = new Set<Promise<void>>()
    port.on('message', (first: Call) => {
      const calls = pendingCalls(port, first)
      for (const { requestId, body } of calls) {
        if (body.method !== 'backUp') continue
        const done = backUp(port, database, requestId, body.args[0] as string).finally(() => backups.delete(done))
        backups.add(done)
      }
      executeCalls(
        port,
        database,
        calls.filter(({ body }) => body.method !== 'backUp'),
        backups,
      )
    })
    port.postMessage({
      responseTo: requestId,
      body: { ok: true, value: stacks, openJournals: database.openJournals },
    } satisfies CallResponse)
  })
}

/** `first` and the calls queued after it, up to {@link callsPerCommit}. */
function pendingCalls(port: NonNullable<typeof parentPort>, first: Call): Call[] {
  const calls = [first]
  while (calls.length < callsPerCommit) {
    const next = receiveMessageOnPort(port)
    if (next === undefined) break
    calls.push(next.message as Call)
  }
  return calls
}

/** Apart from the other calls: it takes a while, and they continue meanwhile. */
async function backUp(port: NonNullable<typeof parentPort>, database: StateDatabase, requestId: number, path: string): Promise<void> {
  try {
    await database.backUp(path)
    port.postMessage({ responseTo: requestId, body: { ok: true, value: undefined } } satisfies CallResponse)
  } catch (error) {
    port.postMessage(failure(requestId, error))
  }
}

function executeCalls(
  port: NonNullable<typeof parentPort>,
  database: StateDatabase,
  calls: Call[],
  backups: ReadonlySet<Promise<void>>,
): void {
  if (calls.length === 0) return
  const close = calls.find(({ body }) => body.method === 'close')
  const responses = callInOneTransaction(
    database,
    calls.filter(call => call !== close),
  )
  // After the commit.
  const { openJournals } = database
  for (const { responseTo, body } of responses) {
    const response = { responseTo, body: body.ok ? { ...body, openJournals } : body }
    port.postMessage(response, transferables(response))
  }
  if (close !== undefined) void Promise.all(backups).then(() => closeDatabase(port, database, close.requestId))
}

function closeDatabase(port: NonNullable<typeof parentPort>, database: StateDatabase, requestId: number): void {
  try {
    database.close()
    port.postMessage({ responseTo: requestId, body: { ok: true, value: undefined } } satisfies CallResponse)
  } catch (error) {
    port.postMessage(failure(requestId, error))
  }
  port.close()
}

function callInOneTransaction(database: StateDatabase, calls: readonly Call[]): CallResponse[] {
  try {
    return database.transaction(() =>
      calls.map(message => {
        try {
          return call(database, message)
        } catch (error) {
          // Rejected before anything was written: the other calls are not affected.
          if (error instanceof StateStoreError) return failure(message.requestId, error)
          throw error
        }
      }),
    )
  } catch {
    return callOneByOne(database, calls)
  }
}

/** Repeats a failed commit call by call, so that one failing call does not fail the others. */
function callOneByOne(database: StateDatabase, calls: readonly Call[]): CallResponse[] {
  return calls.map(message => {
    try {
      return database.transaction(() => call(database, message))
    } catch (error) {
      return failure(message.requestId, error)
    }
  })
}

function call(database: StateDatabase, { requestId, body: { method, args } }: Call): CallResponse {
  const run = database[method as StoreMethod] as (...args: unknown[]) => unknown
  return { responseTo: requestId, body: { ok: true, value: run.apply(database, [...args]) } }
}

function failure(requestId: number, error: unknown): CallResponse {
  const { code, message, cause } = toStateStoreError(error, 'executing a call')
  const causeText = cause === undefined ? undefined : String((cause as Error).message ?? cause)
  return { responseTo: requestId, body: { ok: false, code, message, cause: causeText } }
}

function transferables({ body }: CallResponse): ArrayBuffer[] {
  const bytes = body.ok ? (body.value as { bytes?: unknown } | undefined)?.bytes : undefined
  // Small buffers share a pool in Node, which must not be transferred.
  return bytes instanceof Uint8Array && bytes.byteLength === bytes.buffer.byteLength ? [bytes.buffer as ArrayBuffer] : []
}
