import fc from 'fast-check'
import { bytes, type EndpointRequest, json, mostly, mutated, oneOf, utf8, type Valid } from './endpoint-request.ts'

/** A group of endpoints that is attacked together. */
export type Target = {
  readonly name: string
  /** Which process serves it (endpoint-server.ts). */
  readonly mode: 'stores' | 'up'
  readonly requests: fc.Arbitrary<EndpointRequest>
}

const counts = ['0', '1', '2', '3', '7', '2147483647']
const wrongCounts = [
  ...['', '-1', '-0', '+1', '1.5', '1e3', '0x10', ' 1', '01', 'NaN', 'Infinity', 'null', '1,1', '٣', '2147483648', '4294967296'],
  ...['9007199254740991', '9007199254740992', '9223372036854775807', '9'.repeat(16), '9'.repeat(40), '1'.repeat(5_000)],
]
const numbers = mostly(counts, wrongCounts)
const digests = mostly(
  ['a'.repeat(64), `sha256:${'b'.repeat(64)}`, 'd'],
  ['', '.', '..', '-', 'a'.repeat(128), 'a'.repeat(129), '%2e%2e', 'a%2Fb', 'a/b', 'ü', 'a%00', '%'],
)
const names = mostly(
  ['app'],
  ['victim', 'nope', '..', '.', '%2e%2e', 'A', 'a'.repeat(253), 'a'.repeat(254), '', 'a%2Fb', '%00', 'ü', 'app%20', '__proto__', 'app.'],
)
const namespaces = mostly(
  ['apps'],
  ['other', 'default', 'oarlock-system', '..', '%2e%2e', '', 'a'.repeat(64), 'APPS', '%61pps', 'apps%2F', '*'],
)
const runs = mostly(
  ['run-1', 'run-1', 'run-2'],
  ['run-3', '..', '%2e%2e', '', 'a'.repeat(253), 'a'.repeat(254), 'RUN', 'run-1%00', '-', 'r%2F1'],
)

const query = (values: Record<string, string | undefined>) => {
  const pairs = Object.entries(values).flatMap(([name, value]) => (value === undefined ? [] : [`${name}=${value}`]))
  return pairs.length === 0 ? '' : `?${pairs.join('&')}`
}
const optional = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined })

// Join service

const labels = oneOf<unknown[]>(
  undefined,
  {},
  { a: 'b' },
  { 'oarlock.dev/pool': 'x' },
  { a: 5 },
  [],
  'x',
  { [`${'a'.repeat(64)}`]: 'b' },
  { __proto__: 'x' },
  null,
)
const joinBody = fc.record({
  // Few are valid: each valid one creates a credential.
  token: fc.oneof(
    { weight: 1, arbitrary: oneOf<unknown[]>('$valid') },
    {
      weight: 12,
      arbitrary: oneOf<unknown[]>(
        ...[
          '$used',
          '$expired',
          '$changed',
          '$short',
          '',
          ' ',
          'oarlock1...',
          `oarlock1.${'a'.repeat(10)}.${'b'.repeat(43)}.${'c'.repeat(43)}`,
          5,
          null,
        ],
        ...[{}, [], true, 'x'.repeat(5_000), '\u0000', 'oarlock2.a.b.c', undefined],
      ),
    },
  ),
  name: oneOf<unknown[]>(
    undefined,
    '',
    'w',
    'oarlock-x',
    'default',
    'A',
    '..',
    'a'.repeat(200),
    'a'.repeat(201),
    'ü',
    5,
    null,
    {},
    'a/b',
    'w\n',
  ),
  labels,
})
const join = fc.oneof(
  {
    weight: 5,
    arbitrary: joinBody.map(
      (body): Valid => ({ method: 'POST', path: '/join', credentials: ['none', 'join-credential', 'worker'], body: json(body) }),
    ),
  },
  {
    weight: 2,
    arbitrary: oneOf<Valid[]>({ method: 'POST', path: '/join/renew', credentials: ['join-credential', 'worker', 'editor', 'none'] }),
  },
  { weight: 1, arbitrary: oneOf<Valid[]>({ method: 'GET', path: '/join/ca', credentials: ['none'] }) },
)

// State store

