import { hash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { runResource, type Stack, stackResource, workerResource } from '../../api/index.ts'
import type { Client } from '../../kubernetes/client/index.ts'
import { badRequest, type Resource, StatusError } from '../../kubernetes/object/index.ts'
import { type History, matchingStacks, type Projections } from '../projection/index.ts'
import {
  type ActionRequest,
  actionNames,
  apiPath,
  type BulkRequest,
  type BulkResult,
  csrfHeader,
  deltaIntervalMs,
  destructiveActions,
  pagePath,
  type Session,
  type SignIn,
  type SignInOptions,
} from '../protocol/index.ts'
import { Assets } from './assets.ts'
import { type NeededRight, type Rights, runActions, stackActions, workerActions } from './available-actions.ts'
import { carryOut } from './carry-out.ts'
import { errorBody } from './error-response.ts'
import type { OneTimeLinks } from './one-time-links.ts'
import { readJson } from './read-json.ts'
import { passLog } from './run-log.ts'
import { type ConsoleUser, type Credential, defaultSessionLimits, type SessionLimits, type SessionRecord, Sessions } from './sessions.ts'
import { maxViews, Stream } from './stream.ts'
import { validQuery } from './valid-query.ts'
import { type IsAllowed, Visibility } from './visibility.ts'

export type ConsoleServerOptions = {
  /** Read when a session begins, not before. */
  readonly projections: Projections
  readonly history: History
  /** Where `scripts/build-console.mjs` has built the page. */
  readonly assetsDirectory: string
  readonly links: OneTimeLinks
  /** Bearer token of `POST links`, by which `oarlock console` gets a link for `linkUser`. */
  readonly linkToken: string
  readonly linkUser: ConsoleUser
  /** The user of a bearer token; undefined if it is not valid. @throws if the API server does not decide. */
  authenticateToken(token: string, remoteAddress: string | undefined): Promise<ConsoleUser | undefined>
  /** A client of the API server and the stores with exactly the rights of the user. */
  connect(user: ConsoleUser, credential: Credential): Promise<Client>
  readonly isAllowed: IsAllowed &
    ((user: ConsoleUser, right: NeededRight & { group: string; namespace?: string; name?: string }) => Promise<boolean>)
  /** Whether the request came over TLS, as far as browsers know. */
  readonly secure: boolean
  /** Default false. */
  readonly readOnly?: boolean
  readonly limits?: Partial<SessionLimits>
  /** Default {@link deltaIntervalMs}. A bench replays an hour faster. */
  readonly flushIntervalMs?: number
  readonly version: string
  onError(error: unknown): void
}

/** A stream without a connection is kept for so long. */
const detachedMs = 60_000
const beatEveryMs = 15_000
const sweepEveryMs = 5_000
const maxStreamsPerSession = 16
/** Destructive actions want a sign-in that is no older. */
const recentSignInMs = 5 * 60_000
const bulkAtATime = 8
const maxBulk = 10_000

/** The console of one listener: {@link ConsoleServer.handle} serves every path below `/console/`. */
export class ConsoleServer {
  readonly #options: ConsoleServerOptions
  readonly #assets: Assets
  readonly #sessions: Sessions
  readonly #streams = new Map<string, Stream>()
  readonly #visibility = new WeakMap<SessionRecord, Visibility>()
  readonly #timers: readonly NodeJS.Timeout[]

  constructor(options: ConsoleServerOptions) {
    this.#options = options
    this.#assets = new Assets(options.assetsDirectory)
    this.#sessions = new Sessions({ ...defaultSessionLimits, ...options.limits }, (session, reason) => this.#sessionEnded(session, reason))
    this.#timers = [
      setInterval(() => this.#flush(), options.flushIntervalMs ?? deltaIntervalMs).unref(),
      setInterval(() => {
        for (const stream of this.#streams.values()) stream.beat()
      }, beatEveryMs).unref(),
      setInterval(() => this.#sweep(), sweepEveryMs).unref(),
    ]
  }

  close(): void {
    for (const timer of this.#timers) clearInterval(timer)
    this.#sessions.close()
  }

  /** @param path of the request, which begins with {@link pagePath}. */
  async handle(path: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      if (path.startsWith(apiPath)) return await this.#serveApi(path.slice(apiPath.length), request, response)
      if (request.method !== 'GET' && request.method !== 'HEAD') throw new StatusError('MethodNotAllowed', 'use GET')
      await this.#assets.send(path.slice(pagePath.length), request, response)
    } catch (error) {
      if (response.destroyed) return
      const body = errorBody(error)
      if (!body) this.#options.onError(error)
      if (response.headersSent) response.destroy()
      else sendJson(response, body?.code ?? 500, body ?? { code: 500, reason: 'InternalError', message: 'the console failed: see its log' })
    }
  }

  async #serveApi(path: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = 'GET' } = request
    const [name = '', ...rest] = path.split('/').map(decodeSegment)
    requireSameOrigin(request)
    if (name === 'links' && method === 'POST') return this.#issueLink(request, response)
    if (name === 'session' && method === 'POST') return await this.#signIn(request, response)
    const session = this.#sessions.find(cookieOf(request, this.#cookieName(request)))
    // A browser sends the cookie to the other ports of the host too: without the second secret, which only the page has, it is worth nothing.
    const isFromPage = session !== undefined && request.headers[csrfHeader] === session.csrfToken
    if (!session || (method === 'GET' && !isFromPage))
      return sendJson(response, 401, { code: 401, reason: 'Unauthorized', message: 'sign in', ...signInOptions })
    if (!isFromPage) throw new StatusError('Forbidden', `the header ${csrfHeader} must be the csrfToken of the session`)
    switch (`${method} ${name}`) {
      case 'GET session':
        return sendJson(response, 200, this.#sessionFacts(session))
      case 'DELETE session':
        this.#sessions.end(session, 'signed out')
        return void response.writeHead(204, { 'Set-Cookie': this.#cookie(request, '', 0) }).end()
      case 'POST active':
        session.activeMs = Date.now()
        return void response.writeHead(204).end()
      case 'GET stream':
        return this.#openStream(session, request, response)
      case 'PUT stream':
        return await this.#setViews(session, rest, request, response)
      case 'GET actions':
        return sendJson(response, 200, await this.#actionsOf(session, rest))
      case 'POST actions':
        return sendJson(response, 200, await this.#act(session, (await readJson(request)) as ActionRequest))
      case 'POST bulk':
        return sendJson(response, 200, await this.#actOnMany(session, (await readJson(request)) as BulkRequest))
      case 'GET plans':
        return await this.#passPlan(session, rest, response)
      case 'GET logs':
        return await passLog(await this.#clientOf(session), nameOf(rest), request, response)
      default:
        throw new StatusError('NotFound', `the console has no ${method} ${apiPath}${path}`)
    }
  }

  #issueLink({ headers }: IncomingMessage, response: ServerResponse): void {
    const { links, linkToken, linkUser } = this.#options
    const digest = (text: string) => hash('sha256', text, 'buffer')
    if (!timingSafeEqual(digest(headers.authorization ?? ''), digest(`Bearer ${linkToken}`)))
      throw new StatusError('Unauthorized', 'send the token of <data>/console-token as bearer token')
    sendJson(response, 201, { link: links.issue(linkUser) })
  }

  async #signIn(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = (await readJson(request)) as SignIn
    const { links, authenticateToken } = this.#options
    const signedIn =
      'link' in body && typeof body.link === 'string'
        ? { user: links.redeem(body.link), credential: { kind: 'local' } as const, method: 'link' as const }
        : 'token' in body && typeof body.token === 'string'
          ? {
              user: await authenticateToken(body.token, request.socket.remoteAddress),
              credential: { kind: 'token', token: body.token } as const,
              method: 'token' as const,
            }
          : undefined
    if (!signedIn) throw badRequest('the body must have a link or a token')
    const { user, credential, method } = signedIn
    if (!user) {
      const message =
        method === 'link'
          ? 'the link was used already or is older than 10 minutes: "oarlock console" prints a new one'
          : 'the token is not valid'
      return sendJson(response, 401, { code: 401, reason: 'Unauthorized', message, ...signInOptions })
    }
    const known = this.#sessions.find(cookieOf(request, this.#cookieName(request)))
    if (known && known.user.name === user.name && known.method === method) {
      // The user has signed in again for an action that asks for it: the page keeps its stream.
      known.authenticatedMs = known.activeMs = Date.now()
      return sendJson(response, 200, this.#sessionFacts(known))
    }
    if (known) this.#sessions.end(known, 'another user has signed in')
    const { secret, session } = this.#sessions.create(user, credential, method)
    response.setHeader('Set-Cookie', this.#cookie(request, secret, Math.floor(this.#sessions.limits.maxAgeMs / 1_000)))
    sendJson(response, 200, this.#sessionFacts(session))
  }

  #sessionFacts(session: SessionRecord): Session {
    const { user, method, csrfToken, createdMs, authenticatedMs } = session
    const { projections, readOnly = false, version } = this.#options
    const { idleTimeoutMs, maxAgeMs } = this.#sessions.limits
    const { tenants, partitions, controllers } = projections.tables
    const features = [tenants.size > 0 && 'tenants', partitions.size > 0 && 'partitions', controllers.size > 0 && 'controllers'] as const
    return {
      ...{ user: user.name, groups: user.groups, method, csrfToken, readOnly, version },
      ...{ idleTimeoutMs, expiresAtMs: createdMs + maxAgeMs, authenticatedAtMs: authenticatedMs },
      features: features.filter(feature => feature !== false),
    }
  }

  #openStream(session: SessionRecord, request: IncomingMessage, response: ServerResponse): void {
    const query = new URL(request.url ?? '', 'http://localhost').searchParams
    const known = this.#streams.get(query.get('resume') ?? '')
    const lastId = Number(query.get('last') ?? request.headers['last-event-id'] ?? Number.NaN)
    let stream = known?.session === session ? known : undefined
    if (!stream) {
      const own = [...this.#streams.values()].filter(other => other.session === session)
      if (own.length >= maxStreamsPerSession)
        throw new StatusError('TooManyRequests', `this session has ${own.length} open streams: close other windows of the console`)
      stream = new Stream(session, this.#sourcesOf(session))
      this.#streams.set(stream.id, stream)
    }
    response.writeHead(200, {
      'Content-Type': 'text/event-stream',
      'Cache-Control': 'no-store',
      'X-Content-Type-Options': 'nosniff',
      // Proxies such as nginx must not hold events back.
      'X-Accel-Buffering': 'no',
    })
    stream.attach(response, known === stream && Number.isInteger(lastId) ? lastId : undefined)
    void stream.flush()
  }

  async #setViews(
    session: SessionRecord,
    [id = '', what]: readonly string[],
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const stream = this.#streams.get(id)
    if (what !== 'views' || stream?.session !== session) throw new StatusError('NotFound', 'this stream has ended: open another one')
    const views = await readJson(request)
    if (typeof views !== 'object' || views === null || Array.isArray(views))
      throw badRequest('the body must be an object of views by their ids')
    const entries = Object.entries(views)
    if (entries.length > maxViews) throw badRequest(`a stream has at most ${maxViews} views, got ${entries.length}`)
    stream.setViews(new Map(entries.map(([name, query]) => [name, validQuery(query)])))
    response.writeHead(204).end()
    void stream.flush()
  }

  #sourcesOf(session: SessionRecord) {
    const { projections, history } = this.#options
    return {
      ...{ projections, history, visibility: this.#visibilityOf(session), nowMs: Date.now },
      client: () => this.#clientOf(session),
    }
  }

  #visibilityOf(session: SessionRecord): Visibility {
    const known = this.#visibility.get(session)
    if (known) return known
    const visibility = new Visibility(session.user, this.#options.isAllowed)
    this.#visibility.set(session, visibility)
    return visibility
  }

  #clientOf(session: SessionRecord): Promise<Client> {
    session.client ??= this.#options.connect(session.user, session.credential)
    session.client.catch(() => {
      delete session.client
    })
    return session.client
  }

  #rightsOf(session: SessionRecord, object: { readonly namespace?: string; readonly name: string }): Rights {
    const { isAllowed, readOnly = false } = this.#options
    return { readOnly, has: async right => await isAllowed(session.user, { ...right, group: 'oarlock.dev', ...object }) }
  }

  async #actionsOf(session: SessionRecord, path: readonly string[]) {
    const client = await this.#clientOf(session)
    const [kind, first = '', second = ''] = path
    if (kind === 'workers')
      return await workerActions(await client.resource(workerResource).get(first), this.#rightsOf(session, { name: first }))
    const rights = this.#rightsOf(session, { namespace: first, name: second })
    if (kind === 'stacks')
      return await stackActions(
        (await client.resource(stackResource as Resource<Pick<Stack, 'spec' | 'status'>>).get(second, { namespace: first })) as Stack,
        rights,
      )
    if (kind === 'runs') return await runActions(await client.resource(runResource).get(second, { namespace: first }), rights)
    throw new StatusError('NotFound', 'use actions/stacks/NAMESPACE/NAME, actions/runs/NAMESPACE/NAME or actions/workers/NAME')
  }

  async #act(session: SessionRecord, request: ActionRequest) {
    this.#requireWritable()
    if (!actionNames.includes(request.action) || typeof request.name !== 'string' || request.name === '')
      throw badRequest(`the body must have an action (${actionNames.join(', ')}) and the name of its object`)
    if (destructiveActions.has(request.action)) {
      if (request.confirmation !== request.name) throw badRequest(`type the name of the object to confirm: expected "${request.name}"`)
      if (Date.now() - session.authenticatedMs > recentSignInMs)
        throw new StatusError(
          'Unauthorized',
          `sign in again: "${request.action}" needs a sign-in of the last ${recentSignInMs / 60_000} minutes`,
        )
    }
    session.activeMs = Date.now()
    const client = await this.#clientOf(session)
    return { ok: true, message: await carryOut(client, session.user.name, request) } as const
  }

  async #actOnMany(session: SessionRecord, request: BulkRequest): Promise<BulkResult> {
    this.#requireWritable()
    const visible = await this.#visibilityOf(session).of('stacks', () =>
      [...this.#options.projections.tables.stacks.values()].map(({ namespace }) => namespace),
    )
    const rows = matchingStacks(this.#options.projections, request, visible)
    if (rows.length !== request.expected)
      throw new StatusError('Conflict', `${rows.length} Stacks match now, and ${request.expected} did when you looked: look again`)
    if (rows.length > maxBulk) throw badRequest(`at most ${maxBulk} Stacks at a time, got ${rows.length}: use a narrower filter`)
    session.activeMs = Date.now()
    const client = await this.#clientOf(session)
    const results: BulkResult['results'][number][] = []
    const left = [...rows].reverse()
    const worker = async () => {
      for (let row = left.pop(); row; row = left.pop()) {
        const { key, namespace, name, activeRun } = row
        const shown = request.stacks?.find(stack => stack.key === key)
        try {
          if (request.action === 'cancel' && activeRun === undefined) throw new StatusError('Conflict', `stack/${name} has no active Run`)
          if (request.action === 'approve' && shown?.digest === undefined)
            throw badRequest('a bulk approval names each Stack with the digest and the resourceVersion that were shown')
          const target = request.action === 'cancel' ? (activeRun as string) : name
          const message = await carryOut(client, session.user.name, { ...shown, action: request.action, namespace, name: target })
          results.push({ key, ok: true, message })
        } catch (error) {
          const body = errorBody(error)
          if (!body) this.#options.onError(error)
          results.push({ key, ok: false, ...(body ?? { code: 500, reason: 'InternalError', message: 'the console failed: see its log' }) })
        }
      }
    }
    await Promise.all(Array.from({ length: bulkAtATime }, worker))
    return { results: results.sort((a, b) => (a.key < b.key ? -1 : 1)) }
  }

  #requireWritable(): void {
    if (this.#options.readOnly) throw new StatusError('Forbidden', 'the console is read-only')
  }

  /** The plan that a Run has stored, or the approved one that it applies. */
  async #passPlan(session: SessionRecord, [namespace = '', name = '']: readonly string[], response: ServerResponse): Promise<void> {
    const client = await this.#clientOf(session)
    const { spec } = await client.resource(runResource).get(name, { namespace })
    const planned = spec.approvedPlan?.runName ?? name
    const path = ['state', namespace, spec.stackRef.name, 'diff', planned].map(encodeURIComponent).join('/')
    sendJson(response, 200, await (await client.request({ method: 'GET', path: `/${path}` })).json())
  }

  #flush(): void {
    for (const stream of this.#streams.values()) if (stream.isConnected) stream.flush().catch(error => this.#options.onError(error))
  }

  #sweep(): void {
    this.#sessions.sweep()
    for (const [id, stream] of this.#streams)
      if (stream.detachedMs !== undefined && performance.now() - stream.detachedMs > detachedMs) this.#streams.delete(id)
  }

  #sessionEnded(session: SessionRecord, reason: string): void {
    for (const [id, stream] of this.#streams) {
      if (stream.session !== session) continue
      stream.end(reason)
      this.#streams.delete(id)
    }
    void session.client?.then(client => client.close()).catch(() => {})
  }

  /** Browsers send cookies of one host to all its ports, so that the name has the port. `__Host-`: no other host of the domain can set it. */
  #cookieName({ socket }: IncomingMessage): string {
    return this.#options.secure ? '__Host-oarlock-console' : `oarlock-console-${socket.localPort}`
  }

  #cookie(request: IncomingMessage, secret: string, maxAgeSeconds: number): string {
    return `${this.#cookieName(request)}=${secret}; Path=/; HttpOnly; SameSite=Strict; Max-Age=${maxAgeSeconds}${this.#options.secure ? '; Secure' : ''}`
  }
}

const signInOptions: SignInOptions = { methods: ['link', 'token'] }

/** A page of another site must not use the session, nor sign the browser in as another user (CSRF). */
function requireSameOrigin({ headers }: IncomingMessage): void {
  const site = headers['sec-fetch-site']
  const isForeign = site !== undefined && site !== 'same-origin' && site !== 'none'
  const { origin, host } = headers
  if (isForeign || (origin !== undefined && hostOf(origin) !== host))
    throw new StatusError('Forbidden', 'requests of other sites are rejected')
}

function hostOf(origin: string): string | undefined {
  try {
    return new URL(origin).host
  } catch {
    return undefined
  }
}

function cookieOf({ headers }: IncomingMessage, name: string): string | undefined {
  const pairs = (headers.cookie ?? '').split(';').map(pair => pair.trim())
  return pairs.find(pair => pair.startsWith(`${name}=`))?.slice(name.length + 1)
}

const nameOf = ([namespace = '', name = '']: readonly string[]) => ({ namespace, name })

function decodeSegment(segment: string): string {
  try {
    return decodeURIComponent(segment.split('?', 1)[0] as string)
  } catch {
    throw badRequest(`the path has an invalid escape: ${JSON.stringify(segment)}`)
  }
}

function sendJson(response: ServerResponse, code: number, body: unknown): void {
  const headers = { 'Content-Type': 'application/json', 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' }
  response.writeHead(code, headers).end(JSON.stringify(body))
}
