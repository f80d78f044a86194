import type { IncomingMessage, ServerResponse } from 'node:http'
import { BodyBudget, clientOf, HttpError, type HttpUser, RequestLimiter, readBody, send, sendError, sendJson } from '../http/index.ts'
import { maxEpoch } from './decide-lock.ts'
import { decideStateError, formatStateError } from './decide-state-error.ts'
import type { OrphanReason } from './decide-write.ts'
import { describeHolder, type LockHolder, toLockInfo } from './lock-holder.ts'
import type { IsLockAbandoned, StateStore } from './open-state-store.ts'
import {
  type BackendTarget,
  checkState,
  parseLockInfo,
  parsePassword,
  parseTarget,
  parseValues,
  type QueryTarget,
  type RunResource,
  type RunTarget,
} from './parse-state-request.ts'
import { requiredAccess } from './required-access.ts'
import type { RunInputsSource } from './run-inputs.ts'
import { isRunInputs, serveRunInputs } from './serve-run-inputs.ts'
import { accessDenied, lockRejected, notLockHolder, sendKept, sendVersion, sendWriteResult, toHttpError } from './state-responses.ts'
import type { StateWriteResult, VersionKind } from './state-types.ts'

/** A request to authorize. All of it comes from the request's path and headers and is not verified. */
export type StateAccessRequest = {
  user: HttpUser | undefined
  /** Basic password, or the Bearer token of a request without an authenticated user: compare with `store.checkStackToken`. */
  basicPassword?: string
  namespace: string
  stack: string
  /** Set on the worker's paths. */
  runName?: string
  epoch?: number
  /** Which subresource of the Stack a user's path is, and the verbs on it that the user needs, all of them. Not set on the worker's paths. */
  subresource?: 'state' | 'plan' | 'fence' | 'recovery'
  /** The file of a plan, which has everything that the state has: the user needs `get` on `stacks/state` too. */
  isPlanFile?: boolean
  /** The token of the Stack does not allow it. */
  requiresUser?: boolean
  verbs?: readonly StateVerb[]
}

export type StateVerb = 'get' | 'update' | 'delete'

/**
 * `run` allows the worker's paths of this Run, `user` the Terraform backend and the queries. `ended-run` allows the worker of a Run to store a last version,
 * which does not become current; with `lost-run` it does unless a newer Run has started.
 */
export type StateAccess =
  | {
      allowed: true
      stackUid: string
      access: 'run' | 'ended-run' | 'lost-run' | 'user'
      /** The state has at least this version, if nothing was lost. Default 0: the Stack may have no state. */
      stateVersion?: number | undefined
    }
  | { allowed: false; code: 401 | 403 | 404 | 503; message: string }

export type StateHandlerOptions = {
  store: StateStore
  authorize(request: StateAccessRequest): Promise<StateAccess>
  isLockAbandoned: IsLockAbandoned
  /** Default: there are no inputs, and their paths get 404. */
  inputs?: RunInputsSource | undefined
  /** Default: a new one. */
  limiter?: RequestLimiter | undefined
  /** A request whose body is idle for this long gets 408. Default 30,000. */
  bodyIdleMs?: number
  /** Called with the error behind a response `InternalError`. */
  onError?: (error: unknown) => void
  /** Called when an abandoned lock was broken. */
  onLockBroken?: () => void
  /** Called when a write was rejected and its content stored as an orphaned version. */
  onWriteRejected?: (reason: OrphanReason) => void
  /** Called when a request got `JournalUnreadable`. */
  onJournalUnreadable?: () => void
}

export type StateHandler = (
  req: IncomingMessage,
  res: ServerResponse,
  context: { user: HttpUser | undefined; audit?(user: HttpUser): void },
) => Promise<void>