const state = oneOf(...[1, 2, 3, 4, 5].map(serial => json({ version: 4, serial, resources: [{ type: 'null' }] })), '{}', ' {"serial":6} ')
const lockId = oneOf('lock-1', 'lock-1', 'lock-2', '', 'x'.repeat(256), 'x'.repeat(257), '%00', 'a%20b', '__proto__')
const lockInfo = fc
  .record(
    {
      ID: oneOf<unknown[]>('lock-1', 'lock-2', '', 5, 'x'.repeat(256), 'x'.repeat(257), '\u0000', '\u001b[2J', null, '😀'),
      Operation: oneOf<unknown[]>('OperationTypeApply', 5, {}),
      Who: oneOf<unknown[]>('jane@host', 'x'.repeat(5_000), '\ud800', [], '\r\nSet-Cookie: a=b'),
      Created: oneOf<unknown[]>('2026-01-01T00:00:00Z', 'yesterday', 5, '+275761-01-01T00:00:00Z'),
      Path: oneOf<unknown[]>('', 5),
    },
    { requiredKeys: ['ID'] },
  )
  .map(json)
const pulumiState = oneOf(
  ...[3, 4, 5].map(version => json({ version, deployment: { resources: [{ urn: `urn:pulumi:a::b::c::${version}` }] } })),
  ...['{"version":3,"deployment":null}', json({ version: 3, deployment: { resources: [{ urn: 1 }] } }), '{"version":3}'],
  `{"version":3,"deployment":{"x":${'['.repeat(600)}${']'.repeat(600)}}}`,
)
const users = ['editor', 'editor', 'stack-token']
const backend = fc
  .record({
    namespace: namespaces,
    name: names,
    id: optional(lockId),
    kind: mostly<string | undefined>([undefined, undefined, 'pulumi'], ['inventory', '', 'x']),
    method: oneOf('GET', 'POST', 'DELETE', 'LOCK', 'UNLOCK', 'HEAD'),
    state: fc.oneof(state, pulumiState),
    lockInfo,
  })
  .map(({ namespace, name, id, kind, method, state, lockInfo }): Valid => {
    const body = method === 'POST' ? state : method === 'LOCK' || method === 'UNLOCK' ? lockInfo : ''
    return { method, path: `/state/${namespace}/${name}${query({ ID: id, kind })}`, credentials: users, body }
  })
const journalEntry = fc.record({
  version: mostly<unknown>([1], [2, null, '1']),
  kind: mostly<unknown>([0, 1, 1, 1, 2, 3, 4], [5, 6, 7, 8, 9, 10, -1, 'Begin', null, 0.5]),
  sequenceID: mostly<unknown>([1, 2, 3, 4, 5, 6], [0, -1, 1.5, '1', null, 1e300]),
  operationID: mostly<unknown>([0, 1, 2, 3], [-1, '1', null, {}]),
  state: mostly<unknown>([{ urn: 'urn:pulumi:a::b::c::d', type: 'c' }, undefined], [null, {}, [], 'x', { urn: 'x', aliases: ['x', 'x'] }]),
  removeOld: mostly<unknown>([undefined, null, 0], [1, 7, '0', -1]),
  removeNew: mostly<unknown>([undefined, null, 1], [99, {}]),
  newSnapshot: oneOf<unknown[]>(undefined, undefined, {}, { resources: [{}] }),
})
const journal = fc.oneof(
  { weight: 5, arbitrary: fc.array(journalEntry, { maxLength: 4 }).map(entries => json({ entries })) },
  {
    weight: 1,
    arbitrary: oneOf('', '{}', '{"entries":{}}', '{"entries":[[]]}', '{"entries":[{}],"entries":[]}', '\u0000', '{"entries":['.repeat(50)),
  },
)
const values = oneOf(
  '{"values":[]}',
  '{"values":["YQ==",""]}',
  '{"values":["AQ=="]}',
  '{"values":[1]}',
  '{"values":"x"}',
  'null',
  '',
  '{"values":["ü"]}',
)
const pulumiPath = fc
  .record({
    ...{ namespace: namespaces, name: names, run: runs, update: numbers, state: pulumiState, journal, values },
    resource: oneOf('pulumi', 'journal', 'journal', 'journal', 'complete', 'encrypt', 'decrypt', 'nope'),
    epoch: mostly(['1', '1', '1', '2'], wrongCounts),
    cliVersion: mostly(['3.260.0'], ['', 'x'.repeat(65), '3 260', '<b>']),
    isRead: fc.boolean(),
  })
  .map(({ namespace, name, run, update, state, journal, values, resource, epoch, cliVersion, isRead }): Valid => {
    const headers = [['Oarlock-Epoch', epoch] as const, ['Oarlock-Pulumi-Version', cliVersion] as const]
    const path =
      { journal: `journal/${update}`, complete: `journal/${update}/complete`, nope: `journal/${update}/nope` }[resource as string] ??
      resource
    const method = resource !== 'pulumi' ? 'POST' : isRead ? 'GET' : 'PUT'
    const body =
      method === 'GET' || resource === 'complete' ? '' : resource === 'pulumi' ? state : resource === 'journal' ? journal : values
    const credentials = ['worker', 'worker', 'worker', 'ended-worker', 'other-worker']
    return { method, path: `/state/${namespace}/${name}/run/${run}/${path}`, credentials, body, headers }
  })
