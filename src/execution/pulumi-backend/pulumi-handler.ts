import type { IncomingMessage, ServerResponse } from 'node:http'
import { HttpError, send, sendJson } from '../../stores/http/index.ts'
import { parseCliVersion, testedCliVersions } from './cli-version.ts'
import { type PulumiBackend, PulumiBackendError, type PulumiBackendErrorCode, type PulumiUpdate } from './pulumi-backend.ts'
import { BodyReader } from './request-body.ts'
import { forbidden, type HandlerContext, notFound, type RouteRequest, type Routes, refuseIfFenced } from './route-request.ts'
import { matchRoute, stackOf } from './router.ts'
import { secretRoutes } from './secret-routes.ts'
import { stackRoutes } from './stack-routes.ts'
import { type TrackedUpdate, UpdateRegistry } from './update-registry.ts'
import { updateRoutes } from './update-routes.ts'
import { userRoutes } from './user-routes.ts'
import { writeRoutes } from './write-routes.ts'

/** The 64 recorded states have one for each 23 to 54 bytes, the limit allows one for each 17 of a state of 64 MiB. Objects count as two; 2 million empty ones take 240 MB when parsed. */
const maxJsonValues = 4_000_000

export type PulumiHandlerOptions = {
  readonly backend: PulumiBackend
  /** `PULUMI_ACCESS_TOKEN` of the Run. At least 16 characters. */
  readonly accessToken: string
  /** Path of the base URL, such as `/pulumi`. Default: none. */
  readonly basePath?: string
  /** Of a request's body, plain and unpacked: 413. It must hold a whole state. Default 64 MiB. */
  readonly maxBodyBytes?: number
  /** Levels of nesting of JSON: 400. Default 500, as in journal entries. */
  readonly maxDepth?: number
  /** Bodies in memory; further requests wait. Default 2: one with the maximum of values takes some 400 MB. The CLI sends up to 4 concurrently, and none waits for another. */
  readonly maxConcurrentBodies?: number
  /** Without data of a body for this long: 408. Default 30,000. */
  readonly bodyIdleMs?: number
  /** Updates and previews that are remembered. The oldest that has ended is forgotten; if all are running: 429. Default 64. */
  readonly maxUpdates?: number
  /** Of each update, how many bytes of refused writes are passed to the backend. Default 64 MiB. */
  readonly maxRefusedBytes?: number
  /**
   * Checkpoints of at least this size are sent as a difference to the previous one. Default: not offered, because those lack what a kill must not lose,
   * see `user-routes.ts`. The routes exist in any case.
   */
  readonly deltaCutoffBytes?: number
  /** Minor releases of the CLI that are offered the journal. Default {@link testedCliVersions}. */
  readonly testedCliVersions?: readonly string[]
  /** Called with what is behind a response 503, and with errors that change no response. */
  readonly onError?: (error: unknown) => void
  /** Unix time in milliseconds. Default `Date.now`. */
  readonly now?: () => number
}

export type PulumiHandler = {
  /** Serves one request. Never rejects. */
  handle(req: IncomingMessage, res: ServerResponse): Promise<void>
  /**
   * The Run may not write any more: from now on every write is answered 403 with this text, which makes the CLI stop, and is passed to
   * `backend.keepRefused`. Final.
   */
  fence(reason: string): void
  /**
   * The processes of the CLI have ended: its updates that it did not complete are closed, so that another one may start. First the requests that the CLI had sent
   * before are served, so that they are stored and not refused. The backend is not called otherwise.
   * @returns those updates, without previews.
   */
  abandonUpdates(): Promise<readonly PulumiUpdate[]>
}

/** Accepting a connection, its head and its body take one each. */
const eventLoopTurns = 5

const routes: Routes = [...userRoutes, ...stackRoutes, ...secretRoutes, ...updateRoutes, ...writeRoutes]

const statuses: Record<PulumiBackendErrorCode, number> = {
  NotFound: 404,
  Forbidden: 403,
  Fenced: 403,
  Conflict: 409,
  HasResources: 400,
  Invalid: 400,
  TooLarge: 413,
  Unavailable: 503,
}

/**
 * Serves Pulumi's HTTP backend protocol (`pkg/backend/httpstate` of github.com/pulumi/pulumi, read at 3.260) for the CLI of one Run.
 *
 * `PULUMI_BACKEND_URL` is the address of the endpoint, `PULUMI_ACCESS_TOKEN` the access token. The CLI authenticates with it until an update starts; the
 * answer to the start has another token, which its writes require. Errors are `{"code":<status>,"message":"…"}`; a client error is never answered 5xx.
 * @throws {RangeError} if the access token is too short.
 */