/** One authorized request. */
type Exchange = {
  method: string
  req: IncomingMessage
  res: ServerResponse
  /** Reads the body of the request, at most `maxBytes`. */
  body(maxBytes?: number): Promise<Buffer>
  stackUid: string
  path: string
  /** The authenticated user; undefined with the token of the Stack. */
  user: string | undefined
  /** Which state version the Run, or the Stack, requires. */
  stateVersion: number
}

/** In the audit log, whose events name the Stack: the token of a Stack is no user of the API server. */
const stackTokenUser: HttpUser = { name: 'oarlock:stack-token', groups: [] }

const maxLockInfoBytes = 64 * 1024
/** Values of one request to encrypt or decrypt, as JSON. */
const maxSecretsBytes = 16 * 1024 * 1024

/**
 * Serves the store at `/state/<namespace>/<stack>`: the Terraform HTTP backend (GET, POST, DELETE, LOCK, UNLOCK), and `/lock`, `/token`,
 * `/fence`, `/accept`, `/check`, `/decrypt`, `/versions[/N]`, `/orphans[/N]`, `/plan/<digest>`, `/diff/<runName>` and `DELETE /data?uid=` for users; `/run/<runName>/{state,incomplete,inventory,lock,unlock,plan/<digest>,diff,configuration}`,
 * `/run/<runName>/{inputs,outputs,outputs/<stack>}` (`serve-run-inputs.ts`), and for Pulumi `/run/<runName>/{pulumi,pulumi-version,refused-pulumi,refused-journal,journal/<update>,journal/<update>/complete,encrypt,decrypt}`, with the header
 * `Oarlock-Epoch` for workers. Never rejects, and never responds 500 to a client error. Errors are `{error:{code,message}}`; a held lock is 423.
 */
