import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { Page } from 'playwright-core'

/** What is used of `oidc-provider`, which has no types of its own. */
type ProviderModule = {
  readonly default: new (
    issuer: string,
    configuration: object,
  ) => { callback(): (request: IncomingMessage, response: ServerResponse) => Promise<void> }
}
type ProviderContext = {
  readonly oidc: {
    readonly client: { readonly clientId: string }
    readonly session: { readonly accountId: string }
    readonly provider: {
      readonly Grant: new (of: object) => { addOIDCScope(scopes: string): void; save(): Promise<string> }
    }
  }
}

export const clientId = 'oarlock'
export const clientSecret = 'secret-of-the-client'

export type OidcIssuer = {
  /** On `localhost`, which is another site than 127.0.0.1. */
  readonly url: string
  /** Registers the client. Before, the issuer answers nothing. */
  register(redirectUrl: string): void
  /** Leaves every later request without an answer. */
  hang(): void
  close(): void
}

/** A certified OpenID Connect provider on a port of its own, with TLS if it has a certificate. Any name with any password signs in; every user is in the group `dev`. */
export async function startOidcIssuer(tls?: { readonly key: string; readonly cert: string }): Promise<OidcIssuer> {
  const { default: Provider } = (await import('oidc-provider' as string)) as ProviderModule
  let handle: ((request: IncomingMessage, response: ServerResponse) => Promise<void>) | undefined
  const answer = (request: IncomingMessage, response: ServerResponse) => {
    if (handle) void handle(request, response)
    else response.writeHead(503).end()
  }
  const server = tls ? createTlsServer(tls, answer) : createServer(answer)
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const url = `${tls ? 'https' : 'http'}://localhost:${(server.address() as AddressInfo).port}`
  return {
    url,
    register(redirectUrl) {
      handle = new Provider(url, {
        clients: [
          {
            ...{ client_id: clientId, client_secret: clientSecret, redirect_uris: [redirectUrl], require_auth_time: true },
            post_logout_redirect_uris: [new URL('/console/', redirectUrl).href],
          },
        ],
        claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['groups'] },
        conformIdTokenClaims: false,
        pkce: { required: () => true },
        cookies: { keys: ['key-of-the-test'] },
        findAccount: (_context: unknown, id: string) => ({
          accountId: id,
          claims: () => ({ sub: id, email: `${id}@example.com`, email_verified: true, groups: ['dev', 'system:masters'] }),
        }),
        // Without a page that asks for consent.
        async loadExistingGrant({ oidc }: ProviderContext) {
          const grant = new oidc.provider.Grant({ clientId: oidc.client.clientId, accountId: oidc.session.accountId })
          grant.addOIDCScope('openid email profile')
          await grant.save()
          return grant
        },
      }).callback()
    },
    hang() {
      handle = async () => {}
    },
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}

/** On the provider's page. */
export async function signInAtIssuer(page: Page, name: string): Promise<void> {
  await page.locator('input[name=login]').fill(name)
  await page.locator('input[name=password]').fill('any')
  await page.locator('button[type=submit]').click()
}
