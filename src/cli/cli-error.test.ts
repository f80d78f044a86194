import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { ConnectionError } from '../kubernetes/client/index.ts'
import { invalid, notFound, StatusError } from '../kubernetes/object/index.ts'
import { CliError, formatError, usageError } from './cli-error.ts'

const stack = { group: 'oarlock.dev', plural: 'stacks', kind: 'Stack' }

for (const [name, error, exitCode, message, details] of [
  ['a CliError', new CliError('no', { exitCode: 6 }), 6, 'no', []],
  ['an invalid command line', usageError('what?'), 2, 'what?', []],
  ['a missing object', notFound(stack, 'a'), 3, 'stacks.oarlock.dev "a" not found', []],
  [
    'an invalid object, one line per field',
    invalid(stack, 'a', [{ reason: 'FieldValueInvalid', field: 'spec.engine', message: 'must be one of terraform' }]),
    4,
    'Stack "a" is invalid',
    ['spec.engine: must be one of terraform'],
  ],
  ['a rejected request', new StatusError('Forbidden', 'not you'), 4, 'not you', []],
  ['a failing server', new StatusError('InternalError', 'broken'), 1, 'broken', []],
  ['a missing kubeconfig', new TypeError('no kubeconfig found: x'), 5, 'no kubeconfig found: x', []],
  ['anything else', new Error('boom'), 1, 'boom', []],
] as const) {
  test(`formatError() handles ${name}`, () => {
    const formatted = formatError(error)
    deepEqual([formatted.exitCode, formatted.message, formatted.details], [exitCode, message, details])
  })
}

test('formatError() suggests "oarlock up" when no server is reachable', () => {
  const formatted = formatError(
    new ConnectionError('https://127.0.0.1:1', 'GET /api', Object.assign(new Error('x'), { code: 'ECONNREFUSED' })),
  )
  deepEqual([formatted.exitCode, formatted.hint?.includes('oarlock up')], [5, true])
})