export function createStateHandler(options: StateHandlerOptions): StateHandler {
  const { store, authorize, isLockAbandoned, limiter = new RequestLimiter(), bodyIdleMs = 30_000, onError, onLockBroken } = options
  const { maxBytes: maxStateBytes, pendingBytes } = store.limits
  // What waits for the disk is part of it, so that no client fills the queue of the store either.
  const budget = new BodyBudget(pendingBytes, Math.max(maxStateBytes, pendingBytes / 4))

  return async (req, res, { user, audit }) => {
    const limited = limiter.begin(req, res)
    try {
      const method = req.method ?? 'GET'
      const target = parseTarget(req)
      const password = parsePassword(req, user !== undefined)
      const question: StateAccessRequest = {
        ...{ user, namespace: target.namespace, stack: target.stack },
        ...(password !== undefined && { basicPassword: password }),
        ...(target.kind === 'run' ? { runName: target.runName, epoch: target.epoch } : requiredAccess(target, method)),
      }
      const access = await limited.authorize(user, () => authorize(question))
      if (!access.allowed) throw accessDenied(access, target.kind === 'backend')
      if (!user) audit?.(stackTokenUser)
      const required = target.kind === 'run' ? 'run' : 'user'
      const isEndedRun = access.access === 'ended-run' || access.access === 'lost-run'
      if (access.access !== required && !(isEndedRun && target.kind === 'run'))
        throw new HttpError(403, 'Forbidden', `this path requires ${required} credentials, got ${access.access} credentials`)
      const client = clientOf(user, access.stackUid)
      await limited.serve(client, async () => {
        const reservation = budget.reserve(client)
        const body = (maxBytes = maxStateBytes) => readBody(req, { maxBytes, idleMs: bodyIdleMs, budget: reservation })
        const { stackUid } = access
        const exchange = {
          method,
          req,
          res,
          body,
          stackUid,
          path: `${target.namespace}/${target.stack}`,
          user: user?.name,
          stateVersion: access.stateVersion ?? 0,
        }
        try {
          if (target.kind === 'run') {
            if (isEndedRun) await serveEndedRun(target, exchange, access.access === 'lost-run')
            else await serveRun(target, exchange)
          } else if (target.kind === 'backend') await serveBackend(target, exchange)
          else await serveQuery(target, exchange)
        } finally {
          reservation.release()
        }
      })
    } catch (error) {
      const http = toHttpError(error)
      if (http.status === 500) onError?.(error)
      if (http.code === 'JournalUnreadable') options.onJournalUnreadable?.()
      sendError(res, http, http.status === 401 ? { 'www-authenticate': 'Basic realm="oarlock"' } : {})
    }
  }

  /** @throws {HttpError} 409 if the store does not have the state that the Run requires. */
  async function checkStateVersion({ stackUid, stateVersion }: Exchange): Promise<void> {
    const error = stateVersion > 0 ? decideStateError(stateVersion, await store.newestVersion(stackUid)) : undefined
    if (error) throw new HttpError(409, error.reason, formatStateError(error), { newest: error.newest, expected: error.expected })
  }

  async function writeVersion(request: Parameters<StateStore['writeVersion']>[0]): ReturnType<StateStore['writeVersion']> {
    const result = await store.writeVersion(request)
    if (result.kind === 'rejected') options.onWriteRejected?.(result.reason)
    return result
  }

  /** @throws {HttpError} 409 if there is no space for operations that begin. */
  async function appendJournal(request: Parameters<StateStore['appendJournal']>[0]): Promise<StateWriteResult> {
    const result = await store.appendJournal(request)
    if (result.kind === 'full') throw new HttpError(409, 'StateFull', result.message)
    if (result.kind === 'rejected') options.onWriteRejected?.(result.reason)
    return result
  }

  async function serveRun(target: RunTarget, exchange: Exchange): Promise<void> {
    const { method, res, body, stackUid } = exchange
    const { resource, runName, epoch, sequence } = target
    const holder = { kind: 'Run' as const, runName, epoch }
    if (isRunInputs(target)) {
      if (options.inputs === undefined) throw new HttpError(404, 'NotFound', 'these stores do not serve the inputs of Runs')
      return await serveRunInputs(target, exchange, { source: options.inputs, fence: uid => store.fence(uid) })
    }
    switch (`${method} ${resource}`) {
      case 'GET state':
      case 'GET inventory':
      case 'GET pulumi':
        await checkStateVersion(exchange)
        return sendVersion(res, await store.readVersion({ stackUid, kind: kindOf(resource) }))
      case 'GET pulumi-version':
        await checkStateVersion(exchange)
        return sendJson(res, 200, (await store.newestPulumi(stackUid)) ?? {})
      case 'PUT pulumi': {
        const update = target.update === 0 ? undefined : target.update
        const bytes = await body()
        return sendWriteResult(res, await writeVersion({ stackUid, runName, epoch, sequence, bytes, kind: 'pulumi', update }))
      }
      case 'PUT state':
      case 'PUT inventory': {
        const bytes = await body()
        return sendWriteResult(res, await writeVersion({ stackUid, runName, epoch, sequence, bytes, kind: kindOf(resource) }))
      }
      case 'PUT incomplete': {
        // A separate path: a server that does not know it must not store the content as a state.
        const bytes = await body()
        return sendWriteResult(res, await writeVersion({ stackUid, runName, epoch, bytes, orphanReason: 'Incomplete' }))
      }
      case 'POST lock': {
        await checkStateVersion(exchange)
        const result = await store.lock({ stackUid, holder }, isLockAbandoned)
        if (result.kind === 'rejected') throw lockRejected(result)
        if (result.brokenHolder) onLockBroken?.()
        return sendJson(res, 200, result)
      }
      case 'POST unlock': {
        const result = await store.unlock({ stackUid, holder })
        if (result.kind === 'rejected') throw notLockHolder(result.holder)
        return sendJson(res, 200, result)
      }
      case 'POST journal': {
        const { update, cliVersion } = target
        const bytes = await body(store.limits.journalBatchBytes)
        return sendWriteResult(res, await appendJournal({ stackUid, runName, epoch, update, cliVersion, bytes }))
      }
      case 'PUT refused-pulumi': {
        // Separate paths, for the same reason.
        const bytes = await body()
        return sendKept(res, await writeVersion({ stackUid, runName, epoch, bytes, kind: 'pulumi', orphanReason: 'UpdateEnded' }))
      }
      case 'PUT refused-journal': {
        const { update, cliVersion } = target
        const bytes = await body(store.limits.journalBatchBytes)
        const orphanReason = 'UpdateEnded'
        return sendKept(res, await appendJournal({ stackUid, runName, epoch, update, cliVersion, bytes, orphanReason }))
      }
      case 'POST complete': {
        const result = await store.completeJournal({ stackUid, runName, epoch, update: target.update })
        if (result.kind === 'rejected') throw lockRejected(result)
        return sendJson(res, 200, { version: result.version })
      }
      case 'POST encrypt':
        return sendJson(res, 200, { values: toBase64(store.encryptSecrets(stackUid, parseValues(await body(maxSecretsBytes)))) })
      case 'POST decrypt':
        return sendJson(res, 200, { values: toBase64(store.decryptSecrets(stackUid, parseValues(await body(maxSecretsBytes)))) })
      case 'PUT plan':
        await store.putPlan({ stackUid, digest: target.digest, runName, bytes: await body() })
        return sendJson(res, 200, { digest: target.digest })
      case 'GET plan':
        return await sendPlan(res, stackUid, target.digest)
      case 'PUT diff':
        await store.putDiff({ stackUid, runName, bytes: await body() })
        return sendJson(res, 200, {})
      case 'PUT configuration': {
        const result = await store.putConfiguration({ stackUid, epoch, bytes: await body() })
        if (result.kind === 'rejected') throw lockRejected(result)
        return sendJson(res, 200, {})
      }
      case 'GET configuration': {
        const bytes = await store.getConfiguration(stackUid)
        if (bytes === undefined) throw new HttpError(404, 'NotFound', 'no Run of this version of Oarlock has applied anything')
        return send(res, 200, 'application/json', bytes)
      }
    }
    const allowed = allowedMethods[resource] ?? 'GET, PUT'
    throw new HttpError(405, 'MethodNotAllowed', `${method} is not allowed here, use ${allowed}`)
  }

  /** Nothing that an engine has created is forgotten, and nothing is readable. Its own lock is all that a Run can release. */
  async function serveEndedRun(target: RunTarget, exchange: Exchange, isLost: boolean): Promise<void> {
    const { resource, runName, epoch } = target
    const { method, res, body, stackUid } = exchange
    const request = `${method} ${resource}`
    const isOrphan = request === 'PUT incomplete' || request === 'PUT refused-pulumi' || request === 'PUT refused-journal'
    if (request === 'POST unlock' || isOrphan) return await serveRun(target, exchange)
    const isJournal = request === 'POST journal'
    if (request !== 'PUT state' && request !== 'PUT inventory' && request !== 'PUT pulumi' && !isJournal)
      throw new HttpError(403, 'RunEnded', `Run ${runName} has ended: its worker can only store a last version of the state`)
    if (isLost) return await serveRun(target, exchange)
    const orphanReason = 'RunEnded'
    if (isJournal) {
      const { update, cliVersion } = target
      const bytes = await body(store.limits.journalBatchBytes)
      return sendWriteResult(res, await appendJournal({ stackUid, runName, epoch, update, cliVersion, bytes, orphanReason }))
    }
    const bytes = await body()
    sendWriteResult(res, await writeVersion({ stackUid, runName, epoch, bytes, kind: kindOf(resource), orphanReason }))
  }

  async function serveBackend(
    { lockId, stateKind: kind }: BackendTarget,
    { method, req, res, body, stackUid, path, user, stateVersion }: Exchange,
  ): Promise<void> {
    const sendHeld = (holder: LockHolder, sinceMs: number) => sendJson(res, 423, toLockInfo(holder, sinceMs, path))
    switch (method) {
      case 'GET':
      case 'HEAD':
        return sendVersion(res, await store.readVersion({ stackUid, kind }))
      case 'POST':
      case 'DELETE': {
        const bytes = method === 'POST' ? await body() : Buffer.alloc(0)
        if (method === 'POST') checkState(bytes, req.headers['content-md5'])
        const result = await writeVersion({ stackUid, kind, user: { lockId, name: user }, bytes, expectedVersion: stateVersion })
        if (result.kind === 'accepted') return sendJson(res, 200, { version: result.version })
        if (result.holder !== undefined && lockId === undefined) return sendHeld(result.holder, Date.now())
        const current = result.holder ? `the lock is held by ${describeHolder(result.holder)}` : 'the lock is not held'
        const message = `ID=${lockId} is not the current lock: ${current}; the content is stored as orphaned version ${result.orphan}`
        throw new HttpError(409, 'LockMismatch', message, { orphan: result.orphan })
      }
      case 'LOCK': {
        const info = parseLockInfo(await body(maxLockInfoBytes))
        const result = await store.lock({ stackUid, holder: { kind: 'User', id: info.ID, who: info.Who ?? '', info } }, isLockAbandoned)
        if (result.kind === 'granted') return sendJson(res, 200, info)
        if (result.reason === 'Held') return sendHeld(result.holder, result.sinceMs)
        throw lockRejected(result)
      }
      case 'UNLOCK': {
        const id = unlockId(lockId, await body(maxLockInfoBytes))
        const result = await store.unlock({ stackUid, holder: { kind: 'User', id } }, isLockAbandoned)
        if (result.kind === 'rejected') throw notLockHolder(result.holder)
        return sendJson(res, 200, result)
      }
    }
    throw new HttpError(405, 'MethodNotAllowed', `${method} is not allowed here, use GET, POST, DELETE, LOCK or UNLOCK`)
  }

  async function serveFence({ lastEpoch, force = false }: QueryTarget, { method, res, stackUid }: Exchange): Promise<void> {
    if (method === 'GET') return sendJson(res, 200, await store.fence(stackUid))
    if (method !== 'PUT') throw new HttpError(405, 'MethodNotAllowed', `${method} is not allowed here, use GET or PUT`)
    if (lastEpoch === undefined || lastEpoch >= maxEpoch)
      throw new HttpError(400, 'BadRequest', `lastEpoch must be a whole number below ${maxEpoch}, got ${lastEpoch ?? 'none'}`)
    const result = await store.resetFence({ stackUid, lastEpoch, force })
    if (result.kind === 'rejected') throw lockRejected(result)
    sendJson(res, 200, result)
  }

  async function sendPlan(res: ServerResponse, stackUid: string, digest: string): Promise<void> {
    const plan = await store.getPlan(stackUid, digest)
    if (plan === undefined) throw new HttpError(404, 'NotFound', `plan ${digest} does not exist`)
    send(res, 200, 'application/octet-stream', plan.bytes)
  }

  async function sendDiff(res: ServerResponse, stackUid: string, runName: string): Promise<void> {
    const diff = await store.getDiff(stackUid, runName)
    if (diff === undefined) throw new HttpError(404, 'NotFound', `no plan of Run ${runName} is stored`)
    send(res, 200, 'application/json', diff)
  }

  async function serveQuery(target: QueryTarget, exchange: Exchange): Promise<void> {
    const { resource, number, digest, uid } = target
    const { method, res, stackUid, path } = exchange
    if (resource === 'fence') return await serveFence(target, exchange)
    if (resource === 'token' && method === 'POST') {
      const { graceSeconds = 0 } = target
      if (graceSeconds > maxGraceSeconds)
        throw new HttpError(400, 'BadRequest', `graceSeconds must be at most ${maxGraceSeconds} (30 days), got ${graceSeconds}`)
      return sendJson(res, 200, await store.rotateStackToken({ stackUid, graceMs: graceSeconds * 1_000 }))
    }
    if (resource === 'accept') {
      if (method !== 'POST') throw new HttpError(405, 'MethodNotAllowed', `${method} is not allowed here, use POST`)
      const { user, stateVersion } = exchange
      return sendWriteResult(res, await store.acceptState({ stackUid, user, expectedVersion: stateVersion }))
    }
    if (resource === 'decrypt') {
      if (method !== 'POST') throw new HttpError(405, 'MethodNotAllowed', `${method} is not allowed here, use POST`)
      return sendJson(res, 200, { values: toBase64(store.decryptSecrets(stackUid, parseValues(await exchange.body(maxSecretsBytes)))) })
    }
    if (resource === 'data') {
      if (method !== 'DELETE') throw new HttpError(405, 'MethodNotAllowed', `${method} is not allowed here, use DELETE`)
      if (uid !== stackUid) throw new HttpError(409, 'Conflict', `uid must be ${stackUid}, the UID of the Stack, got ${uid ?? 'none'}`)
      await store.deleteStack(stackUid)
      return sendJson(res, 200, {})
    }
    if (method !== 'GET') throw new HttpError(405, 'MethodNotAllowed', `${method} is not allowed here, use GET`)
    if (resource === 'check') return sendJson(res, 200, await store.facts(stackUid))
    if (resource === 'lock') {
      const lock = await store.currentLock(stackUid)
      return sendJson(res, 200, lock ? { ...lock, info: toLockInfo(lock.holder, lock.sinceMs, path) } : {})
    }
    if (resource === 'plan') return await sendPlan(res, stackUid, digest)
    if (resource === 'diff') return await sendDiff(res, stackUid, target.runName ?? '')
    // The client may do everything that the token allows.
    if (resource === 'token') return sendJson(res, 200, { token: await store.stackToken(stackUid) })
    if (number === undefined) {
      if (resource === 'versions') return sendJson(res, 200, { versions: await store.versions(stackUid) })
      return sendJson(res, 200, { orphans: await store.orphans(stackUid) })
    }
    const version = await store.readVersion({ stackUid, version: number })
    if (version === undefined || version.orphan !== (resource === 'orphans'))
      throw new HttpError(404, 'NotFound', `${resource}/${number} does not exist`)
    return sendVersion(res, version)
  }
}

