import { equal } from 'node:assert/strict'
import { test } from 'node:test'
import { visibleText as visibleTextOfCommands } from '../../../kubernetes/util/index.ts'
import { visibleText } from './visible-text.ts'

test('escapes what the command line escapes', () => {
  for (let code = 0; code <= 0xffff; code++) {
    const character = String.fromCharCode(code)
    equal(visibleText(character), visibleTextOfCommands(character))
  }
  equal(visibleText('a\u202eb\r\n'), 'a\\u202eb\\u000d\n')
})
