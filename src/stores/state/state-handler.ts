import { createHash } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { nameErrors } from '../../kubernetes/object/index.ts'
import { BodyBudget, HttpError, readBody, send, sendError, sendJson } from '../http/index.ts'
import { describeHolder, type LockHolder, type LockInfo, toLockInfo } from './lock-holder.ts'
import type { IsHolderGone, StateStore } from './open-state-store.ts'
import type { LockResult, VersionKind, WriteResult } from './state-database.ts'
import { StateStoreError, type StateStoreErrorCode } from './state-store-error.ts'

/** Who asks for what. Everything here came from the request's path and headers; nothing of it is believed yet. */
export type StateAccessRequest = {
  user: { name: string; groups: string[] } | undefined
  /** Basic password, or a Bearer token of a request without an authenticated user: compare with `store.checkStackToken`. */
  basicPassword?: string
  namespace: string
  stack: string
  /** Set on the worker's paths. */
  runName?: string
  epoch?: number
  method: string
}

/** `run` opens the worker's paths of this Run, `person` opens the Terraform backend and the lists. */
export type StateAccess =
  | { allowed: true; stackUid: string; access: 'run' | 'person' }
  | { allowed: false; code: 401 | 403 | 404; message: string }

export type StateHandlerOptions = {
  store: StateStore
  authorize(request: StateAccessRequest): Promise<StateAccess>
  isHolderGone: IsHolderGone
  /** A request whose body stands still for so long is answered with 408. Default 30,000. */
  bodyIdleMs?: number
  /** Called with what the client only sees as `InternalError`. */
  onError?: (error: unknown) => void
  /** A lock was taken over from a holder that is gone. */
  onLockTaken?: () => void
}

export type StateHandler = (
  req: IncomingMessage,
  res: ServerResponse,
  context: { user: { name: string; groups: string[] } | undefined },
) => Promise<void>

const maxLockInfoBytes = 64 * 1024

/**
 * Serves the store at `/state/<namespace>/<stack>`: the Terraform HTTP backend (GET, POST, DELETE, LOCK, UNLOCK), `/lock`, `/token`,
 * `/versions[/N]` and `/orphans[/N]` for people; `/run/<runName>/{state,torn,inventory,lock,unlock,plan/<digest>}` with the header `Oarlock-Epoch` for workers.
 * Never rejects and never answers 500 for what a client did. Errors are `{error:{code,message}}`; a held lock is 423.
 */
