import { equal } from 'node:assert/strict'
import { test } from 'node:test'
import { performTask, type TaskRequest } from './stack-tasks.ts'

const state = JSON.stringify({ version: 4, serial: 1, resources: [] })

for (const [name, ...args] of [
  ['resourcesIn', 'no JSON', 10],
  ['resourcesIn', 'null', 10],
  ['attributesOf', '{', 'a.b'],
  ['attributesOf', '[]', 'a.b'],
  ['diffStates', 'null', state, { from: 1, to: 2, withValues: false }],
  ['diffStates', '{', state, { from: 1, to: 2, withValues: false }],
  ['withNewerSerial', '[', state],
] as const)
  test(`a stored state that is no state is reported as such: ${name} of ${args[0]}`, () => {
    const reply = performTask({ name, args } as TaskRequest)
    const { code, reason, message } = 'status' in reply ? reply.status : {}
    equal(`${code} ${reason} ${message}`, '422 Invalid the stored state is not a JSON object: inspect it with "oarlock state pull"')
  })
