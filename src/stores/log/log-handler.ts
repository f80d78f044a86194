import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { openFilesError } from '../../kubernetes/util/index.ts'
import { HttpError, type HttpUser, RequestLimiter, readBody, send, sendError, sendJson } from '../http/index.ts'
import type { LogStore, ReadOptions } from './log-store.ts'
import { TimestampPrefixer } from './log-times.ts'
import { checkRunKey, LogNameError, type RunKey } from './run-key.ts'

export type LogAccessRequest = {
  user: HttpUser | undefined
  namespace: string
  run: string
  verb: 'read' | 'write'
}
/** `isRunMissing`: the Run does not exist (any more). */
export type LogAccess = { allowed: true; isRunMissing?: boolean } | { allowed: false; code: 401 | 403 | 404 | 503; message: string }

export type LogHandlerOptions = {
  store: LogStore
  authorize(request: LogAccessRequest): Promise<LogAccess>
  /** A client that is idle for this long is disconnected. Default 30,000. */
  idleMs?: number
  /** Maximum bytes of one append. Default 1 MiB. */
  maxBodyBytes?: number
  /** Maximum number of concurrent followers over all Runs, of which one user can be a quarter. Default 1,000. */
  maxFollowers?: number
  /** Default: a new one. */
  limiter?: RequestLimiter | undefined
  /** How often a follower is authenticated and authorized again. Default 10,000. */
  revalidateMs?: number
  /** Called with the error behind a response `InternalError`. */
  onError?: (error: unknown) => void
}

export type LogContext = {
  user: HttpUser | undefined
  /** The user of the same credential now; undefined if it is no longer valid. A rejection means that this is unknown. Default: `user`. */
  reauthenticate?(): Promise<HttpUser | undefined>
}

export type LogHandler = (req: IncomingMessage, res: ServerResponse, context: LogContext) => Promise<void>

/**
 * Serves `/logs/<namespace>/<run>`. `POST ?offset=N` appends (idempotent; 409 `Gap` with `expected`, 409 `Ended`), an empty `POST` returns
 * the offset of the next append, `POST ?end=1` ends the log. `full` in a response means that what follows is dropped: the sender may drop it and
 * report its size with `&dropped=N` at the end. `GET ?tail=N|offset=N` returns the text with its position in `Oarlock-Offset`
 * and `Oarlock-Next-Offset`; `since=MS` begins with what was stored at that time, and `timestamps=1` prefixes each line with its time
 * (`Oarlock-Times: missing` for a log that an earlier version stored); with `follow=1` it continues until the log ends, and is aborted when the user may no longer read it.
 * Never rejects, and never responds 500 to a client error. Errors are `{error:{code,message}}`.
 */
