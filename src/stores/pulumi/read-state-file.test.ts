import { deepEqual, throws } from 'node:assert/strict'
import { test } from 'node:test'
import { DeploymentError } from './deployment.ts'
import { readStateFile } from './read-state-file.ts'

const deployment = {
  manifest: { time: '', magic: '', version: '' },
  resources: [{ urn: 'urn:pulumi:dev::shop::pulumi:pulumi:Stack::shop-dev' }],
}

test('the export of a stack and a checkpoint of a file backend have the same state', () => {
  const want = { state: { version: 3, deployment }, stack: 'shop/dev' }
  deepEqual(readStateFile(JSON.stringify({ version: 3, deployment })), want)
  deepEqual(readStateFile(JSON.stringify({ version: 3, checkpoint: { stack: 'organization/shop/dev', latest: deployment } })), want)
  const features = { version: 4, features: ['taint'] }
  deepEqual(readStateFile(JSON.stringify({ ...features, checkpoint: { latest: deployment } })).state, { ...features, deployment })
})

test('a stack without an update has an empty state', () => {
  deepEqual(readStateFile('{"version":3,"deployment":null}'), { state: { version: 3, deployment: {} }, stack: undefined })
  deepEqual(readStateFile('{"version":3,"checkpoint":{"stack":"dev"}}'), { state: { version: 3, deployment: {} }, stack: undefined })
})

for (const { name, text, want } of [
  { name: 'text', text: 'x', want: /it is not JSON/ },
  { name: 'a state of Terraform', text: '{"version":4,"serial":1,"lineage":"l","resources":[]}', want: /a state of Terraform or OpenTofu/ },
  { name: 'another file', text: '{"name":"package"}', want: /not a state of Pulumi/ },
  { name: 'an old checkpoint', text: '{"version":2,"checkpoint":{"latest":{}}}', want: /version 2, supported are 3 and 4/ },
  { name: 'null', text: 'null', want: /not a JSON object/ },
])
  test(`${name} is rejected`, () =>
    throws(
      () => readStateFile(text),
      (error: Error) => error instanceof DeploymentError && want.test(error.message),
    ))
