import { equal, match, ok } from 'node:assert/strict'
import { test } from 'node:test'
import { workerExitCodes } from '../../execution/worker/index.ts'
import { describeFatalError, fatalExitCode } from './fatal-error.ts'

test('names the error, its code and where it was thrown', () => {
  const error = Object.assign(new RangeError('hunter2'), { code: 'ERR_OUT_OF_RANGE' })
  match(describeFatalError(error), /^oarlock worker: unexpected RangeError \(ERR_OUT_OF_RANGE\) at .*fatal-error\.test\.ts:\d+/)
  equal(describeFatalError('hunter2'), 'oarlock worker: unexpected error')
})

test('contains nothing of the message, on one line', () => {
  const changed = new Error('a message')
  changed.message = 'another message'
  changed.stack = 'Error: hunter2\n    at hunter2'
  const errors = [
    new Error('hunter2'),
    new SyntaxError('Invalid regular expression: /hunter2/: Regular expression too large'),
    new Error('failed\n    at hunter2 (file.ts:1:2)\n    at hunter2'),
    new Error('failed', { cause: new Error('hunter2') }),
    new AggregateError([new Error('hunter2')], 'hunter2'),
    Object.assign(new Error('hunter2'), { name: 'hunter2 2', code: 'hunter2' }),
    changed,
  ]
  for (const error of errors) {
    const line = describeFatalError(error)
    ok(!line.includes('hunter2'), line)
    ok(!line.includes('\n'), line)
  }
})

test('an error of a system call has an exit code of its own, also as the cause of another error', () => {
  const full = Object.assign(new Error('ENOSPC: no space left on device, write'), { errno: -28, code: 'ENOSPC', syscall: 'write' })
  equal(fatalExitCode(full), workerExitCodes.systemError)
  equal(fatalExitCode(new Error('failed to write', { cause: full })), workerExitCodes.systemError)
  const errors = [new TypeError('a bug'), Object.assign(new RangeError('a bug'), { code: 'ERR_OUT_OF_RANGE' }), 'a bug', undefined]
  for (const error of errors) equal(fatalExitCode(error), workerExitCodes.unexpected)
})
