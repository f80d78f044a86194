import { deepEqual, throws } from 'node:assert/strict'
import { test } from 'node:test'
import { dataVariables } from './inputs.ts'

const found = {
  kind: 'Secret',
  name: 'shop/credentials',
  texts: { 'aws-key': 'k', limits: '{"cpu":[1,2]}', broken: '{"password": hunter2' },
}
const variables = (reference: { keys?: Record<string, string>; format?: 'Text' | 'JSON' }) =>
  dataVariables({ name: 'credentials', ...reference }, 'spec.variablesFrom[0].secretRef', found)

test('every key is a variable with its text', () => deepEqual(Object.fromEntries(variables({})), found.texts))

test('keys are renamed, and others are left out', () =>
  deepEqual(variables({ keys: { 'aws-key': 'aws:secretKey' } }), [['aws:secretKey', 'k']]))

test('JSON values are parsed', () =>
  deepEqual(variables({ keys: { limits: 'shop:limits' }, format: 'JSON' }), [['shop:limits', { cpu: [1, 2] }]]))

test('a missing key is an error that lists the keys', () =>
  throws(() => variables({ keys: { region: 'aws:region' } }), {
    reason: 'KeyNotFound',
    message: 'spec.variablesFrom[0].secretRef.keys[region]: Secret shop/credentials has no key "region"; it has: aws-key, broken, limits',
  }))

test('a value that is not JSON is an error without the value', () =>
  throws(() => variables({ keys: { broken: 'x' }, format: 'JSON' }), {
    ...{ reason: 'InvalidConfiguration', retryable: false },
    message:
      'spec.variablesFrom[0].secretRef.format: key "broken" of Secret shop/credentials is not JSON; correct it (a JSON string has double quotes), or set format: Text',
  }))
