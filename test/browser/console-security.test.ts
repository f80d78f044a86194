/** The console of a real all-in-one, attacked and signed in to from Chromium: other sites, injected scripts, an OpenID Connect provider, a user with few rights. */
import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, mock, type TestContext, test } from 'node:test'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { stackResource, workerPoolResource } from '../../src/api/index.ts'
import { type AllInOne, startAllInOne } from '../../src/app/index.ts'
import { type Client, namespaceResource } from '../../src/kubernetes/client/index.ts'
import { isConditionTrue } from '../../src/kubernetes/object/index.ts'
import { checkLooks } from '../support/axe.ts'
import { launchChromium, withoutChromium } from '../support/chromium.ts'
import { stackRowOf, startConsolePage } from '../support/console-page.ts'
import { eventually } from '../support/eventually.ts'
import { makeCertificate } from '../support/make-certificate.ts'
import { clientId, clientSecret, type OidcIssuer, signInAtIssuer, startOidcIssuer } from '../support/oidc-issuer.ts'
import { startProxy } from '../support/proxy.ts'
import { skipWithoutTerraformEngine } from '../support/run-program.ts'

const injected = '<img src=x onerror="window.pwned=1"><script>window.pwned=2</script><svg onload="window.pwned=3">'

describe('the console in a browser, attacked', { skip: withoutChromium, timeout: 300_000 }, () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-console-security-'))
  let app: AllInOne
  let client: Client
  let issuer: OidcIssuer
  let evil: Server
  let evilUrl: string
  /** What the other site's page is. */
  let evilPage = ''
  let browser: Browser
  let page: Page
  let consoleUrl: string

  before(async () => {
    const { key, cert } = makeCertificate(dataDir)
    issuer = await startOidcIssuer({ key, cert })
    const port = { host: '127.0.0.1', port: 0 }
    app = await startAllInOne({
      ...{ dataDir, listen: port, healthAddress: port, version: 'test' },
      launcher: [process.execPath, join(import.meta.dirname, '..', '..', 'bin', 'oarlock.js')],
      console: {
        oidc: {
          ...{ issuerUrl: issuer.url, clientId, clientSecret, caCertificate: cert, name: 'the test provider', usernameClaim: 'email' },
          ...{ groupsClaim: 'groups', groupsPrefix: '' },
        },
      },
    })
    client = app.client
    consoleUrl = `${app.httpUrl}/console/`
    issuer.register(`${consoleUrl}api/oidc/callback`)
    await client.resource(workerPoolResource).create({ metadata: { name: 'joined' }, spec: { mode: 'External' } })
    for (const namespace of ['a', 'b']) {
      await client.resource(namespaceResource).create({ metadata: { name: namespace } })
      await client.resource(stackResource).create({
        metadata: { namespace, name: 'one' },
        spec: { engine: 'command', command: { apply: ['true'] }, source: { inline: { files: { a: '1' } } }, pool: 'joined' },
      })
    }
    await allow('view-a', 'a', 'oarlock:view', { kind: 'Group', name: 'dev' })
    evil = createServer((_request, response) => response.writeHead(200, { 'Content-Type': 'text/html' }).end(evilPage))
    await new Promise<void>(resolve => evil.listen(0, '127.0.0.1', resolve))
    evilUrl = `http://evil.example:${(evil.address() as AddressInfo).port}/`
    browser = await launchChromium(['--host-resolver-rules=MAP evil.example 127.0.0.1', '--ignore-certificate-errors'])
    page = await (await browser.newContext()).newPage()
    await page.goto(app.consoleLink())
    await page.getByText('Needs attention').waitFor()
  })
  after(async () => {
    await browser?.close()
    evil?.close()
    issuer?.close()
    await app?.stop({ graceMs: 1_000 })
    rmSync(dataDir, { recursive: true, force: true })
  })

  async function allow(name: string, namespace: string, role: string, subject: { kind: string; name: string; namespace?: string }) {
    await client.request({
      method: 'POST',
      path: `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}/rolebindings`,
      body: {
        ...{ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'RoleBinding', metadata: { name, namespace } },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
        subjects: [subject.kind === 'ServiceAccount' ? subject : { ...subject, apiGroup: 'rbac.authorization.k8s.io' }],
      },
    })
  }
  const isSuspended = async () => (await client.resource(stackResource).get('one', { namespace: 'a' })).spec.suspend === true
  const newContext = async (): Promise<BrowserContext> => await browser.newContext()
  const keysOf = async (on: Page) => {
    await on.goto(`${consoleUrl}stacks`)
    await on.locator('tbody tr:not(.placeholder)').first().waitFor()
    return await on
      .locator('tbody tr:not(.placeholder) a')
      .evaluateAll(links => links.map(link => new URL((link as HTMLAnchorElement).href).pathname))
  }

  test('a page of another site cannot act, read, frame or keep a handle of the console of a user who is signed in', async () => {
    const attacker = await page.context().newPage()
    evilPage = '<!doctype html><title>evil</title>'
    await attacker.goto(evilUrl)
    const body = JSON.stringify({ action: 'suspend', namespace: 'a', name: 'one' })
    const outcomes = await attacker.evaluate(
      async ({ api, body }) => {
        const attempt = async (init: RequestInit, path = 'actions') =>
          await fetch(`${api}${path}`, { credentials: 'include', ...init }).then(
            response => `${response.type} ${response.status}`,
            () => 'failed',
          )
        return [
          await attempt({ method: 'POST', body, mode: 'no-cors' }),
          await attempt({ method: 'POST', body, mode: 'no-cors', headers: { 'content-type': 'text/plain' } }),
          await attempt({ method: 'POST', body, headers: { 'content-type': 'application/json', 'x-oarlock-csrf': 'guess' } }),
          await attempt({}, 'session'),
        ]
      },
      { api: `${consoleUrl}api/`, body },
    )
    deepEqual(outcomes, ['opaque 0', 'opaque 0', 'failed', 'failed'])
    equal(await isSuspended(), false)
    // A form leads the browser there, with whatever cookies it sends.
    evilPage = `<form method=post enctype=text/plain action="${consoleUrl}api/actions"><input name='${body.slice(0, -1)},"x":"' value='"}'></form>`
    await attacker.goto(evilUrl)
    const [answer] = await Promise.all([
      attacker.waitForResponse(/api\/actions$/),
      attacker.evaluate(() => document.querySelector('form')?.submit()),
    ])
    equal(answer.status(), 403)
    await attacker.waitForURL(/api\/actions$/)
    equal(await isSuspended(), false)
    evilPage = `<iframe src="${consoleUrl}"></iframe>`
    await attacker.goto(evilUrl)
    await eventually(async () => attacker.frames()[1]?.url().startsWith('chrome-error:'), 'the frame to be blocked')
    const handle = await attacker.evaluateHandle(url => ({ opened: window.open(url) }), consoleUrl)
    const isSevered = () => handle.evaluate(({ opened }) => opened === null || opened.closed)
    await eventually(isSevered, 'Cross-Origin-Opener-Policy to take the handle')
    for (const other of page.context().pages()) if (other !== page) await other.close()
  })

  test('a name that another site resolves to the address of the console reaches nothing', async () => {
    const { port } = new URL(consoleUrl)
    const attacker = await (await newContext()).newPage()
    for (const path of ['console/', 'console/api/session', 'console/api/stream']) {
      const response = await attacker.goto(`http://evil.example:${port}/${path}`)
      equal(response?.status(), 421, path)
      equal(response?.headers()['set-cookie'], undefined)
    }
    await attacker.context().close()
  })

  test('the policy of the page blocks scripts, styles, connections and forms that an injection would add', async () => {
    await page.goto(consoleUrl)
    const violations = await page.evaluateHandle(async url => {
      const violations: string[] = []
      document.addEventListener('securitypolicyviolation', event => violations.push(event.effectiveDirective))
      const add = (name: string, set: (element: HTMLElement) => void) => {
        const element = document.createElement(name)
        set(element)
        document.body.append(element)
      }
      add('script', element => (element.textContent = 'window.pwned = 1'))
      add('script', element => element.setAttribute('src', `${url}x.js`))
      add('img', element => element.setAttribute('src', `${url}x.png`))
      add('div', element => element.setAttribute('onclick', 'window.pwned = 2'))
      add('style', element => (element.textContent = 'body { color: red }'))
      add('iframe', element => element.setAttribute('src', url))
      add('base', element => element.setAttribute('href', url))
      await fetch(url).catch(() => {})
      const form = Object.assign(document.createElement('form'), { action: url, method: 'post' })
      document.body.append(form)
      form.submit()
      return violations
    }, evilUrl)
    const expected = [
      ...['base-uri', 'connect-src', 'form-action', 'frame-src', 'img-src', 'script-src-attr', 'script-src-elem', 'style-src-elem'],
    ]
    // Each is reported when its turn has come.
    const reported = await eventually(
      () => violations.evaluate(all => [...new Set(all)].sort()),
      all => all.length >= expected.length,
    )
    deepEqual(reported, expected)
    equal(await page.evaluate(() => (window as { pwned?: number }).pwned), undefined)
    equal(new URL(page.url()).origin, app.httpUrl)
  })

  test('the page that asks to sign in has no violation of accessibility rules and fits a phone, in both colours', async () => {
    const context = await newContext()
    const visitor = await context.newPage()
    await checkLooks(visitor, ['sign-in'], async () => {
      await visitor.goto(consoleUrl)
      await visitor.getByLabel('Bearer token').waitFor()
    })
    await context.close()
  })

  test('a provider of another site signs a user in, who sees and does what its groups may', async () => {
    const context = await newContext()
    const ann = await context.newPage()
    await ann.goto(consoleUrl)
    await ann.getByRole('link', { name: 'Sign in with the test provider' }).click()
    await ann.waitForURL(url => url.origin === issuer.url)
    await signInAtIssuer(ann, 'ann')
    await ann.locator('.user').waitFor()
    equal(ann.url(), consoleUrl, 'no token is in the address')
    equal(await ann.locator('.user').textContent(), 'ann@example.com')
    equal(await ann.locator('.user').getAttribute('title'), 'ann@example.com\ndev', 'no group of Kubernetes itself')
    const cookies = (await context.cookies(app.httpUrl)).filter(({ name }) => name.startsWith('oarlock'))
    deepEqual(
      cookies.map(({ name, httpOnly, sameSite }) => [name.replace(/\d+/, 'PORT'), httpOnly, sameSite]),
      [['oarlock-console-PORT', true, 'Strict']],
    )
    deepEqual(await keysOf(ann), ['/console/stacks/a/one'])
    await ann.getByRole('button', { name: 'Sign out' }).click()
    await ann.getByRole('link', { name: 'Sign in with the test provider' }).waitFor()
    await context.close()
  })

  test('a sign-out offers to end the session at the provider, which then asks again', async () => {
    const context = await newContext()
    const user = await context.newPage()
    const signIn = async () => {
      await user.goto(consoleUrl)
      await user.getByRole('link', { name: 'Sign in with the test provider' }).click()
    }
    await signIn()
    await signInAtIssuer(user, 'carl')
    await user.getByRole('button', { name: 'Sign out' }).click()
    await user.getByText('are still signed in to the test provider').waitFor()
    // Of the console alone: the provider does not ask.
    await signIn()
    await user.locator('.user').waitFor()
    await user.getByRole('button', { name: 'Sign out' }).click()
    await user.getByRole('link', { name: 'Sign out of the test provider' }).click()
    await user.getByRole('button', { name: 'Yes, sign me out' }).click()
    await user.waitForURL(consoleUrl)
    await signIn()
    await user.locator('input[name=login]').waitFor()
    await context.close()
  })

  test('what reverses text is seen in the YAML, in what it would change, in values, conditions and Events', async () => {
    const metadata = { namespace: 'a', name: 'reversed' }
    const stacks = client.resource(stackResource)
    const { image, seen } = { image: 'a\u202egnp.exe', seen: 'a\\u202egnp.exe' }
    await stacks.create({
      metadata,
      spec: {
        ...{ engine: 'command', command: { apply: ['true'] }, source: { inline: { files: { a: '1' } } }, pool: 'joined' },
        ...{ suspend: true, variables: { image } },
      },
    })
    const condition = {
      type: 'Reviewed',
      status: 'True' as const,
      reason: 'Read',
      message: image,
      lastTransitionTime: new Date().toISOString(),
    }
    const conditions = await eventually(async () => (await stacks.get('reversed', { namespace: 'a' })).status?.conditions, 'its conditions')
    const status = { conditions: [...conditions, condition] }
    const stack = await stacks.patch('reversed', { status }, { type: 'merge', subresource: 'status', namespace: 'a' })
    const { uid, resourceVersion } = stack.metadata
    const { apiVersion, kind } = stackResource
    await client.request({
      method: 'POST',
      path: '/api/v1/namespaces/a/events',
      body: {
        ...{ apiVersion: 'v1', kind: 'Event', metadata: { name: 'reversed.1', namespace: 'a' }, type: 'Normal', reason: 'Read', count: 1 },
        ...{ involvedObject: { ...metadata, apiVersion, kind, uid, resourceVersion }, message: image },
        ...{ firstTimestamp: new Date().toISOString(), lastTimestamp: new Date().toISOString() },
      },
    })
    const tab = await page.context().newPage()
    const open = async (section: string, heading: string) => {
      await tab.goto(`${consoleUrl}stacks/a/reversed/${section}`)
      return tab.locator('section.panel', { has: tab.getByRole('heading', { name: heading, exact: true }) })
    }
    const overview = await open('', 'Conditions')
    await overview.getByText(seen).waitFor()
    await (await open('variables', 'Variables')).getByText(seen).waitFor()
    await (await open('events', 'Events')).getByText(seen).waitFor()
    const editor = (await open('yaml', 'YAML')).locator('textarea')
    await editor.waitFor()
    const yaml = await editor.inputValue()
    match(yaml, /image: "a\\u202egnp\.exe"/)
    await editor.fill(yaml.replace('image: ', 'copy: "\u202ex"\n    image: '))
    await tab.getByRole('button', { name: 'Validate' }).click()
    await tab.getByLabel('Changes').locator('.good', { hasText: 'copy: "\\u202ex"' }).waitFor()
    await tab.close()
    await stacks.delete('reversed', { namespace: 'a' })
  })

  test('an answer of the provider that this browser has not asked for signs no one in', async () => {
    const context = await newContext()
    const attacked = await context.newPage()
    await attacked.goto(`${consoleUrl}api/oidc/callback?code=stolen&state=forged`)
    await attacked.getByText(/the sign-in was not begun in this browser/).waitFor()
    ok(!attacked.url().includes('stolen'))
    // With a state that it has asked for, and a code that the provider did not issue.
    await attacked.goto(consoleUrl)
    await attacked.getByRole('link', { name: 'Sign in with the test provider' }).click()
    await attacked.waitForURL(url => url.origin === issuer.url)
    const [pending] = (await context.cookies(app.httpUrl)).filter(({ name }) => name.startsWith('oarlock-console-oidc'))
    deepEqual([pending?.httpOnly, pending?.sameSite], [true, 'Lax'])
    const [state] = (pending?.value ?? '').split('.')
    const iss = encodeURIComponent(issuer.url)
    await attacked.goto(`${consoleUrl}api/oidc/callback?code=stolen&state=${state}&iss=${iss}`)
    await attacked.getByText(/the answer of the provider was rejected/).waitFor()
    deepEqual(
      (await context.cookies(app.httpUrl)).filter(({ name }) => name.startsWith('oarlock')),
      [],
    )
    await context.close()
  })

  test('the answer of the provider to one browser signs no other one in', async () => {
    // Its page does not exchange the link, which is sent to a victim instead.
    const attacker = await browser.newContext({ javaScriptEnabled: false })
    const mallory = await attacker.newPage()
    await mallory.goto(`${consoleUrl}api/oidc/sign-in`)
    await signInAtIssuer(mallory, 'mallory')
    await mallory.waitForURL(/#token=/)
    const victim = await newContext()
    const opened = await victim.newPage()
    await opened.goto(mallory.url())
    await opened.getByText('the sign-in was begun in another browser').waitFor()
    deepEqual(
      (await victim.cookies(app.httpUrl)).filter(({ name }) => name.startsWith('oarlock')),
      [],
    )
    for (const context of [attacker, victim]) await context.close()
  })

  test('a user with few rights sees one namespace, and why each action is disabled', async () => {
    await allow('view-token', 'a', 'oarlock:view', { kind: 'ServiceAccount', name: 'default', namespace: 'a' })
    const path = '/api/v1/namespaces/a/serviceaccounts/default/token'
    const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} }
    const { status } = (await (await client.request({ method: 'POST', path, body })).json()) as { status: { token: string } }
    const context = await newContext()
    const viewer = await context.newPage()
    await viewer.goto(consoleUrl)
    await viewer.getByLabel('Bearer token').fill(status.token)
    await viewer.getByRole('button', { name: 'Sign in', exact: true }).click()
    await viewer.getByRole('heading', { name: 'Needs attention in the namespaces that you may see', exact: true }).waitFor()
    const counts = viewer.getByRole('region', { name: 'Counts' })
    await counts.getByRole('link', { name: /Stacks\s*1.*in the namespaces that you may see/ }).waitFor()
    await counts.getByRole('link', { name: /Workers.*you may not list Workers/ }).waitFor()
    deepEqual(await keysOf(viewer), ['/console/stacks/a/one'])
    await viewer.goto(`${consoleUrl}stacks/b/one`)
    await viewer
      .getByText(/not found|cannot get|forbidden/i)
      .first()
      .waitFor()
    await viewer.goto(`${consoleUrl}stacks/a/one`)
    const suspend = viewer.getByRole('button', { name: 'Suspend', exact: true })
    await suspend.waitFor()
    equal(await suspend.getAttribute('aria-disabled'), 'true')
    const why = await viewer.locator(`#${await suspend.getAttribute('aria-describedby')}`).textContent()
    match(why ?? '', /patch|right|permission/)
    await viewer.goto(`${consoleUrl}stacks/a/one/yaml`)
    await viewer.getByText('No changes: you need the permission to update stacks.').waitFor()
    ok(!(await viewer.getByRole('textbox', { name: /^YAML of/ }).isEditable()))
    ok(await viewer.getByRole('button', { name: 'Validate' }).isDisabled())
    await context.close()
  })

  test('a user whose name is not ASCII acts with their own rights', async () => {
    for (const role of ['view', 'edit'])
      await allow(`${role}-other`, 'b', `oarlock:${role}`, { kind: 'User', name: 'josé-日本@example.com' })
    const context = await newContext()
    const other = await context.newPage()
    await other.goto(`${consoleUrl}api/oidc/sign-in`)
    await signInAtIssuer(other, 'josé-日本')
    await other.locator('.user').waitFor()
    await other.goto(`${consoleUrl}stacks/b/one`)
    await other.getByRole('button', { name: 'Suspend', exact: true }).click()
    const dialog = other.getByRole('dialog')
    await dialog.getByRole('button', { name: 'Suspend', exact: true }).click()
    await other.getByRole('button', { name: 'Resume', exact: true }).waitFor()
    equal((await client.resource(stackResource).get('one', { namespace: 'b' })).spec.suspend, true)
    await context.close()
  })

  test('what destroys asks for a sign-in of the last minutes, and continues after one in another tab', async () => {
    const stacks = client.resource(stackResource)
    await stacks.create({
      // So that the dialog stays with its result, however fast the destruction is.
      metadata: { namespace: 'a', name: 'doomed', finalizers: ['example.com/kept'] },
      spec: { engine: 'command', command: { apply: ['true'], destroy: ['true'] }, source: { inline: { files: { a: '1' } } } },
    })
    const isReady = async () => isConditionTrue((await stacks.get('doomed', { namespace: 'a' })).status?.conditions, 'Ready')
    await eventually(isReady, 'the Stack to be ready', 60_000)
    for (const role of ['edit', 'destroyer']) await allow(role, 'a', `oarlock:${role}`, { kind: 'User', name: 'bob@example.com' })
    const context = await newContext()
    const bob = await context.newPage()
    await bob.goto(consoleUrl)
    await bob.getByRole('link', { name: 'Sign in with the test provider' }).click()
    await signInAtIssuer(bob, 'bob')
    await bob.locator('.user').waitFor()
    await bob.goto(`${consoleUrl}stacks/a/doomed`)
    await bob.getByRole('button', { name: 'Destroy', exact: true }).click()
    const dialog = bob.getByRole('dialog')
    await dialog.getByRole('button', { name: 'Plan the destruction' }).click()
    await dialog.getByRole('textbox').fill('doomed')
    const destroy = dialog.getByRole('button', { name: 'Destroy', exact: true })
    mock.timers.enable({ apis: ['Date'], now: Date.now() + 6 * 60_000 })
    try {
      await destroy.click()
      await dialog.getByText(/sign in again: "destroy" needs a sign-in of the last 5 minutes/).waitFor()
    } finally {
      mock.timers.reset()
    }
    equal((await stacks.get('doomed', { namespace: 'a' })).metadata.deletionTimestamp, undefined)
    const [tab] = await Promise.all([context.waitForEvent('page'), dialog.getByRole('button', { name: 'Sign in again' }).click()])
    // The provider asks again, although the user is signed in there.
    await signInAtIssuer(tab, 'bob')
    await tab.locator('.user').waitFor()
    // Not without a click: the tab may have been opened for something else.
    await dialog.getByText('You have signed in again: confirm once more.').waitFor()
    equal((await stacks.get('doomed', { namespace: 'a' })).metadata.deletionTimestamp, undefined)
    await destroy.click()
    await dialog.getByText('destruction of exactly this plan requested').waitFor()
    await context.close()
  })

  const skip = skipWithoutTerraformEngine
  test('the dialog of a destruction states what it does until it is done, also with nothing to destroy', { skip }, async () => {
    const stacks = client.resource(stackResource)
    await stacks.create({
      metadata: { namespace: 'a', name: 'empty', finalizers: ['example.com/kept'] },
      spec: { engine: 'terraform', source: { inline: { files: { 'main.tf': '# no resources\n' } } } },
    })
    const isReady = async () => isConditionTrue((await stacks.get('empty', { namespace: 'a' })).status?.conditions, 'Ready')
    await eventually(isReady, 'the Stack to be ready', 60_000)
    await page.goto(`${consoleUrl}stacks/a/empty`)
    await page.getByRole('button', { name: 'Destroy', exact: true }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('button', { name: 'Plan the destruction' }).click()
    await dialog.getByText('has found nothing to destroy').waitFor()
    const effect = dialog.getByText('Deletes the Stack; the real infrastructure stays as it is.')
    await effect.waitFor()
    equal(await dialog.getByText('Destroys the real resources').count(), 0)
    await dialog.getByRole('textbox').fill('empty')
    await dialog.getByRole('button', { name: 'Destroy', exact: true }).click()
    await dialog.getByText('destruction of exactly this plan requested').waitFor()
    await effect.waitFor({ state: 'detached' })
    await stacks.patch('empty', { metadata: { finalizers: null } } as object, { type: 'merge', namespace: 'a' })
  })

  test('a link of the administrator works once', async () => {
    const link = app.consoleLink()
    const [first, second] = [await newContext(), await newContext()]
    const one = await first.newPage()
    await one.goto(link)
    await one.getByText('Needs attention').waitFor()
    const two = await second.newPage()
    await two.goto(link)
    await two.getByText(/the link was used already/).waitFor()
    ok(!two.url().includes('token'))
    await eventually(async () => !(await two.evaluate(() => history.length > 2 && location.hash !== '')), 'the history')
    for (const each of [first, second]) await each.close()
  })
})

