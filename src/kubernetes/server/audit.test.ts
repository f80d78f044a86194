/** The audit log of a running server: what is recorded of which request, over every transport. */
import assert from 'node:assert/strict'
import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { configMapResource, createClient } from '../client/index.ts'
import { configMap, configMapsPath, makeDataDir, startTestServer, type TestServer } from './server.testing.ts'

type Event = {
  level: string
  stage: string
  verb: string
  auditID: string
  requestURI: string
  user: { username: string; groups: string[] }
  sourceIPs: string[]
  userAgent: string
  objectRef?: Record<string, string>
  responseStatus?: { code: number }
  requestObject?: { data?: object }
  responseObject?: { kind: string; metadata: { uid: string } }
  annotations?: Record<string, string>
  requestReceivedTimestamp: string
}

const maps = configMapsPath('default')
const secrets = '/api/v1/namespaces/default/secrets'

/** Runs `use` against a server with an audit log; returns the events and the text of the log after it has stopped. */
async function audited(
  use: (server: TestServer) => Promise<unknown>,
  { policy, unixSocket = false }: { policy?: object; unixSocket?: boolean } = {},
): Promise<{ events: Event[]; text: string; path: string }> {
  const dataDir = makeDataDir()
  const path = join(dataDir, 'audit', 'audit.log')
  const policyFile = policy && join(dataDir, 'policy.yaml')
  if (policyFile) writeFileSync(policyFile, JSON.stringify({ apiVersion: 'audit.k8s.io/v1', kind: 'Policy', ...policy }))
  try {
    const server = await startTestServer({
      dataDir,
      audit: { path, policyFile },
      ...(unixSocket && { unixSocket: join(dataDir, 'api.sock') }),
    })
    try {
      await use(server)
    } finally {
      await server.close()
    }
    assert.equal(statSync(path).mode & 0o777, 0o600)
    const text = readFileSync(path, 'utf8')
    return {
      events: text
        .split('\n')
        .filter(Boolean)
        .map(line => JSON.parse(line) as Event),
      text,
      path,
    }
  } finally {
    rmSync(dataDir, { recursive: true, force: true })
  }
}

const summary = ({ verb, objectRef = {}, responseStatus }: Event) =>
  `${verb} ${[objectRef.resource, objectRef.namespace, objectRef.name].filter(Boolean).join('/')} ${responseStatus?.code}`

test('by default, metadata of writes is recorded: user, verb, object, response and times; bodies and reads of other kinds than Secrets are not', async () => {
  const { events, text } = await audited(async server => {
    const { call } = server
    await call(maps, { body: configMap('a', { value: 'not-logged' }) })
    await call(`${maps}/a`)
    await call(maps)
    await call(`${maps}/a`, { method: 'PATCH', type: 'application/merge-patch+json', body: { data: { value: 'b' } } })
    const token = server.server.issueToken({ name: 'jane', groups: ['dev'], ttlMs: 60_000 })
    await call(`${maps}/a`, { method: 'DELETE', token })
    await call(maps, { body: configMap('b'), token: null })
    await call(`${maps}/a`, { method: 'DELETE' })
    await call(secrets, { body: { metadata: { name: 's' }, stringData: { password: 'hunter2' } } })
    await call(`${secrets}/s`)
    await call(secrets, { token })
    await call('/apis/coordination.k8s.io/v1/namespaces/default/leases', { body: { metadata: { name: 'l' }, spec: {} } })
    await call('/apis/coordination.k8s.io/v1/namespaces/default/leases/l', {
      method: 'PATCH',
      type: 'application/merge-patch+json',
      body: { spec: {} },
    })
    await call('/backup')
    await call('/backup', { token })
  })
  assert.deepEqual(events.map(summary), [
    'create configmaps/default/a 201',
    'patch configmaps/default/a 200',
    'delete configmaps/default/a 403',
    'delete configmaps/default/a 200',
    'create secrets/default/s 201',
    'get secrets/default/s 200',
    'list secrets/default 403',
    'create leases/default/l 201',
    'get  200',
    'get  403',
  ])
  const [created, , denied] = events as [Event, Event, Event]
  assert.deepEqual(
    [created.level, created.stage, created.requestURI, created.userAgent],
    ['Metadata', 'ResponseComplete', maps, 'tester/1.0'],
  )
  assert.deepEqual([denied.user.username, denied.user.groups, denied.sourceIPs], ['jane', ['dev', 'system:authenticated'], ['127.0.0.1']])
  assert.equal(created.annotations, undefined)
  assert.deepEqual(
    events.filter(({ annotations }) => annotations).map(({ annotations }) => annotations),
    [
      'configmaps "a" is forbidden: User "jane" cannot delete resource "configmaps" in API group "" in the namespace "default"',
      'secrets is forbidden: User "jane" cannot list resource "secrets" in API group "" in the namespace "default"',
      'forbidden: User "jane" cannot get path "/backup"',
    ].map(reason => ({ 'authorization.k8s.io/decision': 'forbid', 'authorization.k8s.io/reason': reason })),
  )
  assert.match(created.requestReceivedTimestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/)
  assert.equal(new Set(events.map(event => event.auditID)).size, events.length)
  assert.ok(!/not-logged|hunter2/.test(text))
})