export function createStateHandler(options: StateHandlerOptions): StateHandler {
  const { store, authorize, isHolderGone, bodyIdleMs = 30_000, onError, onLockTaken } = options
  const budget = new BodyBudget(store.limits.pendingBytes)
  const body = (req: IncomingMessage, maxBytes: number) => readBody(req, { maxBytes, idleMs: bodyIdleMs, budget })

  return async (req, res, { user }) => {
    try {
      const method = req.method ?? 'GET'
      const target = parseTarget(req)
      const password = passwordOf(req, user !== undefined)
      const access = await authorize({
        ...{ user, namespace: target.namespace, stack: target.stack, method },
        ...(password !== undefined && { basicPassword: password }),
        ...(target.kind === 'run' && { runName: target.runName, epoch: target.epoch }),
      })
      if (!access.allowed) throw refusedAccess(access, target.kind === 'backend')
      const needed = target.kind === 'run' ? 'run' : 'person'
      if (access.access !== needed)
        throw new HttpError(403, 'Forbidden', `this path is for a ${needed}, and this is the access of a ${access.access}`)
      const { stackUid } = access
      const path = `${target.namespace}/${target.stack}`
      if (target.kind === 'run') await serveRun(target, method, req, res, stackUid)
      else if (target.kind === 'backend') await serveBackend(target.lockId, method, req, res, stackUid, path)
      else await serveList(target, method, res, stackUid, path)
    } catch (error) {
      const http = toHttpError(error)
      if (http.status === 500) onError?.(error)
      sendError(res, http, http.status === 401 ? { 'www-authenticate': 'Basic realm="oarlock"' } : {})
    }
  }

  async function serveRun(target: RunTarget, method: string, req: IncomingMessage, res: ServerResponse, stackUid: string): Promise<void> {
    const { what, runName, epoch, sequence } = target
    const holder = { kind: 'Run' as const, runName, epoch }
    switch (`${method} ${what}`) {
      case 'GET state':
      case 'GET inventory':
        return sendVersion(res, await store.readVersion({ stackUid, kind: kindOf(what) }))
      case 'PUT state':
      case 'PUT inventory': {
        const bytes = await body(req, store.limits.maxBytes)
        return sendWritten(res, await store.writeVersion({ stackUid, runName, epoch, sequence, bytes, kind: kindOf(what) }))
      }
      case 'PUT torn': {
        // A path of its own: a server that does not know it must not take it for a state.
        const bytes = await body(req, store.limits.maxBytes)
        return sendWritten(res, await store.writeVersion({ stackUid, runName, epoch, bytes, isTorn: true }))
      }
      case 'POST lock': {
        const result = await store.lock({ stackUid, holder }, isHolderGone)
        if (result.kind === 'refused') throw lockRefused(result)
        if (result.broke) onLockTaken?.()
        return sendJson(res, 200, result)
      }
      case 'POST unlock': {
        const result = await store.unlock({ stackUid, holder })
        if (result.kind === 'refused') throw notYours(result.holder)
        return sendJson(res, 200, result)
      }
      case 'PUT plan':
        await store.putPlan({ stackUid, digest: target.digest, runName, bytes: await body(req, store.limits.maxBytes) })
        return sendJson(res, 200, { digest: target.digest })
      case 'GET plan': {
        const plan = await store.getPlan(stackUid, target.digest)
        if (plan === undefined) throw new HttpError(404, 'NotFound', `no plan with digest ${target.digest} is kept`)
        return send(res, 200, 'application/octet-stream', plan.bytes)
      }
    }
    const allowed = what === 'lock' || what === 'unlock' ? 'POST' : what === 'torn' ? 'PUT' : 'GET, PUT'
    throw new HttpError(405, 'MethodNotAllowed', `${method} is not allowed here, use ${allowed}`)
  }

  async function serveBackend(
    ...[lockId, method, req, res, stackUid, path]: [string | undefined, string, IncomingMessage, ServerResponse, string, string]
  ): Promise<void> {
    const held = (holder: LockHolder, sinceMs: number) => sendJson(res, 423, toLockInfo(holder, sinceMs, path))
    switch (method) {
      case 'GET':
      case 'HEAD':
        return sendVersion(res, await store.readVersion({ stackUid }))
      case 'POST':
      case 'DELETE': {
        const bytes = method === 'POST' ? await body(req, store.limits.maxBytes) : Buffer.alloc(0)
        if (method === 'POST') checkState(bytes, req.headers['content-md5'])
        const result = await store.writeVersion({ stackUid, person: { lockId }, bytes })
        if (result.kind === 'accepted') return sendJson(res, 200, { version: result.version })
        if (result.holder !== undefined && lockId === undefined) return held(result.holder, Date.now())
        const text = result.holder ? `the lock is held by ${describeHolder(result.holder)}` : 'the lock is not held any more'
        const message = `ID=${lockId} is not the current lock: ${text}; the content is kept as orphan ${result.orphan}`
        throw new HttpError(409, 'LockMismatch', message, { orphan: result.orphan })
      }
      case 'LOCK': {
        const info = parseLockInfo(await body(req, maxLockInfoBytes))
        const result = await store.lock({ stackUid, holder: { kind: 'Person', id: info.ID, who: info.Who ?? '', info } }, isHolderGone)
        if (result.kind === 'granted') return sendJson(res, 200, info)
        if (result.reason === 'Held') return held(result.holder, result.sinceMs)
        throw lockRefused(result)
      }
      case 'UNLOCK': {
        // `force-unlock` of OpenTofu sends the ID; Terraform's (1.11, hashicorp/terraform#28421) sends an empty body and keeps the ID to itself.
        // A lock is never released on no id: whoever must, puts it into the unlock address, where Terraform leaves it.
        const bytes = await body(req, maxLockInfoBytes)
        const id = bytes.byteLength === 0 ? lockId : parseLockInfo(bytes).ID
        if (id === undefined) {
          throw new HttpError(
            400,
            'BadRequest',
            'no lock id came: terraform force-unlock does not send it; set TF_HTTP_UNLOCK_ADDRESS to <address>?ID=<lock id>',
          )
        }
        if (lockId !== undefined && id !== lockId)
          throw new HttpError(400, 'BadRequest', `the body names lock ${id}, the address names ${lockId}`)
        const result = await store.unlock({ stackUid, holder: { kind: 'Person', id } }, isHolderGone)
        if (result.kind === 'refused') throw notYours(result.holder)
        return sendJson(res, 200, result)
      }
    }
    throw new HttpError(405, 'MethodNotAllowed', `${method} is not allowed here, use GET, POST, DELETE, LOCK or UNLOCK`)
  }

  async function serveList(target: ListTarget, method: string, res: ServerResponse, stackUid: string, path: string): Promise<void> {
    if (method !== 'GET') throw new HttpError(405, 'MethodNotAllowed', `${method} is not allowed here, use GET`)
    const { what, number } = target
    if (what === 'lock') {
      const lock = await store.currentLock(stackUid)
      return sendJson(res, 200, lock ? { ...lock, info: toLockInfo(lock.holder, lock.sinceMs, path) } : {})
    }
    // Whoever asks is an administrator, or has it already.
    if (what === 'token') return sendJson(res, 200, { token: store.stackToken(stackUid) })
    if (number === undefined) {
      return sendJson(
        res,
        200,
        what === 'versions' ? { versions: await store.versions(stackUid) } : { orphans: await store.orphans(stackUid) },
      )
    }
    const version = await store.readVersion({ stackUid, version: number })
    if (version === undefined || version.orphan !== (what === 'orphans'))
      throw new HttpError(404, 'NotFound', `${what} has no number ${number}`)
    return sendVersion(res, version)
  }
}

