import { hash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { badRequest, StatusError } from '../../kubernetes/object/index.ts'
import { csrfHeader, type Session, type SignIn, type SignInOptions } from '../protocol/index.ts'
import type { ConsoleServerOptions } from './options.ts'
import { readJson } from './read-json.ts'
import type { Call, Routes } from './route.ts'
import { sendJson } from './send-json.ts'
import type { SessionRecord, Sessions } from './sessions.ts'

const signInOptions: SignInOptions = { methods: ['link', 'token'] }

/** Users sign in and out here; {@link UserSessions.of} finds the session of a request. */
export class UserSessions {
  readonly #options: ConsoleServerOptions
  readonly #sessions: Sessions
  readonly routes: Routes = {
    'GET session': async ({ session }) => this.#factsOf(session),
    'DELETE session': async call => this.#signOut(call),
    'POST active': async ({ session, response }) => {
      session.activeMs = Date.now()
      response.writeHead(204).end()
    },
  }

  constructor(options: ConsoleServerOptions, sessions: Sessions) {
    this.#options = options
    this.#sessions = sessions
  }

  /**
   * Undefined without a session: then it has answered with the ways to sign in.
   * @throws {StatusError} if the request is not from the page.
   */
  of(request: IncomingMessage, response: ServerResponse): SessionRecord | undefined {
    const session = this.#find(request)
    // A browser sends the cookie to the other ports of the host too: without the second secret, which only the page has, it is worth nothing.
    const isFromPage = session !== undefined && request.headers[csrfHeader] === session.csrfToken
    if (!session || (request.method === 'GET' && !isFromPage)) {
      sendJson(response, 401, { code: 401, reason: 'Unauthorized', message: 'sign in', ...signInOptions })
      return undefined
    }
    if (!isFromPage) throw new StatusError('Forbidden', `the header ${csrfHeader} must be the csrfToken of the session`)
    return session
  }

  issueLink({ headers }: IncomingMessage, response: ServerResponse): void {
    const { links, linkToken, linkUser } = this.#options
    const digest = (text: string) => hash('sha256', text, 'buffer')
    if (!timingSafeEqual(digest(headers.authorization ?? ''), digest(`Bearer ${linkToken}`)))
      throw new StatusError('Unauthorized', 'send the token of <data>/console-token as bearer token')
    sendJson(response, 201, { link: links.issue(linkUser) })
  }

  async signIn(request: IncomingMessage, response: ServerResponse): Promise<void> {
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
    const known = this.#find(request)
    if (known && known.user.name === user.name && known.method === method) {
      // The user has signed in again for an action that asks for it: the page keeps its stream.
      known.authenticatedMs = known.activeMs = Date.now()
      return sendJson(response, 200, this.#factsOf(known))
    }
    if (known) this.#sessions.end(known, 'another user has signed in')
    const { secret, session } = this.#sessions.create(user, credential, method)
    response.setHeader('Set-Cookie', this.#cookie(request, secret, Math.floor(this.#sessions.limits.maxAgeMs / 1_000)))
    sendJson(response, 200, this.#factsOf(session))
  }

  #signOut({ session, request, response }: Call): void {
    this.#sessions.end(session, 'signed out')
    response.writeHead(204, { 'Set-Cookie': this.#cookie(request, '', 0) }).end()
  }

  #factsOf(session: SessionRecord): Session {
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

  #find(request: IncomingMessage): SessionRecord | undefined {
    return this.#sessions.find(cookieOf(request, this.#cookieName(request)))
  }

  /** Browsers send cookies of one host to all its ports, so that the name has the port. `__Host-`: no other host of the domain can set it. */
  #cookieName({ socket }: IncomingMessage): string {
    return this.#options.secure ? '__Host-oarlock-console' : `oarlock-console-${socket.localPort}`
  }

  #cookie(request: IncomingMessage, secret: string, maxAgeSeconds: number): string {
    return `${this.#cookieName(request)}=${secret}; Path=/; HttpOnly; SameSite=Strict; Max-Age=${maxAgeSeconds}${this.#options.secure ? '; Secure' : ''}`
  }
}

function cookieOf({ headers }: IncomingMessage, name: string): string | undefined {
  const pairs = (headers.cookie ?? '').split(';').map(pair => pair.trim())
  return pairs.find(pair => pair.startsWith(`${name}=`))?.slice(name.length + 1)
}