export function createLogHandler(options: LogHandlerOptions): LogHandler {
  const { store, authorize, idleMs = 30_000, maxBodyBytes = 1024 * 1024, maxFollowers = 1_000, revalidateMs = 10_000, onError } = options
  const { limiter = new RequestLimiter() } = options
  const maxFollowersPerUser = Math.ceil(maxFollowers / 4)
  /** By user. */
  const followers = new Map<string, number>()
  let allFollowers = 0

  return async (req, res, { user, reauthenticate = async () => user }) => {
    const limited = limiter.begin(req, res)
    try {
      const { key, query } = parseTarget(req)
      const method = req.method ?? 'GET'
      if (method !== 'GET' && method !== 'POST')
        throw new HttpError(405, 'MethodNotAllowed', `${method} is not allowed here, use GET or POST`)
      const access = await limited.authorize(user, () => authorize({ user, ...key, verb: method === 'GET' ? 'read' : 'write' }))
      if (!access.allowed) {
        const codes = { 401: 'Unauthorized', 403: 'Forbidden', 404: 'NotFound', 503: 'Unavailable' }
        throw new HttpError(access.code, codes[access.code], access.message)
      }
      // The log of a deleted Run is kept for a while; one that has not started has an empty log.
      if (method === 'GET' && access.isRunMissing && (await store.receivedBytes(key)) === 0)
        throw new HttpError(404, 'NotFound', `Run ${key.namespace}/${key.run} does not exist, and no log of it is kept`)
      const isStillAllowed = async (): Promise<boolean> => {
        const again = await authorize({ user: await reauthenticate(), ...key, verb: 'read' })
        // Undecided: an outage of the API server does not end what was allowed.
        return again.allowed || again.code === 503
      }
      const client = user?.name ?? ''
      if (method === 'GET' && isSet(query, 'follow')) await follow(client, key, query, res, isStillAllowed)
      else await limited.serve(client, () => (method === 'POST' ? append(key, query, req, res) : read(key, query, res)))
    } catch (error) {
      sendErrorResponse(res, error)
    }
  }

  async function append(key: RunKey, query: URLSearchParams, req: IncomingMessage, res: ServerResponse): Promise<void> {
    if (isSet(query, 'end')) {
      await store.end(key, wholeNumber(query, 'dropped'))
      return sendJson(res, 200, { ended: true })
    }
    const offset = wholeNumber(query, 'offset')
    const bytes = await readBody(req, { maxBytes: maxBodyBytes, idleMs })
    if (bytes.byteLength === 0) return sendJson(res, 200, { offset: await store.receivedBytes(key) })
    if (offset === undefined)
      throw new HttpError(
        400,
        'BadRequest',
        'offset is required: the position of the body in all bytes sent so far; an empty POST returns it',
      )
    const result = await store.append(key, offset, bytes)
    if (result.kind === 'appended') return sendJson(res, 200, { offset: result.offset, ...(result.isFull && { full: true }) })
    if (result.kind === 'ended') throw new HttpError(409, 'Ended', 'the log has ended')
    throw new HttpError(409, 'Gap', `offset must be at most ${result.expected}, got ${offset}: the bytes in between are missing`, {
      expected: result.expected,
    })
  }

  async function read(key: RunKey, query: URLSearchParams, res: ServerResponse): Promise<void> {
    const { bytes, offset, nextOffset, ended } = await store.read(key, rangeOf(query))
    const position = { 'oarlock-offset': offset, 'oarlock-next-offset': nextOffset, 'oarlock-ended': String(ended) }
    const times = isSet(query, 'timestamps') ? await store.times(key) : undefined
    const text = times ? new TimestampPrefixer(offset).push(bytes, times) : bytes
    send(res, 200, textType, text, { ...position, ...(await timesHeader(key, query, nextOffset)), ...noSniff }, idleMs * 2)
  }

  async function follow(
    user: string,
    key: RunKey,
    query: URLSearchParams,
    res: ServerResponse,
    isStillAllowed: () => Promise<boolean>,
  ): Promise<void> {
    const options = rangeOf(query)
    const own = followers.get(user) ?? 0
    if (own >= maxFollowersPerUser)
      throw new HttpError(429, 'TooManyFollowers', `the limit of ${maxFollowersPerUser} followers of one user is reached; retry later`)
    if (allFollowers >= maxFollowers)
      throw new HttpError(503, 'TooManyFollowers', `the limit of ${maxFollowers} followers is reached; retry later`)
    followers.set(user, own + 1)
    allFollowers++
    const closed = new AbortController()
    res.once('close', () => closed.abort())
    const revalidation = setInterval(() => {
      isStillAllowed().then(
        isAllowed => isAllowed || res.destroy(),
        () => {},
      )
    }, revalidateMs)
    try {
      res.socket?.setNoDelay(true)
      const header = await timesHeader(key, query, await store.receivedBytes(key))
      res.writeHead(200, { 'content-type': textType, 'cache-control': 'no-store', ...header, ...noSniff })
      res.flushHeaders()
      let prefixer: TimestampPrefixer | undefined
      const onStart = (offset: number) => {
        if (isSet(query, 'timestamps')) prefixer = new TimestampPrefixer(offset)
      }
      for await (const bytes of store.follow(key, { ...options, signal: closed.signal, onStart })) {
        const text = prefixer ? prefixer.push(bytes, await store.times(key)) : bytes
        if (res.destroyed) return
        // The next chunk is read from disk when this one was sent: a slow client holds one chunk, and an idle one is disconnected.
        if (!res.write(text)) await waitForDrain(res, idleMs, closed.signal)
      }
      res.end()
    } finally {
      clearInterval(revalidation)
      const rest = (followers.get(user) ?? 1) - 1
      if (rest > 0) followers.set(user, rest)
      else followers.delete(user)
      allFollowers--
    }
  }

  /** Whether a log that is not empty has times, for a client that asks for them. */
  async function timesHeader(key: RunKey, query: URLSearchParams, size: number): Promise<Record<string, string>> {
    if ((!isSet(query, 'timestamps') && query.get('since') === null) || size === 0) return {}
    return { 'oarlock-times': (await store.times(key)).length > 0 ? 'present' : 'missing' }
  }

  function sendErrorResponse(res: ServerResponse, error: unknown): void {
    if (res.headersSent || res.destroyed) {
      // During a stream an error can only be reported by closing the connection.
      res.destroy()
      return
    }
    const http = toHttpError(error)
    if (http.status === 500) onError?.(error)
    sendError(res, http)
  }
}