/** The previous token of a Stack is valid for at most 30 days. */
const maxGraceSeconds = 30 * 86_400

const kindOf = (resource: string): VersionKind => (resource === 'inventory' || resource === 'pulumi' ? resource : 'terraform')

/** Of resources that are not read and written as a whole. */
const allowedMethods: Partial<Record<RunResource, string>> = {
  ...{ lock: 'POST', unlock: 'POST', journal: 'POST', complete: 'POST', encrypt: 'POST', decrypt: 'POST', incomplete: 'PUT', diff: 'PUT' },
  ...{ 'refused-pulumi': 'PUT', 'refused-journal': 'PUT', 'pulumi-version': 'GET' },
}

const toBase64 = (values: readonly Buffer[]): string[] => values.map(value => value.toString('base64'))

/**
 * The lock id of an UNLOCK. OpenTofu's `force-unlock` sends it; Terraform's (1.11, hashicorp/terraform#28421) sends an empty body without
 * it. A lock is never released without an id: the user puts it into the unlock address, which Terraform does not change.
 */
function unlockId(lockId: string | undefined, bytes: Buffer): string {
  const id = bytes.byteLength === 0 ? lockId : parseLockInfo(bytes).ID
  if (id === undefined) {
    const hint = 'terraform force-unlock does not send it; set TF_HTTP_UNLOCK_ADDRESS to <address>?ID=<lock id>'
    throw new HttpError(400, 'BadRequest', `the lock id is missing: ${hint}`)
  }
  if (lockId !== undefined && id !== lockId)
    throw new HttpError(400, 'BadRequest', `the body names lock ${id}, but the address names lock ${lockId}`)
  return id
}
