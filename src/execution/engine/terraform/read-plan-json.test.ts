import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { readPlanJson } from './read-plan-json.ts'

const fixture = (name: string): Record<string, unknown> =>
  JSON.parse(readFileSync(new URL(`fixtures/${name}.json`, import.meta.url), 'utf8'))
const state = { serial: 3, lineage: 'l' }

for (const { name, want, summary } of [
  {
    name: 'plan-create',
    want: [3, 0, 0],
    summary: ['+ terraform_data.part[0]', '+ terraform_data.part[1]', '+ terraform_data.secret', '+ output parts', '+ output password'],
  },
  {
    name: 'plan-replace',
    want: [1, 1, 2],
    summary: [
      '-/+ terraform_data.part[0] (id, output)',
      '- terraform_data.part[1]',
      '~ terraform_data.secret (input, output)',
      '~ output parts',
      '~ output password',
    ],
  },
  {
    name: 'plan-destroy',
    want: [0, 0, 3],
    summary: ['- terraform_data.part[0]', '- terraform_data.part[1]', '- terraform_data.secret', '- output parts', '- output password'],
  },
]) {
  test(`${name} adds ${want[0]}, changes ${want[1]}, destroys ${want[2]}`, () => {
    const reading = readPlanJson(fixture(name), state)
    assert.deepEqual([reading.add, reading.change, reading.destroy, reading.hasChanges], [...want, true])
    assert.deepEqual(reading.summary, summary)
  })
}

test('the digest covers the changes and everything they depend on', () => {
  const plan = fixture('plan-replace')
  const { digest } = readPlanJson(plan, state)
  assert.equal(readPlanJson({ ...plan, timestamp: 'later' }, { ...state }).digest, digest, 'the digest does not cover the timestamp')
  assert.notEqual(readPlanJson(plan, { ...state, serial: 4 }).digest, digest)
  assert.notEqual(readPlanJson({ ...plan, variables: {} }, state).digest, digest)
  assert.notEqual(readPlanJson({ ...plan, output_changes: {} }, state).digest, digest)
  assert.notEqual(readPlanJson(plan, undefined).digest, readPlanJson({ ...plan, prior_state: {} }, undefined).digest)
})

test('rejects a document that is not a plan', () => {
  assert.throws(() => readPlanJson({}, state), TypeError)
})
