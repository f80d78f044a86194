import { equal } from 'node:assert/strict'
import { test } from 'node:test'
import { AppStartError } from '../app/index.ts'
import type { CliError } from './cli-error.ts'
import { exitCodes } from './exit-codes.ts'
import { startError } from './start-error.ts'

for (const [kind, exitCode] of [
  ['Listen', exitCodes.listen],
  ['DataDirectory', exitCodes.dataDirectory],
  ['Crds', exitCodes.rejected],
  ['Shards', exitCodes.rejected],
] as const) {
  test(`a start that fails because of ${kind} exits with ${exitCode} and keeps the hint`, () => {
    const error = startError(new AppStartError(kind, 'message', 'hint'), 'up') as CliError
    equal(error.exitCode, exitCode)
    equal(error.hint, 'hint')
  })
}

test('an invalid address is a usage error with the help of the command, and an unknown error is unchanged', () => {
  const usage = startError(new RangeError('address must be HOST:PORT'), 'stores') as CliError
  equal(usage.exitCode, exitCodes.usage)
  equal(usage.hint, 'oarlock stores --help')
  const unknown = new Error('x')
  equal(startError(unknown, 'up'), unknown)
})