type RunTarget = {
  kind: 'run'
  namespace: string
  stack: string
  runName: string
  epoch: number
  sequence: number | undefined
  what: 'state' | 'torn' | 'inventory' | 'lock' | 'unlock' | 'plan'
  digest: string
}
type ListTarget = {
  kind: 'list'
  namespace: string
  stack: string
  what: 'lock' | 'token' | 'versions' | 'orphans'
  number: number | undefined
}
type Target = { kind: 'backend'; namespace: string; stack: string; lockId: string | undefined } | RunTarget | ListTarget

function parseTarget(req: IncomingMessage): Target {
  const noPath = () => new HttpError(404, 'NotFound', 'no such path; state is served at /state/<namespace>/<stack>')
  if (!URL.canParse(req.url ?? '', 'http://x')) throw noPath()
  const url = new URL(req.url ?? '', 'http://x')
  let parts: string[]
  try {
    parts = url.pathname.split('/').slice(1).map(decodeURIComponent)
  } catch {
    throw new HttpError(400, 'BadRequest', 'the path is not valid percent-encoding')
  }
  const [root, namespace = '', stack = '', third, ...rest] = parts
  if (root !== 'state') throw noPath()
  checkName('namespace', namespace, 'dns1123Label')
  checkName('stack', stack, 'dns1123Subdomain')
  switch (third) {
    case undefined: {
      // Terraform adds its ID to the address, which may have a query already.
      const lockId = url.searchParams.get('ID') ?? undefined
      if (lockId !== undefined && (lockId === '' || lockId.length > 256))
        throw new HttpError(400, 'BadRequest', 'ID must have 1 to 256 characters')
      return { kind: 'backend', namespace, stack, lockId }
    }
    case 'lock':
    case 'token':
    case 'versions':
    case 'orphans': {
      if (rest.length > 1 || ((third === 'lock' || third === 'token') && rest.length > 0)) throw noPath()
      return { kind: 'list', namespace, stack, what: third, number: rest[0] === undefined ? undefined : wholeNumber('the number', rest[0]) }
    }
    case 'run': {
      const [runName = '', what, digest, ...more] = rest
      checkName('run', runName, 'dns1123Subdomain')
      const isPlan = what === 'plan' && digest !== undefined && more.length === 0
      if (!isPlan && (digest !== undefined || !isPlainRunPath(what))) throw noPath()
      if (isPlan && !/^[A-Za-z0-9][A-Za-z0-9:._-]{0,127}$/.test(digest)) {
        throw new HttpError(400, 'BadRequest', 'the plan digest must have 1 to 128 characters of A-Z a-z 0-9 : . _ -')
      }
      const { 'oarlock-epoch': epoch, 'oarlock-sequence': sequence } = req.headers
      return {
        ...{ kind: 'run', namespace, stack, runName, digest: digest ?? '', what: isPlan ? 'plan' : (what as RunTarget['what']) },
        epoch: wholeNumber('the header Oarlock-Epoch', epoch),
        sequence: sequence === undefined ? undefined : wholeNumber('the header Oarlock-Sequence', sequence),
      }
    }
  }
  throw noPath()
}