test('requests over the Unix socket and of the same process are recorded too', async () => {
  const { events } = await audited(
    async ({ server, adminToken, dataDir }) => {
      for (const client of [
        await createClient({ cluster: { server: server.unixSocketUrl!, token: adminToken } }),
        await createClient({ kubeconfig: join(dataDir, 'kubeconfig'), local: server.connect() }),
        await createClient({ kubeconfig: join(dataDir, 'kubeconfig') }),
      ]) {
        await client.resource(configMapResource).create({ metadata: { generateName: 'm-', namespace: 'default' } })
        await client.close()
      }
    },
    { unixSocket: true },
  )
  assert.equal(events.length, 3)
  for (const event of events) assert.match(summary(event), /^create configmaps\/default\/m-\w{5} 201$/)
})

test('a policy selects levels; bodies are recorded up to a limit, and never those of a Secret or a token', async () => {
  const { events, text } = await audited(
    async ({ call }) => {
      const list = { apiVersion: 'v1', kind: 'List', items: [{ apiVersion: 'v1', kind: 'Secret', stringData: { password: 'hunter2' } }] }
      await call(secrets, { body: { metadata: { name: 's' }, stringData: { password: 'hunter2' } } })
      await call(`${secrets}/s`)
      await call(maps, { body: list })
      await call(maps, { body: JSON.stringify(list).replace('Secret', '\\u0053ecret').replaceAll(':', ' : ') })
      await call(maps, { type: 'application/yaml', body: 'kind: Secret\nstringData: {password: hunter2}' })
      await call('/api/v1/namespaces/default/serviceaccounts', { body: { metadata: { name: 'robot' } } })
      await call('/api/v1/namespaces/default/serviceaccounts/robot/token', { body: { spec: {} } })
      await call(maps, { body: configMap('a', { value: 'logged' }) })
      await call(`${maps}/a`, { headers: { 'accept-encoding': 'gzip' } })
      await call(maps, { body: configMap('long', { value: 'x'.repeat(300_000) }) })
      await call(maps)
    },
    {
      policy: {
        rules: [{ level: 'None', verbs: ['list'], resources: [{ group: '', resources: ['configmaps'] }] }, { level: 'RequestResponse' }],
      },
    },
  )
  assert.ok(!text.includes('hunter2') && !text.includes(Buffer.from('hunter2').toString('base64')))
  const lines = events.filter(event => event.objectRef)
  assert.deepEqual(
    lines.map(event =>
      `${event.level} ${summary(event)} ${event.requestObject ? 'request' : ''} ${event.responseObject?.kind ?? ''}`.trim(),
    ),
    [
      'Metadata create secrets/default/s 201',
      'Metadata get secrets/default/s 200',
      'RequestResponse create configmaps/default 400  Status',
      'RequestResponse create configmaps/default 400  Status',
      'RequestResponse create configmaps/default 400  Status',
      'RequestResponse create serviceaccounts/default/robot 201 request ServiceAccount',
      'Metadata create serviceaccounts/default/robot 201',
      'RequestResponse create configmaps/default/a 201 request ConfigMap',
      'RequestResponse get configmaps/default/a 200  ConfigMap',
      'RequestResponse create configmaps/default/long 201',
    ],
  )
  assert.equal(lines[2]!.annotations?.['audit.oarlock.dev/request-object'], 'contains a Secret or a token')
  assert.deepEqual(lines.at(-1)!.annotations, {
    'audit.oarlock.dev/request-object': 'longer than 262144 characters',
    'audit.oarlock.dev/response-object': 'longer than 262144 characters',
  })
  assert.deepEqual(lines[7]!.requestObject?.data, { value: 'logged' })
})

test('an unusable policy and an unusable path fail the start with the flag to change; nothing of the policy is ignored', async () => {
  const path = '/proc/nothing/audit.log'
  await assert.rejects(startTestServer({ audit: { path } }), { code: 'AuditInvalid', message: /--audit-log-path/ })
  const rule = { level: 'Metadata' }
  for (const [policy, reason] of [
    [{ rules: [{ level: 'Everything' }] }, /rules\[0\]\.level must be one of/],
    [{ rules: [{ ...rule, omitManagedFields: true }] }, /rules\[0\] has the field omitManagedFields, which is not supported/],
    [{ rules: [{ ...rule, verbs: 'get' }] }, /rules\[0\]\.verbs must be a list of strings/],
    [{ rules: [rule], omitStages: ['ResponseComplete'] }, /omitStages/],
    [{ rules: [] }, /at least one rule/],
    [{ rules: [rule], kind: 'ClusterPolicy' }, /must be a Policy/],
  ] as const) {
    await assert.rejects(
      audited(async () => {}, { policy }),
      { code: 'AuditInvalid', message: reason },
    )
  }
})

test('the metrics count events; the log of a closed server is complete', async () => {
  let metrics = ''
  const { events } = await audited(async ({ call, server }) => {
    await Promise.all(Array.from({ length: 200 }, (_, i) => call(maps, { body: configMap(`m${i}`) })))
    metrics = await server.metrics()
  })
  assert.equal(events.length, 200)
  assert.match(metrics, /^apiserver_audit_event_total 200$/m)
  assert.match(metrics, /^apiserver_audit_error_total\{plugin="log"\} 0$/m)
})
