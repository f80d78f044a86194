import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Agent, type Dispatcher } from 'undici'
import { issueClientCertificate } from './index.ts'
import { startTestServer, type TestServer } from './server.testing.ts'

// Every served resource and subresource × every verb × every kind of credential, in a namespace where the credential has permissions,
// in one where it has none, and cluster-wide. The expected results are stated independently of the server's roles.

type AccessAttributes = { verb: string; group: string; resource: string; namespace: string; name: string }
type Credential = { name: string; token?: string; dispatcher?: Dispatcher; expect: 401 | ((attributes: AccessAttributes) => boolean) }

const reads = ['get', 'list', 'watch']
// An authorized request is rejected by this invalid version, so that no watch stays open.
const noWatch = '&watch=true&resourceVersion=none'
const isRead = ({ verb }: AccessAttributes) => reads.includes(verb)
const home = 'matrix'

/** Resources by group: `a` is a resource, `a/b` a subresource, `a(b,c)` a resource and its subresources. */
function resources(text: Record<string, string>): Set<string> {
  const set = new Set<string>()
  for (const [group, words] of Object.entries(text)) {
    for (const [, resource, subresources] of words.matchAll(/([a-z]+)(?:\(([a-z,]+)\))?/g)) {
      set.add(`${group} ${resource}`)
      for (const subresource of subresources?.split(',') ?? []) set.add(`${group} ${resource}/${subresource}`)
    }
  }
  return set
}

const viewable = resources({
  '': 'bindings configmaps endpoints events limitranges namespaces(status) persistentvolumeclaims(status) pods(status,log) replicationcontrollers(status,scale) resourcequotas(status) serviceaccounts services(status)',
  apps: 'controllerrevisions daemonsets(status) deployments(status,scale) replicasets(status,scale) statefulsets(status,scale)',
  autoscaling: 'horizontalpodautoscalers(status)',
  batch: 'cronjobs(status) jobs(status)',
  'discovery.k8s.io': 'endpointslices',
  'events.k8s.io': 'events',
  'networking.k8s.io': 'ingresses(status) networkpolicies',
  policy: 'poddisruptionbudgets(status)',
  'resource.k8s.io': 'resourceclaims(status) resourceclaimtemplates',
})
const editable = resources({
  '': 'configmaps events persistentvolumeclaims pods(attach,exec,portforward) replicationcontrollers(scale) secrets serviceaccounts services',
  apps: 'daemonsets deployments(scale) replicasets(scale) statefulsets(scale)',
  autoscaling: 'horizontalpodautoscalers',
  batch: 'cronjobs jobs',
  'coordination.k8s.io': 'leases',
  'events.k8s.io': 'events',
  'networking.k8s.io': 'ingresses networkpolicies',
  policy: 'poddisruptionbudgets',
  'resource.k8s.io': 'resourceclaims resourceclaimtemplates',
  'rbac.authorization.k8s.io': 'roles rolebindings',
})
const alsoReadable = resources({
  '': 'secrets pods(attach,exec,portforward)',
  'coordination.k8s.io': 'leases',
  'rbac.authorization.k8s.io': 'roles rolebindings',
})
const onlyCreatable = resources({ '': 'pods/eviction serviceaccounts/token', 'authorization.k8s.io': 'localsubjectaccessreviews' })
onlyCreatable.add(' pods/eviction').add(' serviceaccounts/token')

const key = ({ group, resource }: AccessAttributes) => `${group} ${resource}`
/** Every authenticated user may review their own access. */
const aboutOneself = ({ verb, group, resource }: AccessAttributes) =>
  verb === 'create' && (group === 'authentication.k8s.io' || group === 'authorization.k8s.io') && resource.startsWith('selfsubject')
const views = (attributes: AccessAttributes) => attributes.namespace === home && isRead(attributes) && viewable.has(key(attributes))
const administers = (attributes: AccessAttributes) => {
  if (attributes.namespace !== home) return false
  if (isRead(attributes)) return viewable.has(key(attributes)) || alsoReadable.has(key(attributes))
  return editable.has(key(attributes)) || (attributes.verb === 'create' && onlyCreatable.has(key(attributes)))
}
/** The role that is bound to the ServiceAccount below. */
const mayUseOneName = ({ verb, group, resource, namespace, name }: AccessAttributes) =>
  namespace === home && group === '' && resource === 'configmaps' && (verb === 'get' || verb === 'delete') && name === 'one'

