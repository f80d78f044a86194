import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { describeJsonSyntaxError } from './json-syntax-error.ts'

for (const [text, want] of [
  ['{"password": hunter2}', 'unexpected character'],
  ['{"password": "hunter2"', 'unexpected character at position 22 (line 1 column 23)'],
  ['{"password": "hunter2', 'unexpected character at position 21 (line 1 column 22)'],
  ['{"password": "hunter2\n"}', 'unexpected character at position 21 (line 1 column 22)'],
  ['hunter2', 'unexpected character'],
  ['{"a": 1} hunter2', 'unexpected character at position 9 (line 1 column 10)'],
  ['', 'unexpected end of the text'],
] as const)
  test(`describes the error in ${JSON.stringify(text)} without quoting it`, () => {
    let found: unknown
    try {
      JSON.parse(text)
    } catch (error) {
      found = describeJsonSyntaxError(error)
    }
    deepEqual(found, want)
  })
