import { randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { StatusError } from '../../kubernetes/object/index.ts'
import { apiPath, pagePath, type SignInProblem } from '../protocol/index.ts'
import { formatCookie, originOf, type ReachedBy, readCookie } from './cookies.ts'
import type { OidcProvider, PendingSignIn } from './oidc-provider.ts'
import type { ConsoleServerOptions } from './options.ts'

/** Of a sign-in that is in progress. */
export const oidcCookieName = 'oarlock-console-oidc'
const maxAgeSeconds = 600

/** Sends a browser to the OIDC provider, and receives it when it returns: then with a link that signs in once, which the page exchanges. */
export class OidcSignIn {
  readonly #provider: OidcProvider
  readonly #options: Pick<ConsoleServerOptions, 'links' | 'onError'>

  constructor(provider: OidcProvider, options: Pick<ConsoleServerOptions, 'links' | 'onError'>) {
    this.#provider = provider
    this.#options = options
  }

  /** `GET oidc/sign-in`. With `?again` the provider authenticates the user again, even one who is signed in there. */
  async begin(request: IncomingMessage, response: ServerResponse, reachedBy: ReachedBy): Promise<void> {
    const again = queryOf(request).has('again')
    try {
      const { url, pending } = await this.#provider.begin(redirectUrl(request, reachedBy), again)
      redirect(response, url, pendingCookie(request, formatPending(pending), maxAgeSeconds, reachedBy))
    } catch (error) {
      this.#options.onError(signInError(error))
      redirect(response, problemPath('unavailable'))
    }
  }

  /** `GET oidc/callback`: the only request that another site may send a browser to. */
  async finish(request: IncomingMessage, response: ServerResponse, reachedBy: ReachedBy): Promise<void> {
    const removed = pendingCookie(request, '', 0, reachedBy)
    const pending = parsePending(readCookie(request, oidcCookieName, reachedBy))
    const returned = queryOf(request)
    // Not begun in this browser: a page of another site must not sign it in as another user.
    if (pending?.state !== returned.get('state')) return redirect(response, problemPath('expired'), removed)
    try {
      const { user, authenticatedMs, idToken } = await this.#provider.finish(returned, redirectUrl(request, reachedBy), pending)
      const browser = randomBytes(24).toString('base64url')
      const secret = this.#options.links.issue({ user, authenticatedMs, idToken, method: 'oidc', browser })
      const bound = formatCookie(request, { name: oidcCookieName, value: browser, sameSite: 'Strict', maxAgeSeconds }, reachedBy)
      redirect(response, `${pagePath}#token=${secret}`, bound)
    } catch (error) {
      this.#options.onError(signInError(error))
      redirect(response, problemPath(returned.has('error') ? 'denied' : 'rejected'), removed)
    }
  }
}

/** For the log, without what the library adds: claims of the user, and parts of the provider's answer. */
function signInError(error: unknown): Error {
  const {
    message,
    error: code,
    error_description: description,
    cause,
  } = error as Error & Partial<Record<'error' | 'error_description', string>>
  const reasons = [code, description, cause instanceof Error ? cause.message : undefined].filter(each => each !== undefined)
  return new Error(`the sign-in with the OIDC provider failed: ${[message, ...reasons].join(': ')}`)
}

const problemPath = (problem: SignInProblem) => `${pagePath}#problem=${problem}`

const queryOf = ({ url = '' }: IncomingMessage) => new URL(url, 'http://localhost').searchParams

const redirectUrl = (request: IncomingMessage, reachedBy: ReachedBy) => `${originOf(request, reachedBy)}${apiPath}oidc/callback`

/** Lax: the browser comes back from another site. It is worth nothing without the code that the provider sends. */
const pendingCookie = (request: IncomingMessage, value: string, age: number, reachedBy: ReachedBy) =>
  formatCookie(request, { name: oidcCookieName, value, sameSite: 'Lax', maxAgeSeconds: age }, reachedBy)

/** Each part is base64url. */
const formatPending = ({ state, nonce, verifier, again }: PendingSignIn) => [state, nonce, verifier, again ? '1' : '0'].join('.')

function parsePending(text: string | undefined): PendingSignIn | undefined {
  const [state, nonce, verifier, again] = (text ?? '').split('.')
  return state && nonce && verifier ? { state, nonce, verifier, again: again === '1' } : undefined
}

function redirect(response: ServerResponse, location: string, cookie?: string): void {
  const headers = { Location: location, 'Cache-Control': 'no-store', 'Referrer-Policy': 'no-referrer', 'X-Content-Type-Options': 'nosniff' }
  response.writeHead(302, { ...headers, ...(cookie !== undefined && { 'Set-Cookie': cookie }) }).end()
}

/** @throws {StatusError} */
export function requireOidc(oidc: OidcSignIn | undefined): OidcSignIn {
  if (!oidc) throw new StatusError('NotFound', 'no OIDC provider is configured')
  return oidc
}
