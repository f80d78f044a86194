import { deepEqual, equal, match } from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { clientId, startOidcIssuer } from '../../../test/support/oidc-issuer.ts'
import { ConsoleServer, type ConsoleServerOptions, OidcProvider, OneTimeLinks } from './index.ts'

test('a sign-out does not wait for a provider that does not answer', { timeout: 20_000 }, async t => {
  const issuer = await startOidcIssuer()
  const redirectUrl = 'https://console.example/console/api/oidc/callback'
  issuer.register(redirectUrl)
  let nowMs = 0
  const oidc = new OidcProvider({ issuerUrl: issuer.url, clientId }, () => nowMs)
  await oidc.begin(redirectUrl, false)
  const tables = { tenants: new Map(), partitions: new Map(), controllers: new Map() }
  const links = new OneTimeLinks()
  const server = new ConsoleServer({
    ...{ oidc, links, projections: { tables }, assetsDirectory: '', version: 'test' },
    ...{ reachedBy: () => 'loopback', connect: async () => ({}) },
  } as unknown as ConsoleServerOptions)
  const http = createServer((request, response) => void server.handle(request.url ?? '', request, response))
  await new Promise<void>(resolve => http.listen(0, '127.0.0.1', resolve))
  t.after(async () => {
    await server.close()
    http.close()
    http.closeAllConnections()
    issuer.close()
  })
  const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}/console/api/session`
  const link = links.issue({ user: { name: 'ann', groups: [] }, method: 'oidc', idToken: 'token-of-ann' })
  const signedIn = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ link }),
  })
  equal(signedIn.status, 200)
  const { csrfToken } = (await signedIn.json()) as { csrfToken: string }
  const cookie = signedIn.headers
    .getSetCookie()
    .find(each => each.startsWith('oarlock-console-') && !each.includes('oidc'))
    ?.split(';', 1)[0] as string

  issuer.hang()
  nowMs += 2 * 3_600_000
  const signedOut = await fetch(url, {
    method: 'DELETE',
    headers: { cookie, 'x-oarlock-csrf': csrfToken },
    signal: AbortSignal.timeout(5_000),
  })
  match(signedOut.headers.get('set-cookie') ?? '', /^oarlock-console-\d+=; .*Max-Age=0$/)
  const { provider } = (await signedOut.json()) as { provider: { name: string; endSession: string } }
  const { origin, searchParams } = new URL(provider.endSession)
  deepEqual([origin, searchParams.get('id_token_hint')], [issuer.url, 'token-of-ann'])
})
