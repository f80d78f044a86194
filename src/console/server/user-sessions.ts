import { hash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { badRequest, StatusError } from '../../kubernetes/object/index.ts'
import { apiPath, csrfHeader, pagePath, type Session, type SignIn, type SignInOptions, type SignOut } from '../protocol/index.ts'
import { formatCookie, originOf, type ReachedBy, readCookie } from './cookies.ts'
import { oidcCookieName } from './oidc-sign-in.ts'
import type { ConsoleServerOptions } from './options.ts'
import { readJson } from './read-json.ts'
import type { Call, Routes } from './route.ts'
import { sendJson } from './send-json.ts'
import type { SessionAccess } from './session-access.ts'
import type { Credential, NewSession, SessionRecord, Sessions } from './sessions.ts'

const cookieName = 'oarlock-console'

/** Users sign in and out here; {@link UserSessions.of} finds the session of a request. */
export class UserSessions {
  readonly #options: ConsoleServerOptions
  readonly #sessions: Sessions
  readonly #access: SessionAccess
  readonly #signInOptions: SignInOptions
  readonly routes: Routes = {
    'GET session': async ({ session }) => this.#factsOf(session),
    'DELETE session': async call => this.#signOut(call),
    'POST active': async ({ session, response }) => {
      session.activeMs = Date.now()
      response.writeHead(204).end()
    },
  }

  constructor(options: ConsoleServerOptions, sessions: Sessions, access: SessionAccess) {
    this.#options = options
    this.#sessions = sessions
    this.#access = access
    this.#signInOptions = {
      methods: options.administrator ? ['link', 'token'] : ['token'],
      ...(options.oidc && { oidc: { name: options.oidc.name, signIn: `${apiPath}oidc/sign-in` } }),
    }
  }

  /**
   * Undefined without a session: then it has answered with the ways to sign in.
   * @throws {StatusError} if the request is not from the page.
   */
  of(request: IncomingMessage, response: ServerResponse, reachedBy: ReachedBy): SessionRecord | undefined {
    const session = this.#find(request, reachedBy)
    // A browser sends the cookie to the other ports of the host too: without the second secret, which only the page has, it is worth nothing.
    const isFromPage = session !== undefined && request.headers[csrfHeader] === session.csrfToken
    if (!session || (request.method === 'GET' && !isFromPage)) {
      this.#reject(response, 'sign in')
      return undefined
    }
    if (!isFromPage) throw new StatusError('Forbidden', `the header ${csrfHeader} must be the csrfToken of the session`)
    return session
  }

  issueLink({ headers }: IncomingMessage, response: ServerResponse): void {
    const { links, administrator } = this.#options
    if (!administrator) throw new StatusError('NotFound', 'this console prints no links: sign in with a token')
    const digest = (text: string) => hash('sha256', text, 'buffer')
    if (!timingSafeEqual(digest(headers.authorization ?? ''), digest(`Bearer ${administrator.linkToken}`)))
      throw new StatusError('Unauthorized', 'send the token of <data>/console-token as bearer token')
    sendJson(response, 201, { link: links.issue({ user: administrator.user, method: 'link' }) })
  }

  async signIn(request: IncomingMessage, response: ServerResponse, reachedBy: ReachedBy): Promise<void> {
    const body = (await readJson(request)) as Partial<Record<'link' | 'token', unknown>>
    if (typeof body.link === 'string') {
      const linked = this.#options.links.redeem(body.link)
      // A link from the provider's answer to another browser would sign this one in as another user.
      if (linked?.browser !== undefined && linked.browser !== readCookie(request, oidcCookieName, reachedBy))
        return this.#reject(response, 'the sign-in was begun in another browser: sign in here')
      if (linked)
        return this.#accept({ authenticatedMs: Date.now(), credential: { kind: 'local' }, ...linked }, request, response, reachedBy)
      return this.#reject(response, 'the link was used already or is older than 10 minutes: "oarlock console" prints a new one')
    }
    if (typeof body.token !== 'string') throw badRequest('the body must have a link or a token')
    const { token } = body as SignIn & { token: string }
    const user = await this.#options.authenticateToken(token, request.socket.remoteAddress)
    if (!user) return this.#reject(response, 'the token is not valid')
    const credential: Credential = { kind: 'token', token }
    this.#accept({ user, credential, method: 'token', authenticatedMs: Date.now() }, request, response, reachedBy)
  }

  #accept(signedIn: NewSession, request: IncomingMessage, response: ServerResponse, reachedBy: ReachedBy): void {
    if (signedIn.method === 'oidc')
      response.setHeader(
        'Set-Cookie',
        formatCookie(request, { name: oidcCookieName, value: '', sameSite: 'Strict', maxAgeSeconds: 0 }, reachedBy),
      )
    const known = this.#find(request, reachedBy)
    if (known && isSameUser(known, signedIn)) {
      // The user has signed in again for an action that asks for it: the page keeps its stream.
      known.authenticatedMs = signedIn.authenticatedMs
      known.idToken = signedIn.idToken
      // The token before may have expired.
      if (signedIn.credential.kind === 'token') this.#renew(known, signedIn.credential)
      known.activeMs = Date.now()
      sendJson(response, 200, this.#factsOf(known))
      return
    }
    if (known) this.#sessions.end(known, 'another user has signed in')
    const { secret, session } = this.#sessions.create(signedIn)
    response.appendHeader('Set-Cookie', sessionCookie(request, secret, Math.floor(this.#sessions.limits.maxAgeMs / 1_000), reachedBy))
    sendJson(response, 200, this.#factsOf(session))
  }

  #renew(session: SessionRecord, credential: Credential): void {
    session.credential = credential
    this.#access.renew(session)
  }

  #signOut({ session, request, response, reachedBy }: Call): SignOut {
    this.#sessions.end(session, 'signed out')
    response.setHeader('Set-Cookie', sessionCookie(request, '', 0, reachedBy))
    const { oidc } = this.#options
    if (!oidc || session.idToken === undefined) return {}
    const endSession = oidc.endSessionUrl(session.idToken, `${originOf(request, reachedBy)}${pagePath}`)
    return endSession === undefined ? {} : { provider: { name: oidc.name, endSession } }
  }

  #reject(response: ServerResponse, message: string): void {
    sendJson(response, 401, { code: 401, reason: 'Unauthorized', message, ...this.#signInOptions })
  }

  #factsOf(session: SessionRecord): Session {
    const { user, method, csrfToken, createdMs, authenticatedMs } = session
    const { projections, oidc, readOnly = false, version } = this.#options
    const { idleTimeoutMs, maxAgeMs } = this.#sessions.limits
    const { tenants, partitions, controllers } = projections.tables
    const features = [tenants.size > 0 && 'tenants', partitions.size > 0 && 'partitions', controllers.size > 0 && 'controllers'] as const
    return {
      ...{ user: user.name, groups: user.groups, method, csrfToken, readOnly, version },
      ...(method === 'oidc' && oidc && { signInAgain: `${apiPath}oidc/sign-in?again` }),
      ...{ idleTimeoutMs, expiresAtMs: createdMs + maxAgeMs, authenticatedAtMs: authenticatedMs },
      features: features.filter(feature => feature !== false),
    }
  }

  #find(request: IncomingMessage, reachedBy: ReachedBy): SessionRecord | undefined {
    return this.#sessions.find(readCookie(request, cookieName, reachedBy))
  }
}

const isSameUser = (a: NewSession, b: NewSession) =>
  a.method === b.method && a.user.name === b.user.name && JSON.stringify(a.user.groups) === JSON.stringify(b.user.groups)

const sessionCookie = (request: IncomingMessage, value: string, maxAgeSeconds: number, reachedBy: ReachedBy) =>
  formatCookie(request, { name: cookieName, value, sameSite: 'Strict', maxAgeSeconds }, reachedBy)
