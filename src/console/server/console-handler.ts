import type { IncomingMessage, ServerResponse } from 'node:http'
import { badRequest, StatusError } from '../../kubernetes/object/index.ts'
import { apiPath, deltaIntervalMs, pagePath } from '../protocol/index.ts'
import { actionRoutes } from './action-routes.ts'
import { Assets } from './assets.ts'
import { destructionRoutes } from './destruction-routes.ts'
import { errorBody, failedBody } from './error-response.ts'
import { logRoutes } from './log-routes.ts'
import { Offload } from './offload/index.ts'
import { OidcSignIn, requireOidc } from './oidc-sign-in.ts'
import type { ConsoleServerOptions } from './options.ts'
import { planRoutes } from './plan-routes.ts'
import { readJson } from './read-json.ts'
import type { Call, Route, Routes } from './route.ts'
import { requireSameOrigin } from './same-origin.ts'
import { sendJson } from './send-json.ts'
import { SessionAccess } from './session-access.ts'
import { defaultSessionLimits, Sessions } from './sessions.ts'
import { stackRoutes } from './stack/index.ts'
import { Streams } from './streams.ts'
import { TokenReviews } from './token-reviews.ts'
import { UserSessions } from './user-sessions.ts'

const beatEveryMs = 5_000
const sweepEveryMs = 5_000

/** What is about objects: a file for each group. */
const objectRoutes: Routes = {
  ...actionRoutes,
  ...destructionRoutes,
  ...planRoutes,
  ...logRoutes,
  ...stackRoutes,
}

/** The console of one listener: {@link ConsoleServer.handle} serves every path below `/console/`. */
export class ConsoleServer {
  readonly #options: ConsoleServerOptions
  readonly #assets: Assets
  readonly #access: SessionAccess
  readonly #sessions: Sessions
  readonly #users: UserSessions
  readonly #oidc: OidcSignIn | undefined
  readonly #streams: Streams
  readonly #tasks = new Offload()
  /** Of the session itself: a read-only console has them too. */
  readonly #sessionRoutes: Routes
  readonly #timers: readonly NodeJS.Timeout[]

  constructor(options: ConsoleServerOptions) {
    this.#options = options
    this.#assets = new Assets(options.assetsDirectory)
    this.#access = new SessionAccess(options)
    this.#streams = new Streams(options, this.#access)
    this.#sessions = new Sessions({ ...defaultSessionLimits, ...options.limits }, (session, reason) => {
      this.#streams.endOf(session, reason)
      this.#access.end(session)
    })
    this.#users = new UserSessions(options, this.#sessions, this.#access)
    this.#oidc = options.oidc && new OidcSignIn(options.oidc, options)
    this.#sessionRoutes = { ...this.#users.routes, ...this.#streams.routes }
    const reviews = new TokenReviews(this.#sessions, options.authenticateToken)
    this.#timers = [
      setInterval(() => this.#streams.flush(), options.flushIntervalMs ?? deltaIntervalMs).unref(),
      setInterval(() => this.#streams.beat(), beatEveryMs).unref(),
      setInterval(() => {
        this.#sessions.sweep()
        reviews.review()
        this.#streams.sweep()
      }, sweepEveryMs).unref(),
    ]
  }

  /** Resolves when no process is left. */
  async close(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer)
    this.#sessions.close()
    await this.#tasks.close()
  }

  /** @param path of the request, which begins with {@link pagePath}. */
  async handle(path: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const reachedBy = this.#options.reachedBy(request.headers.host)
      if (!reachedBy)
        throw new StatusError('MisdirectedRequest', 'the console is not reached by this name: see --console-host', { code: 421 })
      if (path.startsWith(apiPath)) return await this.#serveApi(path.slice(apiPath.length), { request, response, reachedBy })
      if (request.method !== 'GET' && request.method !== 'HEAD') throw new StatusError('MethodNotAllowed', 'use GET')
      await this.#assets.send(path.slice(pagePath.length), request, response)
    } catch (error) {
      if (response.destroyed) return
      const body = errorBody(error)
      if (!body) this.#options.onError(error)
      if (response.headersSent) response.destroy()
      else sendJson(response, body?.code ?? 500, body ?? failedBody)
    }
  }

  async #serveApi(path: string, { request, response, reachedBy }: Pick<Call, 'request' | 'response' | 'reachedBy'>): Promise<void> {
    const [name = '', ...rest] = path.split('/').map(decodeSegment)
    const key = `${request.method} ${name}`
    if (key === 'GET oidc' && rest[0] === 'callback') return await requireOidc(this.#oidc).finish(request, response, reachedBy)
    requireSameOrigin(request)
    if (key === 'GET oidc' && rest[0] === 'sign-in') return await requireOidc(this.#oidc).begin(request, response, reachedBy)
    if (key === 'POST links') return this.#users.issueLink(request, response)
    if (key === 'POST session') return await this.#users.signIn(request, response, reachedBy)
    const session = this.#users.of(request, response, reachedBy)
    if (!session) return
    const cut = new AbortController()
    response.once('close', () => cut.abort())
    const answer = await this.#routeOf(key)({
      ...{ session, path: rest, request, response, reachedBy, options: this.#options },
      query: new URL(request.url ?? '', 'http://localhost').searchParams,
      visibility: this.#access.visibility(session),
      tasks: this.#tasks.of({ user: session.user.name, signal: cut.signal }),
      client: () => this.#access.client(session),
      body: () => readJson(request),
    })
    if (answer !== undefined) sendJson(response, 200, answer)
  }

  #routeOf(key: string): Route {
    const own = routeIn(this.#sessionRoutes, key)
    if (own) return own
    const route = routeIn(objectRoutes, key)
    if (!route) throw new StatusError('NotFound', `the console has no ${key}`)
    if (this.#options.readOnly && !key.startsWith('GET ')) throw new StatusError('Forbidden', 'the console is read-only')
    return route
  }
}

const routeIn = (routes: Routes, key: string): Route | undefined => (Object.hasOwn(routes, key) ? routes[key as keyof Routes] : undefined)

function decodeSegment(segment: string): string {
  try {
    return decodeURIComponent(segment.split('?', 1)[0] as string)
  } catch {
    throw badRequest(`the path has an invalid escape: ${JSON.stringify(segment)}`)
  }
}
