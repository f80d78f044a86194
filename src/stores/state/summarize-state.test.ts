import assert from 'node:assert/strict'
import { test } from 'node:test'
import { lineageOf, masked, replacementConflict, summarizeState, withNewerSerial } from './summarize-state.ts'

const state = (serial: number, more: object = {}) =>
  JSON.stringify({
    ...{ version: 4, terraform_version: '1.11.4', serial, lineage: 'l-1' },
    outputs: { url: { value: 'http://x', type: 'string' }, password: { value: 'hunter22', type: 'string', sensitive: true } },
    resources: [
      {
        ...{ mode: 'managed', type: 'aws_db_instance', name: 'main', provider: 'provider["registry.terraform.io/hashicorp/aws"]' },
        instances: [{ attributes: { password: 'hunter22' } }],
      },
      {
        ...{ module: 'module.net', mode: 'managed', type: 'null_resource', name: 'n', provider: 'provider["p"]' },
        instances: [
          { index_key: 0, attributes: {} },
          { index_key: 'a', attributes: {} },
        ],
      },
      { mode: 'data', type: 'http', name: 'd', provider: 'provider["p"]', instances: [{}] },
    ],
    ...more,
  })

test('a summary contains addresses and outputs, but no attribute and no sensitive value', () => {
  const summary = summarizeState(state(7))
  assert.deepEqual(
    summary.resources.map(({ address }) => address),
    ['aws_db_instance.main', 'module.net.null_resource.n[0]', 'module.net.null_resource.n["a"]', 'data.http.d'],
  )
  assert.deepEqual(summary.outputs, { url: { value: 'http://x', sensitive: false }, password: { value: masked, sensitive: true } })
  assert.equal(JSON.stringify(summary).includes('hunter22'), false)
  assert.deepEqual(summarizeState('{"token":"hunter22","made":1}'), {
    format: 'unknown',
    resources: [],
    outputs: {},
    keys: ['made', 'token'],
  })
  assert.throws(() => summarizeState('[1]'), /not a JSON object/)
})

test('an object that another one has replaced, and that is not deleted yet, is marked as such', () => {
  const resources = [{ mode: 'managed', type: 'a', name: 'b', instances: [{ index_key: 0 }, { index_key: 0, deposed: '0a1b2c3d' }] }]
  const pulumi = { version: 3, deployment: { resources: [{ urn: 'urn:x' }, { urn: 'urn:x', delete: true }] } }
  for (const [content, addresses] of [
    [state(1, { resources }), ['a.b[0]', 'a.b[0] (deposed 0a1b2c3d)']],
    [JSON.stringify(pulumi), ['urn:x', 'urn:x (to be deleted)']],
  ] as const)
    assert.deepEqual(
      summarizeState(content).resources.map(({ address }) => address),
      addresses,
    )
})

test('a restored version gets a serial above the current one', () => {
  assert.equal(JSON.parse(withNewerSerial(state(3), state(9))).serial, 10)
  assert.equal(JSON.parse(withNewerSerial(state(12), state(9))).serial, 12)
  assert.equal(withNewerSerial('{"a":1}', state(9)), '{"a":1}')
})

test('reports another lineage or a lower serial as a conflict', () => {
  assert.equal(replacementConflict(state(9), state(9)), undefined)
  assert.match(replacementConflict(state(8), state(9)) ?? '', /serial is 8, but the current state has serial 9/)
  assert.match(replacementConflict(state(9, { lineage: 'l-2' }), state(9)) ?? '', /lineage is l-2/)
  assert.equal(replacementConflict(state(1), ''), undefined)
})

const ofPulumi = (stack: string, outputs: object = {}) =>
  JSON.stringify({
    version: 3,
    deployment: {
      manifest: { time: '', magic: '', version: '3.260.0' },
      resources: [
        {
          urn: `urn:pulumi:${stack}::shop::pulumi:pulumi:Stack::shop-${stack}`,
          type: 'pulumi:pulumi:Stack',
          outputs,
          additionalSecretOutputs: ['token'],
        },
        {
          urn: `urn:pulumi:${stack}::shop::a:b:C::x`,
          type: 'a:b:C',
          provider: `urn:pulumi:${stack}::shop::pulumi:providers:a::default::id`,
          inputs: { p: 'hunter22' },
        },
      ],
      pending_operations: [{ type: 'creating', resource: { urn: 'urn:y' } }],
    },
  })

test('a summary of a state of Pulumi contains URNs, pending operations and outputs, but no input and no secret output', () => {
  const secret = { '4dabf18193072939515e22adb298388d': '1b47061264138c4ac30d75fd1eb44270', ciphertext: 'x' }
  const summary = summarizeState(ofPulumi('dev', { url: 'http://x', token: 'hunter22', nested: { list: [secret] } }))
  assert.deepEqual(
    summary.resources.map(({ address, provider }) => [address, provider]),
    [
      ['urn:pulumi:dev::shop::pulumi:pulumi:Stack::shop-dev', ''],
      ['urn:pulumi:dev::shop::a:b:C::x', 'a'],
    ],
  )
  assert.deepEqual([summary.stack, summary.engineVersion, lineageOf(summary)], ['shop/dev', '3.260.0', 'pulumi:shop/dev'])
  assert.deepEqual(summary.pendingOperations, [{ type: 'creating', address: 'urn:y' }])
  assert.deepEqual(summary.outputs, {
    url: { value: 'http://x', sensitive: false },
    token: { value: masked, sensitive: true },
    nested: { value: masked, sensitive: true },
  })
  assert.equal(JSON.stringify(summary).includes('hunter22'), false)
})

test('the state of another stack of Pulumi is a conflict', () => {
  assert.equal(replacementConflict(ofPulumi('dev'), ofPulumi('dev')), undefined)
  assert.match(
    replacementConflict(ofPulumi('prod'), ofPulumi('dev')) ?? '',
    /of Pulumi stack shop\/prod, but the current state of shop\/dev/,
  )
  assert.equal(withNewerSerial(ofPulumi('dev'), ofPulumi('dev')), ofPulumi('dev'))
})
