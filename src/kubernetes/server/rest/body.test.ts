import { match, ok, throws } from 'node:assert/strict'
import { test } from 'node:test'
import { parseBody } from './body.ts'

for (const [contentType, text] of [
  ['application/json', '{"data":{"password": hunter2hunter2}}'],
  ['application/json', '{"data":{"password":"hunter2hunter2'],
  ['application/json', 'hunter2hunter2'],
  ['application/yaml', 'data:\n  password: "hunter2hunter2\n'],
  ['application/yaml', 'data: {password: hunter2hunter2'],
  ['application/yaml', 'data:\n  password: [a]hunter2hunter2]\n'],
  ['application/yaml', 'data:\n password: x\n  hunter2hunter2: y\n'],
  ['application/yaml', '"a" "hunter2hunter2"'],
  ['application/yaml', '}hunter2hunter2: x'],
] as const)
  test(`the error of the invalid ${contentType} ${JSON.stringify(text)} does not repeat the body`, () => {
    throws(
      () => parseBody(text, contentType),
      (error: Error) => {
        ok(!error.message.includes('hunter2'), error.message)
        match(error.message, /^the body of the request is not valid (JSON|YAML): \w/)
        return true
      },
    )
  })