describe('the page of a console with its own settings', { skip: withoutChromium, timeout: 120_000 }, () => {
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-console-settings-'))
  let browser: Browser
  before(async () => {
    browser = await launchChromium()
  })
  after(async () => {
    await browser?.close()
    rmSync(directory, { recursive: true, force: true })
  })

  async function start(t: TestContext, options: Partial<Parameters<typeof startConsolePage>[1]>) {
    const console_ = await startConsolePage(directory, { stacks: 3, ...options })
    t.after(() => console_.close())
    const page = await (await browser.newContext()).newPage()
    t.after(() => page.context().close())
    await page.goto(console_.link())
    await page.getByText('Needs attention').waitFor()
    return { console_, page }
  }

  test('text of objects is text: no element and no script of it gets into the page', async t => {
    const { console_, page } = await start(t, {})
    const row = { ...stackRowOf(6, Date.now()), message: injected, reason: injected, labels: { note: injected } }
    console_.projections.tables.stacks.set({ ...row, state: 'Failed' })
    for (const path of ['', 'stacks']) {
      await page.goto(`${console_.url}${path}`)
      await page.getByText(injected).first().waitFor()
      equal(await page.evaluate(() => (window as { pwned?: number }).pwned), undefined, path)
      equal(await page.locator('main img, main script, main svg[onload]').count(), 0, path)
    }
    // Text that reverses its direction, and ends without the character that ends that, leaves what follows it in its place.
    const [reversed, after] = await page.evaluate(() => {
      const line = document.querySelector('main')?.appendChild(document.createElement('p'))
      const [first, second] = ['\u202eabc', 'after'].map(text => {
        const span = document.createElement('span')
        span.textContent = text
        line?.append(span, ' ')
        return span
      })
      return [first?.getBoundingClientRect().left ?? 0, second?.getBoundingClientRect().left ?? 0]
    })
    ok((after ?? 0) > (reversed ?? 0), `${after} is right of ${reversed}`)
  })

  test('a read-only console shows that it is one, offers no action, and rejects those of a page that sends them anyway', async t => {
    const { console_, page } = await start(t, { readOnly: true })
    await page.getByText('read-only', { exact: true }).waitFor()
    await page.goto(`${console_.url}stacks`)
    await page
      .getByRole('checkbox', { name: /^Select team/ })
      .first()
      .check()
    const run = page.getByRole('region', { name: 'Selection' }).getByRole('button', { name: /^Run/ })
    deepEqual([await run.getAttribute('aria-disabled'), await run.getAttribute('title')], ['true', 'the console is read-only'])
    const bodies = { actions: { action: 'run', namespace: 'a', name: 'one' }, bulk: { action: 'run', filter: '', expected: 3 } }
    for (const [path, body] of Object.entries(bodies)) {
      const answer = await post(page, path, body)
      deepEqual(answer, { status: 403, message: 'the console is read-only' })
    }
  })

  test('an idle session ends, and the page states the reason', async t => {
    // Long enough for the page to appear first.
    const { page } = await start(t, { limits: { idleTimeoutMs: 10_000 } })
    await page.getByText('the session was idle for too long').waitFor()
    await page.getByText('oarlock console', { exact: true }).waitFor()
    equal(await page.locator('table').count(), 0)
  })

  test('a late answer to a sign-out does not end the sign-in that followed it', async t => {
    const { page } = await start(t, {})
    const released = Promise.withResolvers<void>()
    await page.route('**/console/api/session', async route => {
      if (route.request().method() !== 'DELETE') return await route.fallback()
      await route.fetch()
      await released.promise
      await route.fulfill({ json: {} })
    })
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByLabel('Bearer token').fill('test-token')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.locator('.user').waitFor()
    const answered = page.waitForResponse(response => response.request().method() === 'DELETE')
    released.resolve()
    await (await answered).finished()
    await page.getByRole('link', { name: 'Stacks', exact: true }).first().click()
    await page.waitForURL(/stacks/)
    equal(await page.locator('.user').count(), 1)
  })

  test('a page whose connection died silently shows the age of what it shows', async t => {
    const { console_, page } = await start(t, {})
    const proxy = await startProxy(Number(new URL(console_.url).port))
    t.after(() => proxy.close())
    const { hash } = new URL(console_.link())
    await page.goto(`http://127.0.0.1:${proxy.port}/console/${hash}`)
    await page.getByText('Live', { exact: true }).waitFor()
    proxy.hold()
    await page.getByText(/updated 1\ds ago/).waitFor()
    proxy.cut()
    proxy.restore()
    await page.getByText('Live', { exact: true }).waitFor()
  })
})

/** As the page sends it. */
const post = async (on: Page, path: string, body: object) =>
  await on.evaluate(
    async ({ path, body }) => {
      const response = await fetch(`/console/api/${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-oarlock-csrf': localStorage.getItem('oarlock-csrf') ?? '' },
        body: JSON.stringify(body),
      })
      return { status: response.status, message: ((await response.json()) as { message: string }).message }
    },
    { path, body },
  )