const textType = 'text/plain; charset=utf-8'
const noSniff = { 'x-content-type-options': 'nosniff' }

async function waitForDrain(res: ServerResponse, idleMs: number, signal: AbortSignal): Promise<void> {
  const timeout = setTimeout(() => res.destroy(), idleMs)
  try {
    await once(res, 'drain', { signal })
  } finally {
    clearTimeout(timeout)
  }
}

function parseTarget(req: IncomingMessage): { key: RunKey; query: URLSearchParams } {
  const url = URL.canParse(req.url ?? '', 'http://x') ? new URL(req.url ?? '', 'http://x') : undefined
  let parts: string[]
  try {
    parts = url?.pathname.split('/').slice(1).map(decodeURIComponent) ?? []
  } catch {
    throw new HttpError(400, 'BadRequest', 'the path is not valid percent-encoding')
  }
  const [root, namespace, run] = parts
  if (url === undefined || root !== 'logs' || !namespace || !run || parts.length > 3) {
    throw new HttpError(404, 'NotFound', 'no such path; logs are served at /logs/<namespace>/<run>')
  }
  const key = { namespace, run }
  // Before the request is authorized: the API server would be asked for an object of this name.
  checkRunKey(key)
  return { key, query: url.searchParams }
}

const rangeOf = (query: URLSearchParams): ReadOptions => ({
  offset: wholeNumber(query, 'offset'),
  tailLines: wholeNumber(query, 'tail'),
  sinceMs: wholeNumber(query, 'since'),
})

const isSet = (query: URLSearchParams, name: string) => query.get(name) === '1' || query.get(name) === 'true'

function wholeNumber(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name)
  if (text === null) return undefined
  if (!/^\d{1,15}$/.test(text))
    throw new HttpError(400, 'BadRequest', `${name} must be a whole number, got ${JSON.stringify(text.slice(0, 100))}`)
  return Number(text)
}

function toHttpError(error: unknown): HttpError {
  if (error instanceof HttpError) return error
  if (error instanceof LogNameError) return new HttpError(400, 'BadRequest', error.message)
  const { code } = error as NodeJS.ErrnoException
  if (code === 'ENOSPC' || code === 'EDQUOT') return new HttpError(507, 'DiskFull', 'the disk of the log store is full')
  const openFiles = openFilesError(error)
  if (openFiles !== undefined) return new HttpError(503, 'Unavailable', openFiles)
  return new HttpError(500, 'InternalError', 'the server failed to handle the request')
}