const runPath = fc
  .record({
    namespace: namespaces,
    name: names,
    run: runs,
    resource: oneOf('state', 'state', 'incomplete', 'inventory', 'lock', 'unlock', 'nope', '', 'state/x'),
    epoch: optional(mostly(['1', '1', '1', '2'], wrongCounts)),
    sequence: optional(numbers),
    state,
    isRead: fc.boolean(),
  })
  .map(({ namespace, name, run, resource, epoch, sequence, state, isRead }): Valid => {
    const headers = [
      ...(epoch === undefined ? [] : [['Oarlock-Epoch', epoch] as const]),
      ...(sequence === undefined ? [] : [['Oarlock-Sequence', sequence] as const]),
    ]
    const method = resource === 'lock' || resource === 'unlock' ? 'POST' : isRead ? 'GET' : 'PUT'
    const credentials = ['worker', 'worker', 'worker', 'ended-worker', 'other-worker']
    return { method, path: `/state/${namespace}/${name}/run/${run}/${resource}`, credentials, body: method === 'PUT' ? state : '', headers }
  })
const stateQuery = fc
  .record({
    namespace: namespaces,
    name: names,
    resource: oneOf('lock', 'token', 'versions', 'orphans', 'versions/', 'orphans/', 'data', 'nope'),
    number: numbers,
    uid: optional(oneOf('$uid', 'x', '', '%00')),
  })
  .map(({ namespace, name, resource, number, uid }): Valid => {
    const section = resource.endsWith('/') ? resource + number : resource
    const method = resource === 'data' ? 'DELETE' : 'GET'
    return { method, path: `/state/${namespace}/${name}/${section}${query({ uid })}`, credentials: [...users, 'worker'] }
  })
const stateRequest = fc.oneof(
  { weight: 3, arbitrary: backend },
  { weight: 4, arbitrary: runPath },
  { weight: 4, arbitrary: pulumiPath },
  { weight: 2, arbitrary: stateQuery },
)

// Plans

const plan = fc
  .record({
    namespace: namespaces,
    name: names,
    run: runs,
    digest: digests,
    epoch: optional(mostly(['1', '1', '2'], wrongCounts)),
    kind: fc.nat(2),
    body: bytes(200),
  })
  .map(({ namespace, name, run, digest, epoch, kind, body }): Valid => {
    if (kind === 0) return { method: 'GET', path: `/state/${namespace}/${name}/plan/${digest}`, credentials: [...users, 'worker', 'guest'] }
    const headers = epoch === undefined ? [] : [['Oarlock-Epoch', epoch] as const]
    const credentials = ['worker', 'worker', 'ended-worker', 'other-worker']
    const path = `/state/${namespace}/${name}/run/${run}/plan/${digest}`
    return kind === 1 ? { method: 'PUT', path, credentials, body, headers } : { method: 'GET', path, credentials, headers }
  })

// Logs

const logs = fc
  .record({
    namespace: namespaces,
    // Logs exist for Runs that do not: with the right for all Stacks of the namespace.
    run: fc.oneof({ weight: 3, arbitrary: runs }, { weight: 1, arbitrary: fc.nat(20).map(number => `log-${number}`) }),
    offset: optional(numbers),
    tail: optional(numbers),
    follow: optional(oneOf('1', 'true', '0', 'x')),
    end: optional(oneOf('0', '0', '0', '1')),
    append: fc.boolean(),
    text: oneOf(
      'a line\n',
      'half',
      '\x1b[31mred\x1b[0m\r\n',
      '\0\0\n',
      '\xff\xfe\n',
      'é\n',
      `${'x'.repeat(70_000)}\n`,
      '\n'.repeat(500),
      '',
    ),
  })
  .map(({ namespace, run, offset, tail, follow, end, append, text }): Valid => {
    const path = `/logs/${namespace}/${run}`
    if (append)
      return {
        method: 'POST',
        path: path + query({ offset: offset ?? '0', end }),
        credentials: ['worker', 'worker', 'editor', 'ended-worker'],
        body: utf8(text),
      }
    return { method: 'GET', path: path + query({ offset, tail, follow }), credentials: ['editor', 'editor', 'guest', 'worker'] }
  })

// Heartbeat of a worker: its Lease and its Worker

