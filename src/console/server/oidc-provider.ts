import type { AuthorizationServer, Client } from 'oauth4webapi'
import { fetchWithCa } from './fetch-with-ca.ts'
import { type OidcClaims, oidcUser } from './oidc-user.ts'
import type { ConsoleUser } from './sessions.ts'

export type OidcOptions = OidcClaims & {
  /** HTTPS, or HTTP on a loopback name. */
  readonly issuerUrl: string
  readonly clientId: string
  /** Default: a public client, which has none. */
  readonly clientSecret?: string | undefined
  /** Authorities of the certificate of the provider, as PEM. Default: those of the system. */
  readonly caCertificate?: string | undefined
  /** On the button. Default: the host of the issuer. */
  readonly name?: string | undefined
  /** Default `openid`, `profile`, `email`. */
  readonly scopes?: readonly string[] | undefined
}

/** What a browser keeps between its request at the provider and its return. */
export type PendingSignIn = {
  readonly state: string
  readonly nonce: string
  readonly verifier: string
  /** Whether the provider was asked to authenticate the user again. */
  readonly again: boolean
}

/** After so long the metadata of the provider is read again. */
const metadataMs = 3_600_000
/** A user who signs in again has done so since. */
const againSeconds = 120
const timeoutMs = 10_000
/** A longer ID token makes an address that proxies and providers reject: then the provider asks whom to sign out. */
const maxHintChars = 4_096

/** An OpenID Connect provider: the authorization code flow with PKCE, `state` and `nonce`. The library checks the ID token. */
export class OidcProvider {
  readonly name: string
  readonly #options: OidcOptions
  readonly #client: Client
  readonly #nowMs: () => number
  #metadata: { readonly read: Promise<AuthorizationServer>; readonly atMs: number } | undefined
  /** Read last: also when it is too old to begin a sign-in with. */
  #lastMetadata: AuthorizationServer | undefined

  /** @param nowMs a monotonic clock in milliseconds. */
  constructor(options: OidcOptions, nowMs: () => number = () => performance.now()) {
    this.#options = options
    this.#nowMs = nowMs
    this.name = options.name ?? new URL(options.issuerUrl).host
    this.#client = { client_id: options.clientId }
  }

  /** The address at the provider where the user signs in. @throws if the provider does not answer. */
  async begin(redirectUrl: string, again: boolean): Promise<{ readonly url: string; readonly pending: PendingSignIn }> {
    const oauth = await import('oauth4webapi')
    const { authorization_endpoint } = await this.#readMetadata()
    if (authorization_endpoint === undefined) throw new Error('the OIDC provider has no authorization_endpoint')
    const pending = {
      ...{ state: oauth.generateRandomState(), nonce: oauth.generateRandomNonce(), verifier: oauth.generateRandomCodeVerifier(), again },
    }
    const url = new URL(authorization_endpoint)
    const parameters = {
      ...{ client_id: this.#options.clientId, redirect_uri: redirectUrl, response_type: 'code' },
      scope: (this.#options.scopes ?? ['openid', 'profile', 'email']).join(' '),
      ...{ state: pending.state, nonce: pending.nonce },
      ...{ code_challenge: await oauth.calculatePKCECodeChallenge(pending.verifier), code_challenge_method: 'S256' },
      ...(again && { prompt: 'login', max_age: String(againSeconds) }),
    }
    for (const [key, value] of Object.entries(parameters)) url.searchParams.set(key, value)
    return { url: url.href, pending }
  }

  /**
   * The user who has returned from the provider, and when the provider has authenticated them: 0 if it does not say.
   * @throws {Error} if any check fails: `state`, code, issuer, audience, times, nonce, signature, claims.
   */
  async finish(
    returned: URLSearchParams,
    redirectUrl: string,
    { state, nonce, verifier, again }: PendingSignIn,
  ): Promise<{ readonly user: ConsoleUser; readonly authenticatedMs: number; readonly idToken: string }> {
    const oauth = await import('oauth4webapi')
    const metadata = await this.#readMetadata()
    const { clientSecret } = this.#options
    const parameters = oauth.validateAuthResponse(metadata, this.#client, returned, state)
    const isPost = metadata.token_endpoint_auth_methods_supported?.includes('client_secret_basic') === false
    const authentication =
      clientSecret === undefined ? oauth.None() : isPost ? oauth.ClientSecretPost(clientSecret) : oauth.ClientSecretBasic(clientSecret)
    const response = await oauth.authorizationCodeGrantRequest(
      metadata,
      this.#client,
      authentication,
      parameters,
      redirectUrl,
      verifier,
      await this.#requestOptions(),
    )
    const tokens = await oauth.processAuthorizationCodeResponse(metadata, this.#client, response, {
      ...{ expectedNonce: nonce, requireIdToken: true },
      ...(again && { maxAge: againSeconds }),
    })
    await oauth.validateApplicationLevelSignature(metadata, response, await this.#requestOptions())
    const claims = oauth.getValidatedIdTokenClaims(tokens)
    if (!claims || tokens.id_token === undefined) throw new Error('the answer has no ID token')
    const user = oidcUser(claims.iss, claims, this.#options)
    return { user, authenticatedMs: (claims.auth_time ?? 0) * 1_000, idToken: tokens.id_token }
  }

  /**
   * The address at the provider that ends the session of the user there (RP-initiated logout) and then sends the browser to `returnUrl`, which the client must have registered.
   * Undefined if the provider has none. A sign-out does not wait for the provider: the metadata is that of the last sign-in, or newer.
   */
  endSessionUrl(idToken: string, returnUrl: string): string | undefined {
    const endpoint = this.#lastMetadata?.end_session_endpoint
    const url = endpoint === undefined ? null : URL.parse(endpoint)
    if (url?.protocol !== 'https:' && !(url?.protocol === 'http:' && this.#isPlain)) return undefined
    url.searchParams.set('client_id', this.#options.clientId)
    url.searchParams.set('post_logout_redirect_uri', returnUrl)
    if (idToken.length <= maxHintChars) url.searchParams.set('id_token_hint', idToken)
    return url.href
  }

  get #isPlain(): boolean {
    return this.#options.issuerUrl.startsWith('http:')
  }

  #readMetadata(): Promise<AuthorizationServer> {
    const nowMs = this.#nowMs()
    const known = this.#metadata
    if (known && nowMs - known.atMs < metadataMs) return known.read
    const read = this.#discover()
    const metadata = { read, atMs: nowMs }
    this.#metadata = metadata
    read.catch(() => {
      if (this.#metadata === metadata) this.#metadata = undefined
    })
    return read
  }

  async #discover(): Promise<AuthorizationServer> {
    const oauth = await import('oauth4webapi')
    const issuer = new URL(this.#options.issuerUrl)
    const read = await oauth.processDiscoveryResponse(issuer, await oauth.discoveryRequest(issuer, await this.#requestOptions()))
    this.#lastMetadata = read
    return read
  }

  async #requestOptions() {
    const { allowInsecureRequests, customFetch } = await import('oauth4webapi')
    const { caCertificate } = this.#options
    return {
      signal: AbortSignal.timeout(timeoutMs),
      ...(this.#isPlain && { [allowInsecureRequests]: true }),
      ...(caCertificate !== undefined && { [customFetch]: fetchWithCa(caCertificate) }),
    }
  }
}