const isPlainRunPath = (what: string | undefined) =>
  what === 'state' || what === 'torn' || what === 'inventory' || what === 'lock' || what === 'unlock'
const kindOf = (what: string): VersionKind => (what === 'inventory' ? 'inventory' : 'terraform')

function checkName(field: string, name: string, rule: 'dns1123Label' | 'dns1123Subdomain'): void {
  const [error] = nameErrors(name, rule)
  if (error !== undefined) throw new HttpError(400, 'BadRequest', `${field} ${JSON.stringify(name.slice(0, 100))} is not valid: ${error}`)
}

function wholeNumber(what: string, text: string | string[] | undefined): number {
  const number = typeof text === 'string' && /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN
  if (!Number.isSafeInteger(number))
    throw new HttpError(400, 'BadRequest', `${what} must be a whole number, got ${JSON.stringify(text)?.slice(0, 100)}`)
  return number
}

function passwordOf(req: IncomingMessage, isAuthenticated: boolean): string | undefined {
  const [scheme = '', value = ''] = (req.headers.authorization ?? '').split(' ', 2)
  if (scheme.toLowerCase() === 'bearer') return isAuthenticated ? undefined : value
  if (scheme.toLowerCase() !== 'basic') return undefined
  const pair = Buffer.from(value, 'base64').toString()
  return pair.includes(':') ? pair.slice(pair.indexOf(':') + 1) : undefined
}

function refusedAccess({ code, message }: { code: 401 | 403 | 404; message: string }, isBackend: boolean): HttpError {
  // Terraform reads 404 as "no state yet" and would plan to create everything again: a stack that is not there must be an error.
  if (code === 404 && isBackend) return new HttpError(403, 'NotFound', message)
  return new HttpError(code, code === 401 ? 'Unauthorized' : code === 403 ? 'Forbidden' : 'NotFound', message)
}

function checkState(bytes: Buffer, md5: string | string[] | undefined): void {
  if (typeof md5 === 'string' && createHash('md5').update(bytes).digest('base64') !== md5) {
    throw new HttpError(400, 'BadDigest', 'the body does not have the digest that Content-MD5 names: it was damaged on the way')
  }
  // Only the ends: parsing 64 MiB here would stop every other request for a second.
  const text = bytes.subarray(0, 64).toString('latin1').trimStart()
  const end = bytes.subarray(-64).toString('latin1').trimEnd()
  if (!text.startsWith('{') || !end.endsWith('}')) throw new HttpError(400, 'BadRequest', 'the body must be a state: one JSON object')
}

