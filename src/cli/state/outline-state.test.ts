import assert from 'node:assert/strict'
import { test } from 'node:test'
import { asNewest, masked, outlineState, whyNotNewer } from './outline-state.ts'

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

test('an outline has addresses and outputs; no attribute and no sensitive value', () => {
  const outline = outlineState(state(7))
  assert.deepEqual(
    outline.resources.map(({ address }) => address),
    ['aws_db_instance.main', 'module.net.null_resource.n[0]', 'module.net.null_resource.n["a"]', 'data.http.d'],
  )
  assert.deepEqual(outline.outputs, { url: { value: 'http://x', sensitive: false }, password: { value: masked, sensitive: true } })
  assert.equal(JSON.stringify(outline).includes('hunter22'), false)
  assert.deepEqual(outlineState('{"token":"hunter22","made":1}'), {
    format: 'unknown',
    resources: [],
    outputs: {},
    keys: ['made', 'token'],
  })
  assert.throws(() => outlineState('[1]'), /not a JSON object/)
})

test('a version that comes back gets a serial above the current one', () => {
  assert.equal(JSON.parse(asNewest(state(3), state(9))).serial, 10)
  assert.equal(JSON.parse(asNewest(state(12), state(9))).serial, 12)
  assert.equal(asNewest('{"a":1}', state(9)), '{"a":1}')
})

test('a push of another or an older history is told', () => {
  assert.equal(whyNotNewer(state(9), state(9)), undefined)
  assert.match(whyNotNewer(state(8), state(9)) ?? '', /serial is 8, and that of the current state is 9/)
  assert.match(whyNotNewer(state(9, { lineage: 'l-2' }), state(9)) ?? '', /lineage is l-2/)
  assert.equal(whyNotNewer(state(1), ''), undefined)
})
