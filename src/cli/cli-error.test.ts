import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { ConnectionError } from '../kubernetes/client/index.ts'
import { invalid, notFound, StatusError } from '../kubernetes/object/index.ts'
import { CliError, formatError, usageError } from './cli-error.ts'

const stack = { group: 'oarlock.dev', plural: 'stacks', kind: 'Stack' }

for (const [name, error, exitCode, message, details] of [
  ['its own errors', new CliError('no', { exitCode: 6 }), 6, 'no', []],
  ['a wrong command line', usageError('what?'), 2, 'what?', []],
  ['an object that is missing', notFound(stack, 'a'), 3, 'stacks.oarlock.dev "a" not found', []],
  [
    'an invalid object, one line per field',
    invalid(stack, 'a', [{ reason: 'FieldValueInvalid', field: 'spec.engine', message: 'must be one of terraform' }]),
    4,
    'Stack "a" is invalid',
    ['spec.engine: must be one of terraform'],
  ],
  ['a refusal', new StatusError('Forbidden', 'not you'), 4, 'not you', []],
  ['a server that fails', new StatusError('InternalError', 'broken'), 1, 'broken', []],
  ['a missing kubeconfig', new TypeError('no kubeconfig found: x'), 5, 'no kubeconfig found: x', []],
  ['anything else', new Error('boom'), 1, 'boom', []],
] as const) {
  test(`tell() knows ${name}`, () => {
    const told = formatError(error)
    deepEqual([told.exitCode, told.message, told.details], [exitCode, message, details])
  })
}

test('tell() sends people without a server to "oarlock up"', () => {
  const told = formatError(new ConnectionError('https://127.0.0.1:1', 'GET /api', Object.assign(new Error('x'), { code: 'ECONNREFUSED' })))
  deepEqual([told.exitCode, told.hint?.includes('oarlock up')], [5, true])
})