export function createPulumiHandler(options: PulumiHandlerOptions): PulumiHandler {
  const { backend, accessToken, basePath = '', maxBodyBytes = 64 * 1_048_576, onError = () => {}, now = Date.now } = options
  if (accessToken.length < 16) throw new RangeError(`the access token has ${accessToken.length} characters, at least 16 are required`)
  const updates = new UpdateRegistry(options.maxUpdates ?? 64)
  const limits = {
    maxBytes: maxBodyBytes,
    maxDepth: options.maxDepth ?? 500,
    maxValues: maxJsonValues,
    idleMs: options.bodyIdleMs ?? 30_000,
  }
  const bodies = new BodyReader(limits, options.maxConcurrentBodies ?? 2)
  let fence: string | undefined
  const context: HandlerContext = {
    ...{ backend, updates, bodies, now, onError, fence: () => fence },
    ...{ maxRefusedBytes: options.maxRefusedBytes ?? 64 * 1_048_576, maxCheckpointBytes: maxBodyBytes },
    deltaCutoffBytes: options.deltaCutoffBytes,
    testedCliVersions: options.testedCliVersions ?? testedCliVersions,
    createToken: () => Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('hex'),
    createId: () => crypto.randomUUID(),
  }

  const serving = new Set<Promise<void>>()

  return {
    handle: async (req, res) => {
      const served = serve(req, res)
      serving.add(served)
      await served
      serving.delete(served)
    },
    fence: reason => {
      fence ??= reason
    },
    abandonUpdates: async () => {
      // A request may be in the buffer of a connection that is not accepted yet.
      for (let i = 0; i < eventLoopTurns; i++) await new Promise<void>(resolve => setImmediate(resolve))
      await Promise.all(serving)
      const abandoned = updates.running()
      for (const tracked of abandoned) tracked.refuse('abandoned', 'the CLI that started the update has ended')
      await Promise.all(abandoned.map(tracked => tracked.inOrder(async () => updates.end(tracked))))
      return abandoned.map(tracked => tracked.update).filter(update => !update.isPreview)
    },
  }

  async function serve(req: IncomingMessage, res: ServerResponse): Promise<void> {
    try {
      const answer = await answerRequest(req)
      if ('bytes' in answer) send(res, answer.status, 'application/json', answer.bytes)
      else sendJson(res, answer.status, answer.body)
    } catch (error) {
      const { status, message } = toHttpError(error)
      // The message ends on the user's terminal.
      sendJson(res, status, { code: status, message })
    }
  }

  async function answerRequest(req: IncomingMessage): ReturnType<Routes[number]['handler']> {
    const [path = '', query = ''] = splitOnce(req.url ?? '', '?')
    // A client without a token cannot find out which routes exist.
    const authorization = parseAuthorization(req.headers.authorization)
    const found = path.startsWith(`${basePath}/`) ? matchRoute(routes, req.method ?? '', path.slice(basePath.length)) : undefined
    if (!found || found.route.access === 'run') {
      if (authorization?.scheme !== 'token' || !equalSecrets(authorization.secret, accessToken)) throw unauthorized()
      if (!found) throw notFound('Not Found: there is no such path')
    }
    const { route, parameters } = found
    const stack = stackOf(parameters)
    let tracked: TrackedUpdate | undefined
    if (route.access === 'update') {
      tracked = updates.find(stack, parameters.update ?? '')
      if (authorization?.scheme !== 'update-token' || !tracked || !equalSecrets(authorization.secret, tracked.token)) throw unauthorized()
    }
    const request: RouteRequest = {
      ...{ context, req, parameters, query: new URLSearchParams(query), stack, tracked },
      url: `http://${/^[A-Za-z0-9.:[\]-]{1,300}$/.exec(req.headers.host ?? '')?.[0] ?? 'localhost'}${basePath}`,
      cliVersion: parseCliVersion(req.headers['user-agent']),
      withBody: work => bodies.withBody(req, work),
    }
    try {
      return await route.handler(request)
    } catch (error) {
      if (tracked) refuseIfFenced(context, tracked, error)
      throw error
    }
  }

  function toHttpError(error: unknown): HttpError {
    if (error instanceof HttpError) return error
    if (error instanceof PulumiBackendError) {
      if (error.code === 'Unavailable') onError(error)
      if (error.code === 'Fenced') return forbidden(error.message)
      // The CLI compares this text to offer --force.
      const message = error.code === 'HasResources' ? 'Bad Request: Stack still contains resources.' : error.message
      return new HttpError(statuses[error.code], error.code, message)
    }
    onError(error)
    return new HttpError(503, 'Unavailable', 'the state store is not available; retry later')
  }
}

const unauthorized = () => new HttpError(401, 'Unauthorized', 'the token is missing or invalid')

function parseAuthorization(header: string | undefined): { scheme: string; secret: string } | undefined {
  const [scheme = '', secret = ''] = splitOnce(header ?? '', ' ')
  return secret === '' ? undefined : { scheme, secret }
}

/** Compares in a time that depends on the lengths only. */
function equalSecrets(received: string, expected: string): boolean {
  const left = Buffer.from(received)
  const right = Buffer.from(expected)
  return left.byteLength === right.byteLength && process.getBuiltinModule('node:crypto').timingSafeEqual(left, right)
}

function splitOnce(text: string, separator: string): [string, string] {
  const index = text.indexOf(separator)
  return index < 0 ? [text, ''] : [text.slice(0, index), text.slice(index + 1)]
}
