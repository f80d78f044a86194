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
const users = ['editor', 'editor', 'stack-token']
const backend = fc
  .record({
    namespace: namespaces,
    name: names,
    id: optional(lockId),
    method: oneOf('GET', 'POST', 'DELETE', 'LOCK', 'UNLOCK', 'HEAD'),
    state,
    lockInfo,
  })
  .map(({ namespace, name, id, method, state, lockInfo }): Valid => {
    const body = method === 'POST' ? state : method === 'LOCK' || method === 'UNLOCK' ? lockInfo : ''
    return { method, path: `/state/${namespace}/${name}${query({ ID: id })}`, credentials: users, body }
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
const stateRequest = fc.oneof({ weight: 3, arbitrary: backend }, { weight: 4, arbitrary: runPath }, { weight: 2, arbitrary: stateQuery })

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

// Queue, backup, key rotation, metrics, health, status page

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
  { weight: 1, arbitrary: oneOf<Valid[]>({ method: 'GET', path: '/backup', credentials: ['admin', 'editor', 'guest', 'none'] }) },
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
  { name: 'queue, backup, status page', mode: 'up', requests: mutated(others, ['api', 'plain', 'plain', 'socket']) },
]
