import { deepEqual, match } from 'node:assert/strict'
import { test } from 'node:test'
import { badRequest, StatusError } from '../kubernetes/object/index.ts'
import { explainRejection } from './explain-rejection.ts'

const stack = (spec: object) => ({ apiVersion: 'oarlock.dev/v1alpha1', kind: 'Stack', spec })
const unknown = (...fields: string[]) => badRequest(`strict decoding error: ${fields.map(field => `unknown field "${field}"`).join(', ')}`)

for (const [field, want] of [
  ['spec.intervall', /^spec\.intervall: unknown field, did you mean interval\?; allowed: engine, source,.*, interval,/],
  ['spec.source.git.bogus', /^spec\.source\.git\.bogus: unknown field; allowed: url, branch, tag, commit, directory, secretRef$/],
  ['spec.env[1].vaule', /did you mean value\?; allowed: name, value, secretKeyRef$/],
  ['spce', /did you mean spec\?; allowed: apiVersion, kind, metadata, spec, status$/],
] as const) {
  test(`lists the allowed fields for the unknown field ${field}`, () => {
    const lines = explainRejection(stack({}), unknown(field))
    match(lines.join('\n'), want)
  })
}

test('explains which part of a Stack makes a request too large', () => {
  const files = { 'main.tf': 'x'.repeat(600_000) }
  const lines = explainRejection(stack({ source: { inline: { files } } }), new StatusError('RequestEntityTooLarge', 'too long'))
  match(lines.join('\n'), /^spec\.source\.inline\.files: Too long: the files have 600000 bytes in total, may not be more than 524288/)
})

test('adds nothing for other kinds, other errors and fields without a schema', () => {
  deepEqual(explainRejection({ apiVersion: 'v1', kind: 'ConfigMap' }, unknown('dta')), [])
  deepEqual(explainRejection(stack({}), new Error('unknown field "a"')), [])
  deepEqual(explainRejection(stack({}), unknown('spec.variables.a.b')), [])
})
