/** The parts of the page of a Stack, of a real all-in-one whose Stacks real engines have applied. */
import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { fetch, type Response } from 'undici'
import { stackResource } from '../src/api/index.ts'
import type {
  Action,
  ResourceDetails,
  Session,
  StackEvent,
  StackGraph,
  StackOutputs,
  StackResources,
  StackVariables,
  StackYaml,
  StateDiff,
  StateVersions,
  YamlResult,
} from '../src/console/protocol/index.ts'
import { type ConsoleFleet, fleetNamespace, startConsoleFleet } from './support/console-fleet.ts'
import { eventually } from './support/eventually.ts'
import { skipWithoutTerraformEngine } from './support/run-program.ts'

type Browser = { get(path: string): Promise<Response>; post(path: string, body: unknown): Promise<Response> }

describe('the page of a Stack', { timeout: 240_000, skip: skipWithoutTerraformEngine }, () => {
  let fleet: ConsoleFleet
  let admin: Browser

  before(async () => {
    fleet = await startConsoleFleet()
    admin = await signIn({ link: new URL(fleet.app.consoleLink()).hash.replace('#token=', '') })
  })
  after(async () => await fleet?.stop())

  async function signIn(credential: object): Promise<Browser> {
    const api = `${fleet.app.httpUrl}/console/api/`
    const json = { 'content-type': 'application/json' }
    const response = await fetch(`${api}session`, { method: 'POST', headers: json, body: JSON.stringify(credential) })
    equal(response.status, 200)
    const cookie = (response.headers.get('set-cookie') ?? '').split(';', 1)[0] as string
    const { csrfToken } = (await response.json()) as Session
    const headers = { cookie, 'x-oarlock-csrf': csrfToken, ...json }
    return {
      get: async path => await fetch(`${api}${path}`, { headers }),
      post: async (path, body) => await fetch(`${api}${path}`, { method: 'POST', headers, body: JSON.stringify(body) }),
    }
  }

  async function read<Part>(part: string, stack = 'network', browser = admin): Promise<Part> {
    const response = await browser.get(`stacks/${fleetNamespace}/${stack}/${part}`)
    const content = await response.json()
    equal(response.status, 200, JSON.stringify(content))
    return content as Part
  }

  /** A user of the namespace with these rights only. */
  async function signInWith(name: string, rules: object[]): Promise<Browser> {
    const { client } = fleet.app
    const namespace = fleetNamespace
    const rbac = { apiVersion: 'rbac.authorization.k8s.io/v1', metadata: { name, namespace } }
    const base = `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}`
    await client.request({ method: 'POST', path: `/api/v1/namespaces/${namespace}/serviceaccounts`, body: { metadata: { name } } })
    await client.request({ method: 'POST', path: `${base}/roles`, body: { ...rbac, kind: 'Role', rules } })
    const subjects = [{ kind: 'ServiceAccount', name, namespace }]
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name }
    await client.request({ method: 'POST', path: `${base}/rolebindings`, body: { ...rbac, kind: 'RoleBinding', roleRef, subjects } })
    const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`
    const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} }
    const { status } = (await (await client.request({ method: 'POST', path, body })).json()) as { status: { token: string } }
    return await eventually(async () => await signIn({ token: status.token }).catch(() => undefined), 'the session')
  }
  const mayRead = (...resources: string[]) => ({ apiGroups: ['oarlock.dev'], resources, verbs: ['get', 'list'] })

  test('resources are those of the current state, or of the inventory', async () => {
    const { format, resources, total, author } = await read<StackResources>('resources')
    equal(format, 'terraform')
    deepEqual(
      resources.map(({ address }) => address),
      ['terraform_data.network', 'terraform_data.subnet[0]', 'terraform_data.subnet[1]'],
    )
    equal(total, 3)
    match(author ?? '', /^network-/)
    const web = await read<StackResources>('resources', 'web')
    deepEqual([web.format, web.resources.map(({ address }) => address)], ['inventory', ['ConfigMap shop/web-settings']])
    equal((await read<StackResources>('resources', 'database')).format, 'none')
  })

  test('a resource has its attributes, without those that are sensitive', async () => {
    const { version } = await read<StackResources>('resources', 'app')
    const response = await admin.get('stacks/shop/app/resource?address=terraform_data.release')
    const text = await response.text()
    equal(response.status, 200, text)
    ok(!text.includes('very-secret-token'), text)
    const details = JSON.parse(text) as ResourceDetails
    deepEqual([details.address, details.version, details.format], ['terraform_data.release', version, 'terraform'])
    const [object] = details.objects
    deepEqual(
      object?.attributes.map(({ name }) => name),
      ['id', 'input', 'output', 'triggers_replace'],
    )
    match(object?.attributes[1]?.text ?? '', /"network": "10\.0\.0\.0\/16",\n +"region": "eu-1",\n +"token": \(sensitive\),\n/)
    equal(object?.facts[0]?.text, 'provider["terraform.io/builtin/terraform"]')
    const web = await read<ResourceDetails>(`resource?address=${encodeURIComponent('ConfigMap shop/web-settings')}`, 'web')
    deepEqual(
      web.objects[0]?.facts.slice(0, 4).map(fact => fact.text),
      ['v1', 'ConfigMap', 'shop', 'web-settings'],
    )
  })

  test('a resource is that of the version that was asked for', async () => {
    const { versions } = await read<StateVersions>('versions')
    const first = versions.find(({ author }) => author === fleet.firstRun)?.version
    const inputs = [`&version=${first}`, ''].map(async query => {
      const { objects } = await read<ResourceDetails>(`resource?address=terraform_data.network${query}`)
      return /"marker": "\w+"/.exec(objects[0]?.attributes.find(({ name }) => name === 'input')?.text ?? '')?.[0]
    })
    deepEqual(await Promise.all(inputs), ['"marker": "one"', '"marker": "two"'])
    for (const [query, code, message] of [
      [
        'address=terraform_data.none',
        404,
        `version ${versions[0]?.version} of the state of stack/shop/network has no resource "terraform_data.none"`,
      ],
      ['address=terraform_data.subnet', 404, /has no resource "terraform_data\.subnet"$/],
      ['address=terraform_data.network&version=99999', 404, /version 99999 of the state is not stored/],
      ['address=terraform_data.network&version=x', 400, /version must be the number of a version/],
      ['', 400, /address must be that of a resource/],
    ] as const) {
      const response = await admin.get(`stacks/shop/network/resource?${query}`)
      equal(response.status, code, query)
      const body = (await response.json()) as { message: string }
      if (typeof message === 'string') equal(body.message, message)
      else match(body.message, message)
    }
    const response = await admin.get('stacks/shop/database/resource?address=a.b')
    match(`${response.status} ${await response.text()}`, /^404 .*the state of stack\/shop\/database has no resource/)
  })

  test('a sensitive output is named, and its value is read when it is asked for', async () => {
    const { outputs } = await read<StackOutputs>('outputs')
    deepEqual(outputs, [
      { name: 'network_id', isSensitive: false, value: '10.0.0.0/16' },
      { name: 'token', isSensitive: true, hidden: true },
    ])
    match(String((await read<{ value: unknown }>('outputs/token')).value), /very-secret-token/)
    equal((await admin.get('stacks/shop/network/outputs/none')).status, 404)
  })

  test('variables have their sources, and none of a Secret its value', async () => {
    const { variables } = await read<StackVariables>('variables', 'app')
    const text = JSON.stringify(variables)
    ok(!/correct-horse|very-secret-token/.test(text), text)
    deepEqual(
      variables.map(({ name, source, content }) => [name, source.kind, content && 'value' in content ? content.value : undefined]),
      [
        ['network', 'Stack', '10.0.0.0/16'],
        ['region', 'ConfigMap', 'eu-1'],
        ['replicas', 'Spec', 2],
        ['token', 'Stack', undefined],
        [undefined, 'Secret', undefined],
      ],
    )
  })

  test('two versions of the state differ by what a Run has changed; values are there when they are asked for', async () => {
    const { versions } = await read<StateVersions>('versions')
    ok(versions.length >= 2)
    equal(versions.filter(({ isCurrent }) => isCurrent).length, 1)
    // A Run stores a version after each resource: the last one of the first Run is complete.
    const first = versions.find(({ author }) => author === fleet.firstRun)?.version
    const path = `diff?from=${first}&to=${versions[0]?.version}`
    const { resources } = await read<StateDiff>(path)
    const network = resources.find(({ address }) => address === 'terraform_data.network')
    deepEqual(
      network?.attributes.find(attribute => attribute.path === 'input.value.marker'),
      {
        path: 'input.value.marker',
        from: { hidden: true },
        to: { hidden: true },
      },
    )
    const withValues = await read<StateDiff>(`${path}&values=1`)
    match(JSON.stringify(withValues.resources), /"from":{"value":"one"},"to":{"value":"two"}/)
    ok(!JSON.stringify(withValues).includes('very-secret-token'))
    equal((await admin.get(`stacks/shop/network/diff?from=1&to=99999`)).status, 404)
    equal((await admin.get(`stacks/shop/network/diff?to=x`)).status, 400)
  })

  test('a rollback wants the name and the version that was shown, and makes the older state the current one', async () => {
    const before = (await read<StateVersions>('versions')).versions
    const current = before.find(({ isCurrent }) => isCurrent)?.version as number
    const older = before.findLast(({ bytes, whyNoRollback }) => bytes > 0 && whyNoRollback === undefined)?.version as number
    const request = { action: 'rollback', namespace: fleetNamespace, name: 'network', version: older, currentVersion: current }
    equal((await admin.post('actions', request)).status, 400)
    const confirmed = { ...request, confirmation: 'network' }
    equal((await admin.post('actions', { ...confirmed, currentVersion: older })).status, 409)
    equal((await admin.post('actions', { ...confirmed, version: current })).status, 409)
    const response = await admin.post('actions', confirmed)
    const body = (await response.json()) as { message: string }
    equal(response.status, 200, body.message)
    match(body.message, /^stack\/network: version \d+ is the current state, stored as version \d+/)
    const { versions, lock } = await read<StateVersions>('versions')
    equal(lock, undefined)
    equal(versions.find(({ isCurrent }) => isCurrent)?.author, 'user:oarlock:admin')
  })

  test('Events are those of the Stack, the newest first', async () => {
    const events = await read<StackEvent[]>('events')
    ok(events.length > 0)
    ok(events.every(({ lastMs }, index) => index === 0 || lastMs <= (events[index - 1] as StackEvent).lastMs))
  })

  test('the graph has what the Stack needs and what needs it', async () => {
    const { nodes, edges } = await read<StackGraph>('graph')
    deepEqual(
      nodes.map(({ name, layer }) => [name, layer]),
      [
        ['network', 0],
        ['app', 1],
      ],
    )
    deepEqual(edges, [{ from: 'app', to: 'network', via: ['outputs'] }])
    deepEqual(
      (await read<StackGraph>('graph', 'app')).nodes.map(({ name, layer }) => [name, layer]),
      [
        ['network', -1],
        ['web', -1],
        ['app', 0],
      ],
    )
  })

  test('YAML is validated by the server, with its errors at their lines, and stored only at the version that was shown', async () => {
    const { yaml, resourceVersion } = await read<StackYaml>('yaml', 'app')
    const edit = async (text: string, more: object = {}) => {
      const response = await admin.post('stacks/shop/app/yaml', { yaml: text, resourceVersion, ...more })
      const content = (await response.json()) as YamlResult
      equal(response.status, 200, JSON.stringify(content))
      return content
    }
    const unchanged = await edit(yaml)
    ok(unchanged.ok && unchanged.diff.length === 0)
    const invalid = await edit(yaml.replace(/engine: \w+/, 'engine: cobol'))
    ok(!invalid.ok)
    equal(invalid.problems[0]?.field, 'spec.engine')
    equal(invalid.problems[0]?.line, yaml.split('\n').findIndex(line => line.includes('engine:')) + 1)
    const misspelled = await edit(`${yaml}  intervall: 1h\n`)
    ok(!misspelled.ok)
    match(JSON.stringify(misspelled.problems), /"message":"unknown field","field":"spec\.intervall","line":\d+/)
    const changed = yaml.replace('replicas: 2', 'replicas: 3')
    const dry = await edit(changed)
    ok(dry.ok && !dry.applied)
    ok(dry.diff.some(({ sign, text }) => sign === '+' && text.trim() === 'replicas: 3'))
    const { client } = fleet.app
    const stacks = client.resource(stackResource)
    equal((await stacks.get('app', { namespace: fleetNamespace })).spec.variables?.replicas, 2)
    const applied = await edit(changed, { apply: true })
    ok(applied.ok && applied.applied)
    equal((await stacks.get('app', { namespace: fleetNamespace })).spec.variables?.replicas, 3)
    const outdated = await edit(yaml, { apply: true })
    ok(!outdated.ok)
    match(outdated.problems[0]?.message ?? '', /has changed since it was shown/)
  })

  test('a rejected plan is not applied, and the Stack has the user and the reason', async () => {
    const { metadata, status } = await fleet.whenStack('database', stack => stack.status?.plan !== undefined)
    const { digest } = status?.plan ?? {}
    const { uid, generation } = metadata
    const request = { action: 'reject', namespace: fleetNamespace, name: 'database', digest, uid, generation }
    const names = async () =>
      ((await (await admin.get(`actions/stacks/${fleetNamespace}/database`)).json()) as Action[]).map(({ name }) => name)
    ok((await names()).includes('reject'))
    equal((await admin.post('actions', { ...request, digest: undefined })).status, 400)
    for (const other of [{ uid: 'another' }, { generation: 0 }, { digest: 'sha256:another' }])
      equal((await admin.post('actions', { ...request, ...other })).status, 409)
    equal((await admin.post('actions', { ...request, generation: '1' })).status, 400)
    equal((await admin.post('actions', { ...request, reason: 'too large' })).status, 200)
    const rejected = await fleet.whenStack('database', stack => stack.status?.rejection?.runName !== undefined)
    deepEqual([rejected.status?.rejection?.user, rejected.status?.rejection?.reason], ['oarlock:admin', 'too large'])
    const stalled = rejected.status?.conditions?.find(({ type }) => type === 'Stalled')
    match(
      stalled?.message ?? '',
      /was rejected by user "oarlock:admin": too large\. It is not applied; change the Stack, or request another plan/,
    )
    ok(!(await names()).includes('reject'))
  })

  test('a user without a right sees what is missing, and not what it protects', async () => {
    const viewer = await signInWith('viewer', [mayRead('stacks')])
    const { outputs, problem } = await read<StackOutputs>('outputs', 'network', viewer)
    deepEqual(
      outputs.map(({ name }) => name),
      ['network_id'],
    )
    match(problem ?? '', /Secret network-outputs, which you may not read/)
    for (const part of ['resources', 'resource?address=terraform_data.network', 'versions', 'diff?to=1', 'events', 'outputs/token']) {
      const response = await viewer.get(`stacks/shop/network/${part}`)
      equal(response.status, 403, part)
      const text = await response.text()
      ok(!/terraform_data|10\.0\.0\.0|marker/.test(text), text)
    }
    const { variables } = await read<StackVariables>('variables', 'app', viewer)
    equal(variables.find(({ source }) => source.kind === 'ConfigMap')?.problem, 'you may not read it')
    const { yaml, resourceVersion, whyNoEdit } = await read<StackYaml>('yaml', 'network', viewer)
    equal(whyNoEdit, 'you need the permission to update stacks')
    equal((await read<StackYaml>('yaml')).whyNoEdit, undefined)
    const edited = (await (await viewer.post('stacks/shop/network/yaml', { yaml, resourceVersion, apply: true })).json()) as YamlResult
    ok(!edited.ok)
    match(edited.problems[0]?.message ?? '', /cannot update/)
    const getter = await signInWith('getter', [{ ...mayRead('stacks'), verbs: ['get'] }])
    const graph = await read<StackGraph>('graph', 'app', getter)
    match(graph.problem ?? '', /you may not list the Stacks in shop/)
    ok(graph.nodes.every(({ name, state }) => name === 'app' || state === undefined))
    const stateReader = await signInWith('state-reader', [mayRead('stacks', 'stacks/state')])
    equal((await read<StateVersions>('versions', 'network', stateReader)).whyNoRollback, 'you need the permission to update stacks/state')
    const none = await signInWith('runs-only', [mayRead('runs')])
    for (const part of [
      'resources',
      'resource?address=terraform_data.network',
      'outputs',
      'variables',
      'versions',
      'events',
      'graph',
      'yaml',
    ])
      equal((await none.get(`stacks/shop/network/${part}`)).status, 403, part)
  })

  test('other paths do not exist', async () => {
    for (const path of ['stacks/shop/network', 'stacks/shop/network/none', 'stacks/shop', 'stacks/shop/none/resources'])
      equal((await admin.get(path)).status, 404, path)
  })
})
