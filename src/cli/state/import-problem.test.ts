import assert from 'node:assert/strict'
import { test } from 'node:test'
import { importProblem } from './import-problem.ts'

const state = { version: 4, terraform_version: '1.11.4', serial: 3, lineage: 'l', outputs: {}, resources: [] }

for (const { name, content, want } of [
  { name: 'a complete state', content: state, want: undefined },
  { name: 'no output of "state pull"', content: '\n', want: /there is no state/ },
  { name: 'text', content: 'Error: no state', want: /not JSON/ },
  { name: 'a list', content: [state], want: /not a JSON object/ },
  { name: 'an encrypted state', content: { serial: 1, lineage: 'l', encrypted_data: 'x' }, want: /encrypted/ },
  { name: 'a state of Pulumi', content: { version: 3, deployment: {} }, want: /state of Pulumi/ },
  { name: 'an older format', content: { ...state, version: 3 }, want: /format 3, only format 4/ },
  { name: 'another file', content: { name: 'package' }, want: /not a state of Terraform or OpenTofu/ },
  { name: 'a fractional serial', content: { ...state, serial: 1.5 }, want: /serial is not a whole number/ },
  { name: 'no lineage', content: { ...state, lineage: '' }, want: /no lineage/ },
  { name: 'a long lineage', content: { ...state, lineage: 'l'.repeat(257) }, want: /lineage has 257 characters/ },
  { name: 'no resources', content: { ...state, resources: undefined }, want: /no list of resources/ },
])
  test(`import: ${name} is ${want ? 'rejected' : 'accepted'}`, () => {
    const problem = importProblem(typeof content === 'string' ? content : JSON.stringify(content))
    if (want) assert.match(problem?.message ?? '', want)
    else assert.equal(problem, undefined)
  })
