import fc from 'fast-check'
import { bytes, type EndpointRequest, json, mostly, mutated, oneOf, type Valid } from './endpoint-request.ts'

/** Requests of the Pulumi CLI, valid ones and changed ones. `$update`, `$preview` and `$created` stand for ids; `$run`, `$lease` and `$look` for tokens. */

const names = mostly(
  ['apps/web/dev'],
  ['apps/web/prod', 'apps/web/none', 'other/db/dev', '../../x', 'apps/web/..', 'a/b/__proto__', 'apps/web/%2e%2e'],
)
const updates = mostly(['$update', '$update', '$preview'], ['$created', 'none', '..', '__proto__', '', '0'.repeat(36)])
const value = fc.oneof(fc.jsonValue({ maxDepth: 3 }), oneOf(null, 1e308, -0, 2 ** 53, '', [], {}, [null], '\u0000', 'x'.repeat(20_000)))
const base64 = fc.oneof(
  bytes(60).map(text => Buffer.from(text, 'latin1').toString('base64')),
  oneOf<unknown[]>('', '!', 'YQ', 'YXBwcy93ZWIvZGV2Og==', null, 5),
)
const texts = fc.oneof(fc.dictionary(fc.string({ maxLength: 10 }), fc.string({ maxLength: 10 })), value)
const resource = fc.record({ urn: oneOf<unknown[]>('urn:pulumi:dev::web::t::n', '', 5), outputs: value }, { requiredKeys: [] })
const deployment = fc.oneof(
  fc.record({ manifest: value, resources: fc.array(resource, { maxLength: 3 }), secrets_providers: value }, { requiredKeys: [] }),
  value,
)
const untyped = fc.oneof(fc.record({ version: oneOf<unknown[]>(3, 4, 5, '3'), deployment }), value)
const entry = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ version: fc.constant(1), kind: fc.nat(11), sequenceID: fc.nat(1_000), operationID: fc.nat(9), state: value }),
  },
  { weight: 1, arbitrary: value },
)
const point = fc.record({ line: value, column: value, offset: fc.oneof(fc.integer({ min: -5, max: 200 }), value) }, { requiredKeys: [] })
const edit = fc.record({ Span: fc.record({ start: point, end: point }, { requiredKeys: [] }), NewText: value }, { requiredKeys: [] })
const eventNames = [
  'resourcePreEvent',
  'resOutputsEvent',
  'resOpFailedEvent',
  'diagnosticEvent',
  'summaryEvent',
  'policyEvent',
  'stdoutEvent',
]
const event = fc.oneof(
  fc.record({ sequence: value, timestamp: value, each: fc.tuple(oneOf(...eventNames), value) }).map(({ each, ...rest }) => ({
    ...rest,
    [each[0]]: each[1],
  })),
  value,
)
const sequenceNumber = fc.oneof(fc.nat(20), value)
const checkpointHash = oneOf<unknown[]>('a'.repeat(64), '', 5, 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855')

const run = ['$run', '$run', '$run', '$run', '$lease']
const lease = ['$lease', '$lease', '$lease', '$look', '$run']

const valid = (
  method: string,
  path: fc.Arbitrary<string>,
  credentials: readonly string[],
  body?: fc.Arbitrary<unknown>,
): fc.Arbitrary<Valid> =>
  fc.record({ path, body: body ?? fc.constant(undefined) }).map(each => ({
    ...{ method, path: each.path, credentials },
    ...(body && { body: json(each.body), headers: [['Content-Type', 'application/json']] as const }),
  }))
const atStack = (suffix: string) => names.map(name => `/api/stacks/${name}${suffix}`)
const atUpdate = (suffix: string) => fc.tuple(names, updates).map(([name, update]) => `/api/stacks/${name}/update/${update}${suffix}`)
const programBody = fc.record(
  { name: value, config: value, options: fc.oneof(fc.constant({ dryRun: true }), value), metadata: value },
  { requiredKeys: [] },
)

const reads = [
  ...['/api/user', '/api/capabilities', '/api/cli/version', '/api/user/organizations/default', '/api/esc/environments', '/', '/api'].map(
    path => valid('GET', fc.constant(path), run),
  ),
  valid('GET', oneOf('/api/user/stacks', '/api/user/stacks?organization=apps&continuationToken=x', '/api/user/stacks?project=%zz'), run),
  valid('HEAD', oneOf('/api/stacks/apps/web', '/api/stacks/apps/none', '/api/stacks/apps'), run),
  valid(
    'GET',
    fc.oneof(
      ...['', '/export', '/export/1', '/export/-1', '/updates', '/updates?page=0&pageSize=1e9', '/updates/latest', '/policypacks'].map(
        atStack,
      ),
    ),
    run,
  ),
  valid('GET', atUpdate(''), run),
]
const changes = [
  valid(
    'POST',
    oneOf('/api/stacks/apps/web', '/api/stacks/apps/'),
    run,
    fc.record({ stackName: value, tags: texts, state: untyped }, { requiredKeys: [] }),
  ),
  valid('PATCH', atStack('/tags'), run, texts),
  valid('PUT', atStack('/config'), run, value),
  valid('POST', atStack('/import'), run, untyped),
  valid('POST', atStack('/encrypt'), run, fc.record({ plaintext: base64 })),
  valid('POST', atStack('/decrypt'), run, fc.record({ ciphertext: base64 })),
  valid('POST', atStack('/batch-encrypt'), run, fc.record({ plaintexts: fc.array(base64, { maxLength: 5 }) })),
  valid('POST', atStack('/batch-decrypt'), run, fc.record({ ciphertexts: fc.array(base64, { maxLength: 5 }) })),
  valid('POST', fc.oneof(...['/update', '/preview', '/refresh', '/destroy'].map(atStack)), run, programBody),
  valid('POST', atUpdate(''), run, fc.record({ tags: texts, journalVersion: fc.oneof(fc.constant(1), value) }, { requiredKeys: [] })),
]
const writes = [
  valid('PATCH', atUpdate('/journalentries'), lease, fc.record({ entries: fc.oneof(fc.array(entry, { maxLength: 4 }), value) })),
  valid(
    'PATCH',
    atUpdate('/checkpoint'),
    lease,
    fc.record({ isInvalid: value, version: value, features: value, deployment }, { requiredKeys: ['deployment'] }),
  ),
  valid('PATCH', atUpdate('/checkpointverbatim'), lease, fc.record({ version: value, untypedDeployment: untyped, sequenceNumber })),
  valid(
    'PATCH',
    atUpdate('/checkpointdelta'),
    lease,
    fc.record({ version: value, checkpointHash, sequenceNumber, deploymentDelta: fc.oneof(fc.array(edit, { maxLength: 3 }), value) }),
  ),
  valid('POST', atUpdate('/events/batch'), lease, fc.record({ events: fc.oneof(fc.array(event, { maxLength: 5 }), value) })),
  valid('POST', atUpdate('/renew_lease'), lease, fc.record({ token: value, duration: value })),
]
/** They end what the others work on. */
const ends = [
  valid('POST', atUpdate('/complete'), lease, fc.record({ status: oneOf<unknown[]>('succeeded', 'failed', 'cancelled', 'x', 5) })),
  valid('POST', atUpdate('/cancel'), run),
  valid('DELETE', atStack('?force=true'), run),
  valid('POST', atStack('/rename'), run, fc.record({ newName: value, newProject: value })),
]

export const pulumiRequests: fc.Arbitrary<EndpointRequest> = mutated(
  fc.oneof(
    { weight: 10, arbitrary: fc.oneof(...reads) },
    { weight: 20, arbitrary: fc.oneof(...changes) },
    { weight: 40, arbitrary: fc.oneof(...writes) },
    { weight: 1, arbitrary: fc.oneof(...ends) },
  ),
  ['pulumi'],
)
