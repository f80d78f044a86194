import { deepEqual, throws } from 'node:assert/strict'
import { test } from 'node:test'
import { exitCodes } from './exit-codes.ts'
import { parseLabels } from './parse-labels.ts'

test('labels are parsed; a value may be empty or contain no further =', () => {
  deepEqual(parseLabels(['zone=a', 'example.com/gpu='], 'pool'), { zone: 'a', 'example.com/gpu': '' })
})

for (const [name, text, message] of [
  ['without =', 'zone', /^--label must be key=value, got "zone"$/],
  ['without a key', '=a', /^--label must be key=value, got "=a"$/],
  ['with an invalid value', 'zone=a b', /^--label labels/],
] as const) {
  test(`a label ${name} is a usage error`, () => {
    throws(() => parseLabels([text], 'token create'), { message, exitCode: exitCodes.usage, hint: 'oarlock token create --help' })
  })
}
