import { equal, match, rejects } from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { makeCertificate } from '../../../test/support/make-certificate.ts'
import { clientId, startOidcIssuer } from '../../../test/support/oidc-issuer.ts'
import { OidcProvider } from './oidc-provider.ts'

const redirectUrl = 'https://console.example/console/api/oidc/callback'

test('a provider with a certificate of a private authority is reached with that authority only', async t => {
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-oidc-'))
  t.after(() => rmSync(directory, { recursive: true, force: true }))
  const { key, cert } = makeCertificate(directory)
  const issuer = await startOidcIssuer({ key, cert })
  t.after(() => issuer.close())
  issuer.register(redirectUrl)
  const begin = (caCertificate?: string) => new OidcProvider({ issuerUrl: issuer.url, clientId, caCertificate }).begin(redirectUrl, false)
  match((await begin(cert)).url, new RegExp(`^${issuer.url}/auth\\?client_id=${clientId}`))
  const isUntrusted = ({ cause, message }: Error) => /self.signed certificate/.test(`${message} ${(cause as Error | undefined)?.message}`)
  await rejects(begin(), isUntrusted)
  await rejects(begin(makeCertificate(directory).cert), isUntrusted)
})

test('the session at the provider is ended with the ID token, which is left out if it is too long for an address', async t => {
  const issuer = await startOidcIssuer()
  t.after(() => issuer.close())
  issuer.register(redirectUrl)
  const provider = new OidcProvider({ issuerUrl: issuer.url, clientId })
  await provider.begin(redirectUrl, false)
  for (const [idToken, expected] of [
    ['short', 'short'],
    ['x'.repeat(4_097), null],
  ] as const) {
    const { origin, searchParams } = new URL(provider.endSessionUrl(idToken, 'https://console.example/console/') ?? '')
    equal(origin, issuer.url)
    equal(searchParams.get('id_token_hint'), expected)
    equal(searchParams.get('client_id'), clientId)
    equal(searchParams.get('post_logout_redirect_uri'), 'https://console.example/console/')
  }
})