describe('authorization of every credential', { timeout: 60_000 }, () => {
  let server: TestServer
  let credentials: Credential[]
  let requestCases: { attributes: AccessAttributes; method: string; path: string }[]
  const agents: Agent[] = []

  before(async () => {
    server = await startTestServer()
    await make('/api/v1/namespaces', { metadata: { name: home } })
    await make('/api/v1/namespaces', { metadata: { name: 'other' } })
    await make(`/api/v1/namespaces/${home}/serviceaccounts`, { metadata: { name: 'robot' } })
    const rbac = '/apis/rbac.authorization.k8s.io/v1'
    const rules = [{ apiGroups: [''], resources: ['configmaps'], resourceNames: ['one'], verbs: ['get', 'delete'] }]
    await make(`${rbac}/namespaces/${home}/roles`, { metadata: { name: 'one-name' }, rules })
    await make(`${rbac}/clusterroles`, {
      metadata: { name: 'read-all' },
      rules: [{ apiGroups: ['*'], resources: ['*'], verbs: reads }],
    })
    const bind = (name: string, roleRef: object, subject: object) =>
      make(`${rbac}/namespaces/${home}/rolebindings`, { metadata: { name }, roleRef, subjects: [subject] })
    await bind('reader', { kind: 'ClusterRole', name: 'view' }, { kind: 'User', name: 'reader' })
    await bind('boss', { kind: 'ClusterRole', name: 'admin' }, { kind: 'Group', name: 'bosses' })
    await bind('robot', { kind: 'Role', name: 'one-name' }, { kind: 'ServiceAccount', name: 'robot' })
    await make(`${rbac}/clusterrolebindings`, {
      metadata: { name: 'auditors' },
      roleRef: { kind: 'ClusterRole', name: 'read-all' },
      subjects: [{ kind: 'Group', name: 'auditors' }],
    })
    const request = await make(`/api/v1/namespaces/${home}/serviceaccounts/robot/token`, {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: {},
    })
    const issue = (name: string, group: string, ttlMs = 3_600_000) => server.server.issueToken({ name, groups: [group], ttlMs })
    const expired = issue('boss', 'system:masters', 1)
    // Expiry times of tokens have a resolution of one second.
    while ((await server.call('/api', { token: expired })).code !== 401) await sleep(50)
    credentials = [
      { name: 'no credential', expect: 401 },
      { name: 'a wrong token', token: 'no-such-token', expect: 401 },
      { name: 'an expired token', token: expired, expect: 401 },
      {
        name: 'a client certificate of another authority',
        dispatcher: await withCertificate('root', ['system:masters'], true),
        expect: 401,
      },
      {
        name: 'an expired client certificate',
        dispatcher: await withCertificate('root', ['system:masters'], false, 7_200_000),
        expect: 401,
      },
      { name: 'authenticated without permissions', token: issue('unprivileged', 'unprivileged-group'), expect: () => false },
      { name: 'read-only by RBAC', token: issue('reader', 'readers'), expect: views },
      { name: 'administrator of a namespace', token: issue('boss', 'bosses'), expect: administers },
      { name: 'a service account', token: (request.status as { token: string }).token, expect: mayUseOneName },
      { name: 'a client certificate', dispatcher: await withCertificate('auditor', ['auditors'], false), expect: isRead },
      { name: 'administrator', token: server.adminToken, expect: () => true },
    ]
    requestCases = await allQuestions()
  })
  after(async () => {
    for (const agent of agents) await agent.destroy()
    await server.close()
  })

  async function make(path: string, body: object): Promise<Record<string, unknown>> {
    const { code, body: answer } = await server.call<Record<string, unknown>>(path, { body })
    assert.equal(code, 201, `${path}: ${JSON.stringify(answer)}`)
    return answer
  }

  async function withCertificate(name: string, groups: string[], isForeign: boolean, ageMs = 0): Promise<Agent> {
    const other = isForeign ? await startTestServer() : undefined
    const pki = `${(other ?? server).dataDir}/pki`
    const { certificate, key: privateKey } = await issueClientCertificate(pki, { name, groups, ttlMs: 3_600_000 }, Date.now() - ageMs)
    await other?.close()
    const agent = new Agent({ connect: { ca: server.server.caCertificate, cert: certificate, key: privateKey } })
    agents.push(agent)
    return agent
  }

  async function allQuestions(): Promise<typeof requestCases> {
    const all: typeof requestCases = []
    const { body: groups } = await server.call<{ groups: { versions: { groupVersion: string }[] }[] }>('/apis')
    const bases = ['/api/v1', ...groups.groups.flatMap(({ versions }) => versions.map(({ groupVersion }) => `/apis/${groupVersion}`))]
    for (const base of bases) {
      const group = base === '/api/v1' ? '' : (base.split('/')[2] as string)
      const { body } = await server.call<{ resources: { name: string; namespaced: boolean }[] }>(base)
      for (const { name: resource, namespaced } of body.resources) {
        const [plural, subresource] = resource.split('/') as [string, string | undefined]
        const add = (verb: string, method: string, namespace: string, name: string, query = '') => {
          const at = `${base}${namespaced && namespace ? `/namespaces/${namespace}` : ''}/${plural}`
          const path = `${at}${name && `/${name}`}${subresource ? `/${subresource}` : ''}?dryRun=All${query}`
          // RBAC treats a Namespace object as being in the namespace of its own name.
          const within = group === '' && plural === 'namespaces' ? name : namespaced ? namespace : ''
          all.push({ attributes: { verb, group, resource, namespace: within, name }, method, path })
        }
        const namespaces = namespaced ? [home, 'other'] : ['']
        for (const place of namespaces) {
          const names = group === '' && plural === 'namespaces' ? [home, 'other'] : ['one', 'two']
          for (const name of names) {
            add('get', 'GET', place, name)
            add('update', 'PUT', place, name)
            add('patch', 'PATCH', place, name)
            if (subresource) add('create', 'POST', place, name)
            add('delete', 'DELETE', place, name)
          }
          if (subresource) continue
          add('list', 'GET', place, '')
          add('watch', 'GET', place, '', noWatch)
          add('create', 'POST', place, '')
          add('deletecollection', 'DELETE', place, '')
        }
        if (namespaced && !subresource) {
          add('list', 'GET', '', '')
          add('watch', 'GET', '', '', noWatch)
        }
      }
    }
    return all
  }

  async function send(
    { token, dispatcher = server.agent }: Credential,
    method: string,
    path: string,
  ): Promise<{ code: number; text: string }> {
    const { statusCode, body } = await dispatcher.request({
      origin: server.server.url,
      method: method as Dispatcher.HttpMethod,
      path,
      headers: { ...(token && { authorization: `Bearer ${token}` }), 'content-type': 'application/json' },
      ...(method !== 'GET' && method !== 'DELETE' && { body: '{' }),
    })
    return { code: statusCode, text: await body.text() }
  }

  test('every resource, verb and credential gets the expected status', async () => {
    assert.ok(requestCases.length > 500, `only ${requestCases.length} requests`)
    const wrong: string[] = []
    for (const credential of credentials) {
      let next = 0
      const work = async () => {
        for (let at = next++; at < requestCases.length; at = next++) {
          const { attributes, method, path } = requestCases[at] as (typeof requestCases)[number]
          const { code, text } = await send(credential, method, path)
          // A 403 for another reason, such as a namespace that must not be deleted, is not a decision of RBAC.
          const got = code === 401 ? 401 : code === 403 && / cannot \w+ resource /.test(text)
          const { expect } = credential
          const expected = expect === 401 ? 401 : !(expect(attributes) || aboutOneself(attributes))
          if (got !== expected || code === 500) wrong.push(`${credential.name}: ${method} ${path}: ${code} ${text.slice(0, 200)}`)
        }
      }
      await Promise.all(Array.from({ length: 16 }, work))
    }
    assert.deepEqual(wrong.slice(0, 20), [], `${wrong.length} responses are wrong`)
  })

  const open = ['/healthz', '/livez', '/readyz', '/version']
  const forAuthenticated = ['/api', '/apis', '/api/v1', '/apis/apps/v1', '/openapi/v2', '/openapi/v3']
  const forServiceAccounts = ['/openid/v1/jwks', '/.well-known/openid-configuration']

  test('every path and credential gets the expected status', async () => {
    const wrong: string[] = []
    for (const credential of credentials) {
      for (const path of [...open, ...forAuthenticated, ...forServiceAccounts, '/', '/metrics', '/secret']) {
        const { code } = await send(credential, 'GET', path)
        const isAdministrator = credential.name === 'administrator'
        const isAllowed =
          forAuthenticated.includes(path) ||
          isAdministrator ||
          (forServiceAccounts.includes(path) && credential.name === 'a service account')
        const expected = open.includes(path) ? 'ok' : credential.expect === 401 ? 401 : isAllowed ? 'ok' : 403
        const got = code === 401 || code === 403 ? code : 'ok'
        if (got !== expected) wrong.push(`${credential.name}: ${path}: ${code}, not ${expected}`)
      }
    }
    assert.deepEqual(wrong, [])
  })
})