function parseLockInfo(bytes: Buffer): LockInfo {
  let value: unknown
  try {
    value = JSON.parse(bytes.toString())
  } catch {
    throw new HttpError(400, 'BadRequest', 'the body must be lock info as JSON, with the ID of the lock')
  }
  const { ID } = (value ?? {}) as { ID?: unknown }
  if (typeof ID !== 'string' || ID === '' || ID.length > 256) {
    throw new HttpError(400, 'BadRequest', 'the lock info must have an ID of 1 to 256 characters')
  }
  const info: LockInfo = { ID }
  for (const field of ['Operation', 'Info', 'Who', 'Version', 'Created', 'Path'] as const) {
    const text = (value as Record<string, unknown>)[field]
    if (typeof text === 'string') info[field] = text.slice(0, 4096)
  }
  // An unreadable time would make Terraform drop the whole info when it is shown to somebody else.
  if (info.Created !== undefined && Number.isNaN(Date.parse(info.Created))) delete info.Created
  return info
}

function sendVersion(res: ServerResponse, version: Awaited<ReturnType<StateStore['readVersion']>>): void {
  if (version === undefined || version.size === 0) {
    send(res, 204, '', '', version && { 'oarlock-version': version.version })
    return
  }
  const { bytes, version: number, epoch } = version
  const md5 = createHash('md5').update(bytes).digest('base64')
  send(res, 200, 'application/json', bytes, { 'content-md5': md5, 'oarlock-version': number, 'oarlock-epoch': epoch })
}

function sendWritten(res: ServerResponse, result: WriteResult): void {
  if (result.kind === 'refused') throw writeRefused(result)
  sendJson(res, 200, { version: result.version })
}

function writeRefused(result: Extract<WriteResult, { kind: 'refused' }>): HttpError {
  const { reason, orphan, currentEpoch, holder } = result
  if (reason === 'Torn') return new HttpError(409, reason, `what is torn is never current; it is kept as orphan ${orphan}`, { orphan })
  const why =
    reason === 'StaleEpoch' ? `epoch ${currentEpoch} has begun` : `the lock is held by ${holder ? describeHolder(holder) : 'nobody'}`
  return new HttpError(409, reason, `the write was refused: ${why}; the content is kept as orphan ${orphan}`, {
    orphan,
    currentEpoch,
    holder,
  })
}

function lockRefused(result: Extract<LockResult, { kind: 'refused' }>): HttpError {
  if (result.reason === 'StaleEpoch') {
    return new HttpError(409, 'StaleEpoch', `the lock was refused: epoch ${result.currentEpoch} has begun`, {
      currentEpoch: result.currentEpoch,
    })
  }
  return new HttpError(423, 'Locked', `the lock is held by ${describeHolder(result.holder)}`, {
    holder: result.holder,
    sinceMs: result.sinceMs,
  })
}

function notYours(holder: LockHolder): HttpError {
  const remedy = holder.kind === 'Run' ? '; cancel the run instead' : ''
  return new HttpError(409, 'NotLockHolder', `this is not your lock: it is held by ${describeHolder(holder)}${remedy}`, { holder })
}

const storeErrorStatus: Record<StateStoreErrorCode, number> = {
  ...{ TooLarge: 413, DiskFull: 507, QuotaExceeded: 507, Overloaded: 503, Unavailable: 503, InUse: 503, InvalidArgument: 400 },
  ...{ StateKeyMismatch: 500, DataTooNew: 500, Corrupt: 500 },
}

function toHttpError(error: unknown): HttpError {
  if (error instanceof HttpError) return error
  if (error instanceof StateStoreError) return new HttpError(storeErrorStatus[error.code], error.code, error.message)
  return new HttpError(500, 'InternalError', 'the request failed inside the server')
}