const workerNames = mostly(
  ['active'],
  ['victim', 'nope', '..', '%2e%2e', 'A', 'a'.repeat(254), '', 'a%2Fb', '%00', 'active%20', 'active/status', 'oarlock-controllers'],
)
const micro = '2026-11-23T00:00:00.000000Z'
const times = mostly<unknown>(
  [micro, '2026-11-23T00:00:01.000000Z', '2026-11-23T23:59:59.999999Z'],
  [
    ...['2026-11-23T00:00:00Z', '2026-02-30T00:00:00.000000Z', '0000-01-01T00:00:00.000000Z', '9999-12-31T23:59:60.000000Z', 'now', ''],
    ...[null, 0, 1e308, true, {}, [micro], `${micro}\u0000`, '2026-11-23T00:00:00.000000+25:00', 'x'.repeat(5_000)],
  ],
)
const patchHeaders = mostly(
  ['application/merge-patch+json'],
  [
    ...['application/json-patch+json', 'application/strategic-merge-patch+json', 'application/apply-patch+yaml', 'application/json', ''],
    ...['application/merge-patch+json; charset=utf-16', 'text/html'],
  ],
).map(type => [['Content-Type', type]] as const)
const leases = '/apis/coordination.k8s.io/v1/namespaces'
const workersPath = '/apis/oarlock.dev/v1alpha1/workers'
const leaseFields = fc.record(
  {
    renewTime: times,
    acquireTime: times,
    holderIdentity: oneOf<unknown[]>('active', 'victim', '', 5, null, 'x'.repeat(5_000)),
    leaseDurationSeconds: oneOf<unknown[]>(10, 0, -1, 1.5, '10', null, 2_147_483_648, 1e308),
    leaseTransitions: oneOf<unknown[]>(0, -1, null, 9_007_199_254_740_992),
  },
  { requiredKeys: ['renewTime'] },
)
const heartbeatUsers = [...Array<string>(10).fill('worker'), 'other-worker', 'guest']
const objectMetadata = {
  uid: oneOf<unknown[]>('', 'x', null, 5, '0f8fad5b-d9cb-469f-a165-708677289500'),
  resourceVersion: oneOf<unknown[]>('1', 'x', 5, null, '9'.repeat(40)),
  annotations: oneOf<unknown[]>({ a: 'b' }, { a: 5 }, null, [], { __proto__: { a: 'b' } }),
  managedFields: oneOf<unknown[]>([], null, [{}], [{ manager: 'x', operation: 'Update', fieldsType: 'FieldsV1', fieldsV1: { a: 5 } }]),
}
const missingOwner = { apiVersion: 'v1', kind: 'Namespace', name: 'apps', uid: 'x' }
const leaseMetadata = fc.record(
  {
    ...objectMetadata,
    finalizers: oneOf<unknown[]>([], null, ['x'], 'x', [5]),
    ownerReferences: oneOf<unknown[]>([], null, [{}], [missingOwner]),
  },
  { requiredKeys: [] },
)
// The Worker remains: without it, everything else would be rejected.
const workerMetadata = fc.record(
  { ...objectMetadata, finalizers: oneOf<unknown[]>(['x'], 'x', [5]), ownerReferences: oneOf<unknown[]>([], null, [{}], 'x') },
  { requiredKeys: [] },
)
const leaseNamespaces = mostly(['oarlock-system'], ['apps', 'default', 'oarlock-workers', '..', '', '%00'])
const lease = fc
  .record({
    name: workerNames,
    namespace: leaseNamespaces,
    spec: leaseFields,
    metadata: leaseMetadata,
    kind: fc.nat(9),
    headers: patchHeaders,
  })
  .map(({ name, namespace, spec, metadata, kind, headers }): Valid => {
    const collection = `${leases}/${namespace}/leases`
    const path = `${collection}/${name}`
    const credentials = heartbeatUsers
    const object = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { ...metadata, name }, spec }
    // Valid, because other requests delete it.
    if (kind === 0) {
      const created = { ...object, metadata: { name }, spec: { holderIdentity: 'active', renewTime: micro } }
      return { method: 'POST', path: collection, credentials, body: json(created) }
    }
    if (kind === 1) return { method: 'PUT', path, credentials, body: json(object) }
    if (kind === 2) return { method: 'GET', path, credentials }
    // As the heartbeat's thread sends it, and with more than that.
    const patch = kind < 7 ? { spec: { renewTime: spec.renewTime } } : { metadata, spec }
    return { method: 'PATCH', path, credentials, body: json(patch), headers }
  })
