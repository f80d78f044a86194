/** The console of a real all-in-one, as a page uses it: sign-in, the stream, what users see and do with their own rights. */
import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { fetch, type Response } from 'undici'
import { type Run, runResource, stackResource, workerPoolResource } from '../src/api/index.ts'
import { type AllInOne, startAllInOne } from '../src/app/index.ts'
import type {
  Action,
  BulkResult,
  Destruction,
  OverviewFacts,
  PoolFacts,
  PoolHistoryFacts,
  Session,
  StackRow,
  StreamMessage,
  TableFacts,
  ViewDelta,
  ViewQuery,
} from '../src/console/protocol/index.ts'
import { type Client, createClient, namespaceResource } from '../src/kubernetes/client/index.ts'
import { isConditionTrue } from '../src/kubernetes/object/index.ts'
import { eventually } from './support/eventually.ts'

const isOf = (stack: string, { spec }: Pick<Run, 'spec'>) => spec.stackRef.name === stack

type Browser = {
  readonly session: Session
  get(path: string, headers?: Record<string, string>): Promise<Response>
  send(method: string, path: string, body: unknown, headers?: Record<string, string>): Promise<Response>
}

describe('the console', { timeout: 120_000 }, () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-console-'))
  const abort = new AbortController()
  let app: AllInOne
  let client: Client
  let api: string
  let admin: Browser

  before(async () => {
    const port = { host: '127.0.0.1', port: 0 }
    const launcher = [process.execPath, join(import.meta.dirname, '..', 'bin', 'oarlock.js')]
    app = await startAllInOne({ dataDir, listen: port, healthAddress: port, launcher, version: 'test' })
    client = app.client
    api = `${app.httpUrl}/console/api/`
    // Its workers are not started, so that Runs stay queued.
    await client.resource(workerPoolResource).create({ metadata: { name: 'joined' }, spec: { mode: 'External' } })
    for (const name of ['a', 'b']) {
      await client.resource(namespaceResource).create({ metadata: { name } })
      for (const stack of ['one', 'two']) await makeStack(name, stack)
    }
    admin = await signIn({ link: linkOf(app) })
  })
  after(async () => {
    abort.abort()
    await app?.stop({ graceMs: 1_000 })
    rmSync(dataDir, { recursive: true, force: true })
  })

  const makeStack = (namespace: string, name: string) =>
    client.resource(stackResource).create({
      metadata: { namespace, name, labels: { team: 'web' } },
      spec: { engine: 'command', command: { apply: ['true'] }, source: { inline: { files: { a: '1' } } }, pool: 'joined' },
    })
  const linkOf = ({ consoleLink }: AllInOne) => new URL(consoleLink()).hash.replace('#token=', '')
  const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
    fetch(`${api}${path}`, { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(body) })

  async function signIn(credential: object): Promise<Browser> {
    const response = await post('session', credential)
    equal(response.status, 200)
    const setCookie = response.headers.get('set-cookie') ?? ''
    match(setCookie, /^oarlock-console-\d+=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=43200$/)
    const cookie = setCookie.split(';', 1)[0] as string
    const session = (await response.json()) as Session
    return {
      session,
      get: (path, headers = { 'x-oarlock-csrf': session.csrfToken }) =>
        fetch(`${api}${path}`, { headers: { cookie, ...headers }, signal: abort.signal }),
      send: (method, path, body, headers = { 'x-oarlock-csrf': session.csrfToken }) =>
        fetch(`${api}${path}`, { method, headers: { cookie, 'content-type': 'application/json', ...headers }, body: JSON.stringify(body) }),
    }
  }

  /** A user with the rights of a Role in one namespace. */
  async function accountOf(namespace: string, rules: object[]): Promise<string> {
    const rbac = { apiVersion: 'rbac.authorization.k8s.io/v1', metadata: { name: 'console', namespace } }
    const base = `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}`
    await client.request({ method: 'POST', path: `${base}/roles`, body: { ...rbac, kind: 'Role', rules } })
    const subjects = [{ kind: 'ServiceAccount', name: 'default', namespace }]
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'console' }
    await client.request({ method: 'POST', path: `${base}/rolebindings`, body: { ...rbac, kind: 'RoleBinding', roleRef, subjects } })
    const path = `/api/v1/namespaces/${namespace}/serviceaccounts/default/token`
    const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} }
    const request = async () => (await (await client.request({ method: 'POST', path, body })).json()) as { status: { token: string } }
    return (await eventually(async () => await request().catch(() => undefined), 'the ServiceAccount')).status.token
  }

  /** The stream of a browser: {@link Stream.view} is what a page has of a view. */
  async function openStream(browser: Browser, views: Record<string, ViewQuery>, query = '') {
    const response = await browser.get(`stream${query}`)
    equal(response.status, 200)
    const messages: StreamMessage[] = []
    const ids: number[] = []
    const reader = (response.body as ReadableStream<Uint8Array>).getReader()
    const decoder = new TextDecoder()
    void (async () => {
      let text = ''
      for (;;) {
        const { done, value } = await reader.read().catch(() => ({ done: true, value: undefined }))
        if (done) return
        text += decoder.decode(value, { stream: true })
        const parts = text.split('\n\n')
        text = parts.pop() ?? ''
        for (const part of parts) {
          const [, id, data] = /^id: (\d+)\ndata: (.*)$/s.exec(part) ?? []
          if (data === undefined) continue
          ids.push(Number(id))
          messages.push(JSON.parse(data) as StreamMessage)
        }
      }
    })()
    const hello = await eventually(async () => messages[0], 'the first message')
    ok(hello.type === 'hello')
    if (Object.keys(views).length > 0) equal((await browser.send('PUT', `stream/${hello.stream}/views`, views)).status, 204)
    const deltas = (id: string) => messages.filter((message): message is ViewDelta => message.type === 'view' && message.id === id)
    /** The rows in their order, as a page keeps them. */
    const rows = (id: string): StackRow[] => {
      const known = new Map<string, unknown>()
      let order: readonly string[] = []
      for (const delta of deltas(id)) {
        if (delta.whole) known.clear()
        for (const row of delta.rows ?? []) known.set(row.key, row)
        order = delta.order ?? order
      }
      return order.map(key => known.get(key) as StackRow)
    }
    const facts = (id: string) => deltas(id).findLast(delta => delta.facts !== undefined)?.facts
    return { hello, messages, deltas, rows, facts, lastId: () => ids.at(-1), close: () => reader.cancel() }
  }

  test('a link signs in once, and nothing works without a session', async () => {
    equal((await fetch(`${api}session`)).status, 401)
    equal((await fetch(`${api}stream`)).status, 401)
    const link = linkOf(app)
    await signIn({ link })
    const again = await post('session', { link })
    equal(again.status, 401)
    match(((await again.json()) as { message: string }).message, /used already or is older than 10 minutes/)
    equal((await post('session', { token: 'no-such-token' })).status, 401)
    equal((await post('session', { password: 'x' })).status, 400)
    equal(admin.session.user, 'oarlock:admin')
  })

  test('only who can read the data directory gets a link', async () => {
    equal((await post('links', {})).status, 401)
    const token = readFileSync(join(dataDir, 'console-token'), 'utf8').trim()
    const response = await post('links', {}, { authorization: `Bearer ${token}` })
    equal(response.status, 201)
    await signIn((await response.json()) as { link: string })
  })

  test('requests of other sites and without the CSRF token are rejected', async () => {
    const foreign = { 'x-oarlock-csrf': admin.session.csrfToken, 'sec-fetch-site': 'cross-site' }
    equal((await admin.send('POST', 'active', {}, foreign)).status, 403)
    equal(
      (await admin.send('POST', 'active', {}, { ...foreign, 'sec-fetch-site': 'same-origin', origin: 'https://evil.example' })).status,
      403,
    )
    equal((await admin.send('POST', 'active', {}, {})).status, 403)
    equal((await admin.send('POST', 'active', {}, { 'x-oarlock-csrf': 'guess' })).status, 403)
    equal((await admin.send('POST', 'active', {})).status, 204)
    // The cookie, which other ports of the host get too, shows nothing either.
    for (const path of ['session', 'stream', 'actions/stacks/a/one']) equal((await admin.get(path, {})).status, 401)
    equal((await post('session', { link: linkOf(app) }, { origin: 'https://evil.example' })).status, 403)
    equal((await post('session', { link: linkOf(app) }, { 'content-type': 'text/plain' })).status, 415)
  })

  test('the page has a strict policy, and is the answer to every path but those of assets that do not exist', async () => {
    const page = await fetch(`${app.httpUrl}/console/stacks/a/one`)
    // Built by `npm test` in a checkout.
    equal(page.status, 200)
    match(page.headers.get('content-security-policy') ?? '', /^default-src 'none'; script-src 'self'; style-src 'self'/)
    match(await page.text(), /<script type="module" src="\/console\/assets\/[\w-]+\.js"/)
    equal((await fetch(`${app.httpUrl}/console/assets/none.js`)).status, 404)
  })

  test('a table is sent once, and then what changes of it', async () => {
    const stream = await openStream(admin, { t: { kind: 'stacks', filter: 'label:team=web', sort: '-key', limit: 3 } })
    // Some seconds after its Run was queued each Stack reports why it waits: until then all rows change.
    const isSettled = ({ state, reason, suspended }: StackRow) => state === 'Working' && reason === 'NoWorkerJoined' && !suspended
    await eventually(async () => (stream.rows('t').length === 3 && stream.rows('t').every(isSettled)) || undefined, 'the table')
    deepEqual(
      stream.rows('t').map(({ key }) => key),
      ['b/two', 'b/one', 'a/two'],
    )
    equal((stream.facts('t') as TableFacts).total, 4)
    const before = stream.deltas('t').length
    await client.resource(stackResource).patch('two', { spec: { suspend: true } }, { type: 'merge', namespace: 'b' })
    await eventually(async () => stream.rows('t')[0]?.suspended || undefined, 'the change')
    const changes = stream.deltas('t').slice(before)
    ok(changes.every(({ whole, rows = [] }) => !whole && rows.every(({ key }) => key === 'b/two')))
    await client.resource(stackResource).patch('two', { spec: { suspend: false } }, { type: 'merge', namespace: 'b' })
    // A message that is sent while the stream closes would be missing: the next one would not continue it.
    await eventually(async () => isSettled(stream.rows('t')[0] as StackRow) || undefined, 'the change back')
    await stream.close()
    const resumed = await openStream(admin, {}, `?resume=${stream.hello.type === 'hello' && stream.hello.stream}&last=${stream.lastId()}`)
    ok(resumed.hello.type === 'hello' && resumed.hello.resumed)
    await makeStack('b', 'zzz')
    await eventually(async () => resumed.deltas('t').some(({ order }) => order?.[0] === 'b/zzz') || undefined, 'what changed meanwhile')
    ok(resumed.deltas('t').every(({ whole }) => !whole))
    await client.resource(stackResource).delete('zzz', { namespace: 'b' })
    // Other tests count the Stacks of the namespace.
    const first = () => resumed.deltas('t').findLast(({ order }) => order !== undefined)?.order?.[0]
    await eventually(async () => first() === 'b/two' || undefined, 'the deletion')
    await resumed.close()
  })

  test('a pool and its history are views of their own', async () => {
    const stream = await openStream(admin, {
      pool: { kind: 'pool', name: 'joined' },
      history: { kind: 'history', minutes: 60, pool: 'joined' },
    })
    const { row } = (await eventually(async () => stream.facts('pool'), 'the pool')) as PoolFacts
    deepEqual([row?.name, row?.mode], ['joined', 'External'])
    const { scalings } = (await eventually(async () => stream.facts('history'), 'its history')) as PoolHistoryFacts
    // Its first size is a change if the console has seen the pool before the pool wanted workers. Those that follow depend on how many Runs wait when it reports.
    ok(scalings.every(({ pool, from, to }, index) => pool === 'joined' && from === (scalings[index - 1]?.to ?? 0) && to !== from))
    await stream.close()
  })

  test('an invalid filter or view is an error that names it', async () => {
    const stream = await openStream(admin, { t: { kind: 'stacks', filter: 'color:red' } })
    match(
      (await eventually(async () => stream.facts('t') as TableFacts | undefined, 'the table')).invalid ?? '',
      /unknown field "color" at 1/,
    )
    ok(stream.hello.type === 'hello')
    const { stream: id } = stream.hello
    equal((await admin.send('PUT', `stream/${id}/views`, { t: { kind: 'secrets' } })).status, 400)
    equal((await admin.send('PUT', `stream/${id}/views`, { t: { kind: 'pool' } })).status, 400)
    equal((await admin.send('PUT', `stream/${id}/views`, { t: { kind: 'stacks', limit: 1e9 } })).status, 400)
    const other = await signIn({ link: linkOf(app) })
    equal((await other.send('PUT', `stream/${id}/views`, {})).status, 404)
    await stream.close()
  })

  test('a user sees and does what the API server lets them', async () => {
    const token = await accountOf('a', [{ apiGroups: ['oarlock.dev'], resources: ['stacks', 'runs'], verbs: ['get', 'list'] }])
    const browser = await eventually(async () => await signIn({ token }).catch(() => undefined), 'the session of the ServiceAccount')
    equal(browser.session.user, 'system:serviceaccount:a:default')
    const stream = await openStream(browser, {
      stacks: { kind: 'stacks' },
      workers: { kind: 'workers' },
      pool: { kind: 'pool', name: 'joined' },
      poolHistory: { kind: 'history', minutes: 60, pool: 'joined' },
      overview: { kind: 'overview' },
      own: { kind: 'stack', namespace: 'a', name: 'one' },
      foreign: { kind: 'stack', namespace: 'b', name: 'one' },
    })
    await eventually(async () => stream.rows('stacks').length > 0 || undefined, 'the table')
    deepEqual(
      stream.rows('stacks').map(({ key }) => key),
      ['a/one', 'a/two'],
    )
    equal((stream.facts('stacks') as TableFacts).all, 2)
    for (const view of ['workers', 'pool', 'poolHistory'])
      equal((await eventually(async () => stream.deltas(view)[0], `view ${view}`)).error?.code, 'Forbidden')
    const overview = await eventually(async () => stream.facts('overview') as OverviewFacts | undefined, 'the overview')
    const { isWhole, stacks, workers } = overview
    deepEqual({ isWhole, stacks, workers }, { isWhole: { stacks: false, runs: false }, stacks: 2, workers: undefined })
    equal((await eventually(async () => stream.deltas('foreign')[0], 'the foreign Stack')).error?.code, 'Forbidden')
    equal((await eventually(async () => stream.deltas('own')[0], 'the own Stack')).error, undefined)
    const actions = (await (await browser.get('actions/stacks/a/one')).json()) as Action[]
    match(actions.find(({ name }) => name === 'run')?.why ?? '', /you need the permission to patch stacks/)
    equal((await browser.send('POST', 'actions', { action: 'suspend', namespace: 'a', name: 'one' })).status, 403)
    const bulk = await browser.send('POST', 'bulk', { action: 'suspend', filter: 'name:one', expected: 1 })
    const { results } = (await bulk.json()) as BulkResult
    deepEqual(
      results.map(({ key, ok }) => ({ key, ok })),
      [{ key: 'a/one', ok: false }],
    )
    await stream.close()
  })

  test('a request that makes no sense is rejected with what is wrong, and is no failure of the console', async () => {
    for (const [path, body] of [
      ['session', null],
      ['actions', null],
      ['actions', { action: 'run', name: 'one', namespace: {} }],
      ['actions', { action: 'run', name: '../../x', namespace: '..' }],
      ['actions', { action: 'drain', name: '..' }],
      ['bulk', { action: 'run', expected: 0, stacks: [null] }],
      ['bulk', { action: 'run', expected: 0, filter: 'bad:x' }],
      ['bulk', { action: 'run', expected: 0, filter: 5 }],
      ['stacks/a/one/yaml', []],
    ] as const)
      equal((await admin.send('POST', path, body)).status, 400, `${path} ${JSON.stringify(body)}`)
    for (const path of ['actions/stacks', 'actions/workers/', 'plans/a/..']) equal((await admin.get(path)).status, 400, path)
  })

  test('who signs in again with another token uses that one from then on', async () => {
    const core = '/api/v1/namespaces/b'
    const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'again', namespace: 'b' } }
    await client.request({ method: 'POST', path: `${core}/serviceaccounts`, body: account })
    const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'bound', namespace: 'b' } }
    await client.request({ method: 'POST', path: `${core}/secrets`, body: secret })
    const tokenOf = async (spec: object): Promise<string> => {
      const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec }
      const response = await client.request({ method: 'POST', path: `${core}/serviceaccounts/again/token`, body })
      return ((await response.json()) as { status: { token: string } }).status.token
    }
    const first = await tokenOf({ boundObjectRef: { apiVersion: 'v1', kind: 'Secret', name: 'bound' } })
    const browser = await eventually(async () => await signIn({ token: first }).catch(() => undefined), 'the session')
    equal((await browser.get('actions/stacks/b/one')).status, 403)
    await client.request({ method: 'DELETE', path: `${core}/secrets/bound` })
    await eventually(async () => (await browser.get('actions/stacks/b/one')).status === 401 || undefined, 'the end of the token')
    const again = await browser.send('POST', 'session', { token: await tokenOf({}) })
    equal(((await again.json()) as Session).csrfToken, browser.session.csrfToken)
    equal((await browser.get('actions/stacks/b/one')).status, 403)
  })

  test('actions are carried out, those on many only if as many match as the user has seen', async () => {
    const run = await admin.send('POST', 'actions', { action: 'plan', namespace: 'b', name: 'one' })
    equal(run.status, 200)
    const { message, request } = (await run.json()) as { message: string; request: string }
    match(message, /stack\/one: plan requested/)
    equal(
      (await client.resource(stackResource).get('one', { namespace: 'b' })).metadata.annotations?.['oarlock.dev/requested-run'],
      request,
    )
    equal((await admin.send('POST', 'bulk', { action: 'suspend', filter: 'namespace:b', expected: 7 })).status, 409)
    const bulk = await admin.send('POST', 'bulk', { action: 'suspend', filter: 'namespace:b', expected: 2 })
    deepEqual(
      ((await bulk.json()) as BulkResult).results.map(({ key, ok }) => [key, ok]),
      [
        ['b/one', true],
        ['b/two', true],
      ],
    )
    equal((await client.resource(stackResource).get('two', { namespace: 'b' })).spec.suspend, true)
    equal((await admin.send('POST', 'actions', { action: 'approve', namespace: 'b', name: 'one' })).status, 400)
    equal(
      (await admin.send('POST', 'actions', { action: 'destroy', namespace: 'b', name: 'one', digest: 'x', uid: 'u', generation: 1 }))
        .status,
      400,
    )
  })

  test('a destruction executes the plan that was confirmed, also of a Stack that would keep its resources or requires approval', async () => {
    const [stacks, runs] = [client.resource(stackResource), client.resource(runResource)]
    const [namespace, files] = ['a', { a: '1' }]
    for (const [name, settings] of [
      ['kept', { deletion: 'Orphan' }],
      ['approved', { approval: 'Manual' }],
    ] as const) {
      let approved: string | undefined
      const command = { apply: ['true'], destroy: ['sleep', '0.5'] }
      await stacks.create({
        metadata: { namespace, name },
        spec: { engine: 'command', command, source: { inline: { files } }, ...settings },
      })
      const act = async (body: object) => {
        const response = await admin.send('POST', 'actions', { namespace, name, ...body })
        const { message } = (await response.json()) as { message: string }
        equal(response.status, 200, message)
        return message
      }
      const ready = async () => {
        const stack = await stacks.get(name, { namespace })
        const { plan, conditions } = stack.status ?? {}
        const { uid, generation } = stack.metadata
        // Once: a second approval is rejected if the controller takes the first one into account in the meantime.
        if (plan && plan.digest !== approved && isConditionTrue(conditions, 'AwaitingApproval')) {
          await act({ action: 'approve', digest: plan.digest, uid, generation })
          approved = plan.digest
        }
        return isConditionTrue(conditions, 'Ready') ? stack : undefined
      }
      await eventually(ready, `Stack ${name}`, 60_000)
      await act({ action: 'plan-destroy' })
      const digest = await eventually(
        async () =>
          (await runs.list({ namespace })).items.find(run => run.spec.planMode === 'Destroy' && isOf(name, run))?.status?.plan?.digest,
        'the plan of the destruction',
        60_000,
      )
      // The status changes once more after the end of the Run: that is no reason to look again.
      const { uid, generation = 0 } = (await stacks.get(name, { namespace })).metadata
      const destroy = { action: 'destroy', namespace, name, digest, uid, generation, confirmation: name }
      for (const other of [{ uid: 'another' }, { generation: generation - 1 }]) {
        const outdated = await admin.send('POST', 'actions', { ...destroy, ...other })
        match(await outdated.text(), /"code":409.*has changed since it was shown/)
      }
      const message = await act(destroy)
      match(message, name === 'kept' ? /exactly this plan requested$/ : /exactly this plan requested and approved$/)
      const destroyed = async () =>
        (await runs.list({ namespace })).items.some(run => run.spec.type === 'Destroy' && isOf(name, run)) || undefined
      await eventually(destroyed, `the Run that destroys ${name}`, 30_000)
      await eventually(async () => (await stacks.getOrUndefined(name, { namespace })) === undefined || undefined, 'the deletion', 30_000)
    }
  })

  test('a destruction names its plan, or confirms that there is nothing to destroy', async () => {
    const stacks = client.resource(stackResource)
    const [namespace, name] = ['a', 'empty']
    await stacks.create({
      metadata: { namespace, name, finalizers: ['example.com/kept'] },
      spec: { engine: 'command', command: { apply: ['true'] }, source: { inline: { files: { a: '1' } } }, pool: 'none' },
    })
    const destroy = async (confirmed: object) => {
      const { uid, generation } = (await stacks.get(name, { namespace })).metadata
      const body = { action: 'destroy', namespace, name, uid, generation, confirmation: name, ...confirmed }
      const response = await admin.send('POST', 'actions', body)
      return `${response.status} ${((await response.json()) as { message: string }).message}`
    }
    for (const confirmed of [{}, { nothingToDestroy: false }, { digest: 'sha256:ab', nothingToDestroy: true }])
      match(await destroy(confirmed), /^400 .*the digest of the plan that was shown, or nothingToDestroy/)
    equal(await destroy({ nothingToDestroy: true }), `200 stack/${name}: deletion requested`)
    const { metadata } = await stacks.get(name, { namespace })
    match(metadata.annotations?.['oarlock.dev/destroy-plan'] ?? '', /^none@/)
    await stacks.patch(name, { metadata: { finalizers: null } } as object, { type: 'merge', namespace })
  })

  /** An action on a Stack, as its page requests it: `STATUS MESSAGE`. */
  async function act(namespace: string, name: string, body: object): Promise<string> {
    const response = await admin.send('POST', 'actions', { namespace, name, ...body })
    return `${response.status} ${((await response.json()) as { message: string }).message}`
  }
  const json = async <T>(path: string): Promise<T> => (await (await admin.get(path)).json()) as T
  const actionsOf = async (namespace: string, name: string) =>
    new Map((await json<Action[]>(`actions/stacks/${namespace}/${name}`)).map(action => [action.name, action]))
  const bulkRun = async (filter: string, expected: number) => {
    const response = await admin.send('POST', 'bulk', { action: 'run', filter, expected })
    return ((await response.json()) as BulkResult).results.map(result => [result.key, result.ok, result.message])
  }

  /** A Stack that workers apply: it is Ready. */
  async function makeApplied(namespace: string, name: string, destroy: readonly string[]) {
    const stacks = client.resource(stackResource)
    const command = { apply: ['true'], destroy: [...destroy] }
    await stacks.create({ metadata: { namespace, name }, spec: { engine: 'command', command, source: { inline: { files: { a: '1' } } } } })
    const ready = async () => isConditionTrue((await stacks.get(name, { namespace })).status?.conditions, 'Ready') || undefined
    await eventually(ready, `Stack ${name}`, 60_000)
  }

  test('a canceled destruction is continued by a Run only for who has seen the deletion, and by no action on many', async () => {
    const [stacks, runs] = [client.resource(stackResource), client.resource(runResource)]
    const [namespace, name] = ['a', 'canceled']
    await makeApplied(namespace, name, ['sleep', '100'])
    await stacks.delete(name, { namespace })
    const active = async () => (await runs.list({ namespace })).items.find(run => run.spec.type === 'Destroy' && isOf(name, run))
    const { metadata } = await eventually(active, 'the Destroy', 30_000)
    equal(await act(namespace, metadata.name, { action: 'cancel' }), `200 run/${metadata.name}: cancellation requested`)
    const canceled = async () => {
      const stack = await stacks.get(name, { namespace })
      return stack.status?.conditions?.find(({ type }) => type === 'Stalled')?.reason === 'RunCanceled' ? stack : undefined
    }
    const { uid, generation } = (await eventually(canceled, 'the canceled destruction', 60_000)).metadata

    const reason = `no Run of stack/${name} was requested: the Stack is being deleted: look at its page, which states what a Run does then, and request it there`
    const listed = async () => (await bulkRun('name:canceled', 1).catch(() => [])).length > 0 || undefined
    await eventually(listed, 'the row of the Stack')
    deepEqual(await bulkRun('name:canceled', 1), [[`${namespace}/${name}`, false, reason]])
    for (const shown of [{}, { uid, generation: 1 }, { uid: 'another', generation }])
      equal(await act(namespace, name, { action: 'run', ...shown }), `409 ${reason}`)
    for (const action of ['plan', 'refresh', 'plan-destroy'])
      match(
        await act(namespace, name, { action, uid, generation }),
        /^409 no Run of stack\/canceled was requested: the Stack is being deleted: a Run (may )?destroy/,
      )
    equal((await stacks.get(name, { namespace })).metadata.annotations?.['oarlock.dev/requested-run'], undefined)

    const run = (await actionsOf(namespace, name)).get('run')
    deepEqual([run?.enabled, /this destroys its real resources/.test(run?.effect ?? '')], [true, true])
    equal(await act(namespace, name, { action: 'run', uid, generation }), `200 stack/${name}: run requested`)
    const destroys = async () =>
      (await runs.list({ namespace })).items.filter(one => one.spec.type === 'Destroy' && isOf(name, one)).length === 2 || undefined
    await eventually(destroys, 'the other Destroy', 30_000)
    // Its resources are left, so that it does not wait for the command.
    await stacks.patch(name, { spec: { deletion: 'Orphan' } }, { type: 'merge', namespace })
    await eventually(async () => (await stacks.getOrUndefined(name, { namespace })) === undefined || undefined, 'the deletion', 60_000)
  })

  test('a restored Stack is planned only, and a suspended one gets no Run: in an action on many each has its reason', async () => {
    const stacks = client.resource(stackResource)
    const namespace = 'c'
    await client.resource(namespaceResource).create({ metadata: { name: namespace } })
    for (const name of ['free', 'restored', 'suspended']) await makeStack(namespace, name)
    await stacks.patchStatus('restored', { status: { restored: { at: '2026-06-01T10:00:00Z' } } }, { namespace })
    await stacks.patch('suspended', { spec: { suspend: true } }, { type: 'merge', namespace })
    const review =
      'the Stack was restored from a backup and waits for its review: show what differs with "oarlock plan restored -n c", then use "oarlock restore accept restored -n c"'
    deepEqual(await bulkRun('namespace:c', 3), [
      ['c/free', true, 'stack/free: run requested'],
      ['c/restored', false, `no Run of stack/restored was requested: ${review}`],
      [
        'c/suspended',
        false,
        'no Run of stack/suspended was requested: the Stack is suspended: resume it first: oarlock resume suspended -n c',
      ],
    ])
    equal(await act(namespace, 'restored', { action: 'refresh' }), `409 no Run of stack/restored was requested: ${review}`)
    equal(await act(namespace, 'restored', { action: 'plan' }), '200 stack/restored: plan requested')
    deepEqual((await actionsOf(namespace, 'restored')).get('destroy')?.why, review)
  })

  test('what would keep a destruction waiting is stated before a plan, and the Stack is not deleted', async () => {
    const stacks = client.resource(stackResource)
    const [namespace, name] = ['c', 'network']
    await makeStack(namespace, name)
    const { spec } = await makeStack(namespace, 'web')
    await stacks.patch('web', { spec: { ...spec, dependsOn: [{ name }] } }, { type: 'merge', namespace })
    const lock = { ID: 'lock-1', Operation: 'test', Who: 'anna@host', Created: '2026-06-01T10:00:00Z', Path: '' }
    const stores = await createClient({ kubeconfig: app.kubeconfigPath })
    const headers = { 'content-type': 'application/json' }
    await stores.request({ method: 'LOCK', path: `/state/${namespace}/${name}`, body: JSON.stringify(lock), headers, idempotent: false })
    await stores.close()
    const blockers = await eventually(async () => {
      const found = (await json<Destruction>(`destructions/${namespace}/${name}`)).blockers
      return found.length === 2 ? found : undefined
    }, 'the dependent in the table')
    match(
      blockers[0] ?? '',
      /^Stacks depend on it: web; destroy them first, or all Stacks of the namespace with: oarlock destroy --all -n c$/,
    )
    match(blockers[1] ?? '', /^the state is locked by .*: wait for the holder, or release the lock: oarlock state unlock network -n c$/)
    const { uid, generation } = (await stacks.get(name, { namespace })).metadata
    equal(
      await act(namespace, name, { action: 'destroy', uid, generation, nothingToDestroy: true, confirmation: name }),
      `409 stack/${name} cannot be destroyed: ${blockers.join('; ')}`,
    )
    equal((await stacks.get(name, { namespace })).metadata.deletionTimestamp, undefined)
  })

  test('a deletion that makes another plan than the confirmed one is confirmed again with Destroy, and not approved', async () => {
    const stacks = client.resource(stackResource)
    const [namespace, name] = ['a', 'replanned']
    await makeApplied(namespace, name, ['true'])
    const confirmation = name
    const before = (await stacks.get(name, { namespace })).metadata
    const { isEmpty, blockers } = await json<Destruction>(`destructions/${namespace}/${name}`)
    deepEqual([isEmpty, blockers], [false, []])
    const wrong = { action: 'destroy', uid: before.uid, generation: before.generation, digest: 'sha256:of-another-plan', confirmation }
    equal(await act(namespace, name, wrong), `200 stack/${name}: destruction of exactly this plan requested`)
    const { pending, uid, generation } = await eventually(
      async () => {
        const found = await json<Destruction>(`destructions/${namespace}/${name}`)
        return found.pending && { ...found, pending: found.pending }
      },
      'the plan that waits',
      60_000,
    )
    const { digest } = pending

    const why =
      'the deletion of the Stack needs no approval, but the confirmation of the user who destroys it: show and confirm its plan: oarlock destroy replanned -n a'
    const actions = await actionsOf(namespace, name)
    deepEqual([actions.get('approve')?.why, actions.get('reject'), actions.get('destroy')?.enabled], [why, undefined, true])
    for (const action of ['approve', 'reject'])
      equal(await act(namespace, name, { action, digest, uid, generation }), `409 stack/${name}: ${why}`)
    const destroy = { action: 'destroy', uid, generation, confirmation }
    match(await act(namespace, name, { ...destroy, digest: 'sha256:of-another-plan' }), /^409 .* has changed since it was shown/)
    equal(await act(namespace, name, { ...destroy, digest }), `200 stack/${name}: destruction of exactly this plan confirmed`)
    await eventually(async () => (await stacks.getOrUndefined(name, { namespace })) === undefined || undefined, 'the deletion', 60_000)
  })

  test('a Stack that was never applied, and whose source is broken, is destroyed without a plan', async () => {
    const stacks = client.resource(stackResource)
    const [namespace, name] = ['a', 'broken']
    const source = { git: { url: 'http://127.0.0.1:1/none.git', ref: 'main' } }
    await stacks.create({ metadata: { namespace, name }, spec: { engine: 'command', command: { apply: ['true'] }, source } })
    const { uid, generation, isEmpty, blockers } = await json<Destruction>(`destructions/${namespace}/${name}`)
    deepEqual([isEmpty, blockers], [true, []])
    const destroy = { action: 'destroy', uid, generation, nothingToDestroy: true, confirmation: name }
    equal(await act(namespace, name, destroy), `200 stack/${name}: deletion requested`)
    await eventually(async () => (await stacks.getOrUndefined(name, { namespace })) === undefined || undefined, 'the deletion', 30_000)
  })

  test('after a sign-out the stream ends and the cookie is worth nothing', async () => {
    const browser = await signIn({ link: linkOf(app) })
    const stream = await openStream(browser, { o: { kind: 'overview' } })
    // Those of the Runs of another test exit after them.
    const overview = () => stream.facts('o') as OverviewFacts | undefined
    const { isWhole } = await eventually(async () => overview()?.workers?.total === 0 && overview(), 'the overview without workers')
    deepEqual(isWhole, { stacks: true, runs: true })
    equal((await browser.send('DELETE', 'session', undefined)).status, 200)
    await eventually(async () => stream.messages.some(({ type }) => type === 'signed-out') || undefined, 'the end of the stream')
    equal((await browser.get('session')).status, 401)
  })
})
