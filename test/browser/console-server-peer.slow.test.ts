/** `oarlock console-server` on a real kube-apiserver with its own ServiceAccount: users of tokens, users of a provider by impersonation, and the stores. */
import { deepEqual, equal, match } from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import { stackResource, systemNamespace } from '../../src/api/index.ts'
import { startConsoleProcess } from '../../src/app/console/console-process.ts'
import { startControllerProcess } from '../../src/app/controllers/controller-process.ts'
import { installOarlock } from '../../src/app/controllers/install.ts'
import { account, clusterRole, clusterRoleBinding, group, type Manifest, roleBinding } from '../../src/app/manifests/rule.ts'
import type { RoleProcess } from '../../src/app/role-process.ts'
import { startStoresProcess } from '../../src/app/stores/stores-process.ts'
import { type AccessOptions, type Client, createClient, namespaceResource } from '../../src/kubernetes/client/index.ts'
import { silentLog } from '../../src/kubernetes/controller/index.ts'
import { type Peer, peerMissing, startPeer } from '../conformance/peer.ts'
import { launchChromium, withoutChromium } from '../support/chromium.ts'
import { eventually } from '../support/eventually.ts'
import { clientId, clientSecret, type OidcIssuer, signInAtIssuer, startOidcIssuer } from '../support/oidc-issuer.ts'

const host = 'console.example'