const workerStatus = fc.record(
  {
    phase: oneOf<unknown[]>('Ready', 'Busy', 'Draining', 'Pending', 'Starting', 'Failed', 'Lost', '', 5, null),
    runs: oneOf<unknown[]>([], null, [{}], [{ namespace: 'other', name: 'run-1', uid: 'x' }], 'x', [5], Array(2_000).fill({ name: 'r' })),
    idleSince: times,
    host: oneOf<unknown[]>('host', '', 5, '\u001b[2J', 'x'.repeat(70_000)),
    pid: oneOf<unknown[]>(1, 0, -1, 1.5, 2_147_483_648, '1', null),
    engines: oneOf<unknown[]>({ tofu: '1.10.0' }, { tofu: null }, { tofu: 5 }, [], { __proto__: { a: 'b' } }),
    capacity: oneOf<unknown[]>({ cpu: '2', memory: '1Gi' }, { cpu: 2 }, { memory: '1e400' }, { memory: '-1' }, null),
    agent: oneOf<unknown[]>('a', '', 5),
    message: oneOf<unknown[]>('m', '\u0000', null, {}),
  },
  { requiredKeys: [] },
)
const workerObject = fc
  .record({ name: workerNames, status: workerStatus, metadata: workerMetadata, kind: fc.nat(9), headers: patchHeaders })
  .map(({ name, status, metadata, kind, headers }): Valid => {
    const credentials = heartbeatUsers
    const path = `${workersPath}/${name}`
    const spec = { pool: 'edge', slots: 1, lifecycle: 'Warm' }
    if (kind === 0) return { method: 'GET', path, credentials }
    if (kind === 1) return { method: 'PATCH', path, credentials, body: json({ metadata, spec: { drain: false, start: true } }), headers }
    if (kind === 2) return { method: 'POST', path: workersPath, credentials, body: json({ metadata: { ...metadata, name }, spec, status }) }
    return { method: 'PATCH', path: `${path}/status`, credentials, body: json({ status }), headers }
  })
const heartbeat = fc.oneof({ weight: 3, arbitrary: lease }, { weight: 2, arbitrary: workerObject })

// Queue, backup, key rotation, metrics, health

const queue = fc
  .record({
    pool: optional(oneOf('edge', 'default', '', '%00', '__proto__', 'x'.repeat(5_000))),
    namespace: optional(oneOf('apps', '', 'other', '%2e%2e')),
    limit: optional(numbers),
    other: optional(oneOf('1', '')),
  })
  .map(
    ({ pool, namespace, limit, other }): Valid => ({
      method: 'GET',
      path: `/queue${query({ pool, namespace, limit, other })}`,
      credentials: ['admin', 'editor', 'guest', 'worker'],
    }),
  )
const others = fc.oneof(
  { weight: 20, arbitrary: queue },
  {
    weight: 1,
    arbitrary: fc
      .constantFrom('/backup', '/state/backup', '/logs/backup')
      .map((path): Valid => ({ method: 'GET', path, credentials: ['admin', 'editor', 'guest', 'worker', 'none'] })),
  },
  {
    weight: 1,
    arbitrary: oneOf<Valid[]>({
      method: 'POST',
      path: '/encryption/rotate?removeOldKeys=x',
      credentials: ['editor', 'guest', 'worker', 'none'],
    }),
  },
  {
    weight: 12,
    arbitrary: fc
      .tuple(
        oneOf(
          '/',
          '/metrics',
          '/healthz',
          '/livez',
          '/readyz',
          '/startupz',
          '/version',
          '/favicon.ico',
          '/readyz?verbose',
          '/metrics?name[]=x',
        ),
        fc.nat(9),
      )
      .map(([path, kind]): Valid => ({ method: kind === 0 ? 'HEAD' : 'GET', path, credentials: ['none', 'none', 'admin', 'guest'] })),
  },
  { weight: 4, arbitrary: backend.map((valid): Valid => ({ ...valid, credentials: ['none', 'guest', 'expired'] })) },
)

const storeAddresses = ['api', 'api', 'socket', 'stores']
export const targets: readonly Target[] = [
  { name: 'join', mode: 'stores', requests: mutated(join, ['api', 'api', 'socket', 'join']) },
  { name: 'state', mode: 'stores', requests: mutated(stateRequest, storeAddresses) },
  { name: 'plan', mode: 'stores', requests: mutated(plan, storeAddresses) },
  { name: 'log', mode: 'stores', requests: mutated(logs, storeAddresses) },
  { name: 'heartbeat', mode: 'stores', requests: mutated(heartbeat, ['api', 'api', 'socket']) },
  { name: 'queue, backup, metrics', mode: 'up', requests: mutated(others, ['api', 'plain', 'plain', 'socket']) },
]