describe('oarlock console-server on kube-apiserver', { skip: peerMissing() ?? withoutChromium, timeout: 300_000 }, () => {
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-console-server-'))
  let peer: Peer
  let client: Client
  let issuer: OidcIssuer
  let stores: RoleProcess
  let console_: RoleProcess
  let consoleClient: Client
  let browser: Browser
  let page: Page
  let url: string

  before(async () => {
    peer = await startPeer()
    const cluster = { server: peer.url, token: peer.tokens.admin, insecureSkipTlsVerify: true }
    client = await createClient({ cluster })
    await installOarlock(client)
    for (const namespace of ['a', 'b']) {
      await client.resource(namespaceResource).create({ metadata: { name: namespace } })
      await client.resource(stackResource).create({
        metadata: { namespace, name: 'one' },
        spec: { engine: 'command', command: { apply: ['true'] }, source: { inline: { files: { a: '1' } } } },
      })
    }
    const listen = { host: '127.0.0.1', port: 0 }
    const role = { client, listen, names: [], log: silentLog }
    stores = await startStoresProcess({ ...role, dataDir: join(directory, 'stores'), onLost: () => {} })
    issuer = await startOidcIssuer()
    const own = await tokenOf(systemNamespace, 'oarlock-console-server')
    // The roles that the chart has with console.oidc.
    await apply(
      clusterRole('oarlock:console-impersonator', [
        { apiGroups: [''], resources: ['users'], verbs: ['impersonate'] },
        { apiGroups: [''], resources: ['groups'], resourceNames: ['oidc:dev'], verbs: ['impersonate'] },
      ]),
      clusterRoleBinding('oarlock:console-impersonator', 'oarlock:console-impersonator', [
        account(systemNamespace, 'oarlock-console-server'),
      ]),
      roleBinding('a', 'view', 'oarlock:view', [group('oidc:dev')]),
      roleBinding('b', 'view', 'oarlock:view', [account('b', 'default')]),
    )
    const access: AccessOptions = { cluster: { ...cluster, token: own } }
    consoleClient = await createClient(access)
    console_ = await startConsoleProcess({
      ...{ ...role, client: consoleClient, access, names: [host], dataDir: join(directory, 'console'), version: 'test' },
      settings: {
        hosts: [host],
        oidc: {
          ...{ issuerUrl: issuer.url, clientId, clientSecret, name: 'the test provider', usernamePrefix: 'oidc:' },
          ...{ groupsClaim: 'groups', groupsPrefix: 'oidc:', allowedGroups: ['oidc:dev'] },
        },
      },
    })
    await eventually(async () => console_.notReady().length === 0, 'the console to be ready')
    const { port } = new URL(console_.url)
    url = `https://${host}:${port}/console/`
    issuer.register(`${url}api/oidc/callback`)
    browser = await launchChromium([`--host-resolver-rules=MAP ${host} 127.0.0.1`, '--ignore-certificate-errors'])
    page = await (await browser.newContext()).newPage()
  })
  after(async () => {
    await browser?.close()
    await console_?.stop()
    await stores?.stop()
    issuer?.close()
    await consoleClient?.close()
    await client?.close()
    await peer?.close()
    rmSync(directory, { recursive: true, force: true })
  })

  async function apply(...manifests: Manifest[]): Promise<void> {
    for (const { metadata, kind, ...body } of manifests) {
      const where = metadata.namespace === undefined ? '' : `namespaces/${metadata.namespace}/`
      const path = `/apis/rbac.authorization.k8s.io/v1/${where}${kind.toLowerCase()}s`
      await client.request({ method: 'POST', path, body: { ...body, kind, metadata } })
    }
  }
  async function tokenOf(namespace: string, name: string): Promise<string> {
    const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${name}`
    const meta = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace } }
    // No controller creates the account `default` here.
    if (name === 'default') await client.request({ method: 'POST', path: `/api/v1/namespaces/${namespace}/serviceaccounts`, body: meta })
    const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} }
    return ((await (await client.request({ method: 'POST', path: `${path}/token`, body })).json()) as { status: { token: string } }).status
      .token
  }
  const stacksShown = async () => {
    await page.goto(`${url}stacks`)
    await page.locator('tbody tr:not(.placeholder)').first().waitFor()
    return await page.locator('tbody tr:not(.placeholder) a').evaluateAll(links => links.map(link => (link as HTMLAnchorElement).pathname))
  }
  /** As the page sends it. */
  const request = async (method: string, path: string, body?: object) =>
    await page.evaluate(
      async ({ method, path, body }) => {
        const response = await fetch(`/console/api/${path}`, {
          method,
          headers: { 'content-type': 'application/json', 'x-oarlock-csrf': localStorage.getItem('oarlock-csrf') ?? '' },
          ...(body && { body: JSON.stringify(body) }),
        })
        const { reason, message } = (await response.json()) as { reason?: string; message?: string }
        return { status: response.status, reason, message }
      },
      { method, path, body },
    )
  const suspend = { action: 'suspend', namespace: 'a', name: 'one' }

  test('a user of the provider is impersonated: kube-apiserver and the stores decide for the user and its groups', async () => {
    await page.goto(url)
    await page.getByRole('link', { name: 'Sign in with the test provider' }).click()
    await signInAtIssuer(page, 'ann')
    await page.locator('.user').waitFor()
    equal(await page.locator('.user').getAttribute('title'), 'oidc:ann\noidc:dev')
    const [cookie] = (await page.context().cookies(url)).filter(({ name }) => name.includes('oarlock'))
    deepEqual([cookie?.name, cookie?.secure, cookie?.httpOnly, cookie?.sameSite], ['__Host-oarlock-console', true, true, 'Strict'])
    deepEqual(await stacksShown(), ['/console/stacks/a/one'])
    const rejected = await request('POST', 'actions', suspend)
    equal(rejected.status, 403)
    match(rejected.message ?? '', /User "oidc:ann" cannot patch resource "stacks"/)
    // In `a` the log may be read, and there is none; in `b` it may not.
    equal((await request('GET', 'logs/a/one-1')).status, 404)
    const hidden = await request('GET', 'logs/b/one-1')
    equal(hidden.status, 403)
    match(hidden.message ?? '', /oidc:ann/)
    await apply(roleBinding('a', 'edit', 'oarlock:edit', [{ kind: 'Group', apiGroup: 'rbac.authorization.k8s.io', name: 'oidc:dev' }]))
    await eventually(async () => (await request('POST', 'actions', suspend)).status === 200, 'the new right to be used')
    const { spec, metadata } = await client.resource(stackResource).get('one', { namespace: 'a' })
    equal(spec.suspend, true)
    deepEqual(metadata.managedFields?.map(({ manager }) => manager).includes('oarlock-console'), true)
  })

  test('a user whose name is not ASCII has exactly their own rights, at kube-apiserver and at the stores', async () => {
    const name = 'josé 日本 à'
    const user = { kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: `oidc:${name}` } as const
    await apply(...['view', 'edit'].map(role => roleBinding('b', `${role}-other`, `oarlock:${role}`, [user])))
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.goto(`${url}api/oidc/sign-in?again`)
    await signInAtIssuer(page, name)
    await page.locator('.user').waitFor()
    equal(await page.locator('.user').getAttribute('title'), `oidc:${name}\noidc:dev`)
    await eventually(async () => (await request('POST', 'actions', { ...suspend, namespace: 'b' })).status === 200, 'the action')
    const log = await request('GET', 'logs/b/one-1')
    equal(log.status, 404, String(log.message))
    const rejected = await request('POST', 'actions', { action: 'cordon', name: 'worker' })
    equal(rejected.status, 403)
    match(rejected.message ?? '', /User "oidc:josé 日本 à" cannot patch resource "workers"/)
  })

  test('a group that the console may not impersonate is rejected by kube-apiserver and by the stores', async () => {
    const access: AccessOptions = {
      cluster: { server: peer.url, token: await tokenOf(systemNamespace, 'oarlock-console-server'), insecureSkipTlsVerify: true },
      impersonate: { user: 'oidc:ann', groups: ['system:masters'] },
    }
    const entry = await client.request({ method: 'GET', path: `/api/v1/namespaces/${systemNamespace}/configmaps/oarlock-endpoint-stores` })
    const { data } = (await entry.json()) as { data: Record<string, string> }
    const endpoint = { server: data.url as string, caCertificate: data['ca.crt'] }
    for (const [options, path] of [
      [access, '/api/v1/secrets'],
      [{ ...access, endpoint }, '/logs/b/one-1'],
    ] as const) {
      const impostor = await createClient(options)
      const error = await impostor.request({ method: 'GET', path }).then(
        () => undefined,
        (reason: Error & { code?: number }) => reason,
      )
      equal(error?.code, 403, path)
      match(error?.message ?? '', /cannot impersonate resource "groups"|impersonate/)
      await impostor.close()
    }
  })

  test('a bearer token is used for every request of its user', async () => {
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByLabel('Bearer token').fill(await tokenOf('b', 'default'))
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    await page.locator('.user').waitFor()
    deepEqual(await stacksShown(), ['/console/stacks/b/one'])
    equal((await request('GET', 'logs/a/one-1')).status, 403)
    equal((await request('GET', 'logs/b/one-1')).status, 404)
    equal((await request('POST', 'actions', suspend)).status, 403)
  })

  test('the controllers of oarlock controller, another process, are listed with their latency', async t => {
    const listen = { host: '127.0.0.1', port: 0 }
    const dataDir = join(directory, 'controller')
    const controller = await startControllerProcess({
      ...{ client, access: {}, cacheDir: join(dataDir, 'cache'), allowPaths: [], healthAddress: listen, crds: 'install', version: 'test' },
      queue: { dataDir, listen, names: [] },
      log: silentLog,
    })
    t.after(() => controller.stop({ graceMs: 5_000 }))
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByLabel('Bearer token').fill(peer.tokens.admin as string)
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    await page.locator('.user').waitFor()
    await page.goto(`${url}controllers`)
    const row = page.getByRole('row').filter({ has: page.getByRole('cell', { name: 'stack', exact: true }) })
    await row.filter({ hasText: controller.identity }).filter({ hasText: /\dm?s/ }).waitFor()
  })

  test('another name than its own is rejected, and / leads to the page', async () => {
    const { port } = new URL(url)
    equal((await page.goto(`https://127.0.0.1:${port}/`))?.url(), `https://127.0.0.1:${port}/console/`)
    const { request: http } = page.context()
    for (const [header, status] of [
      ['evil.example', 421],
      [host, 200],
    ] as const)
      equal((await http.get(`https://127.0.0.1:${port}/console/`, { headers: { host: header }, ignoreHTTPSErrors: true })).status(), status)
  })
})
