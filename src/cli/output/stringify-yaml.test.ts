import { deepEqual, doesNotMatch } from 'node:assert/strict'
import { test } from 'node:test'
import { parse } from 'yaml'
import { escapeControls } from './escape-controls.ts'
import { stringifyYaml } from './stringify-yaml.ts'

test('what is printed has no character that a terminal executes or that reverses text, and the same value', async () => {
  const text = 'a \u202egnp.exe\u202c: b\nsecond\u2066\u009b2J\u007f'
  const value = { [text]: text, list: [text, 'plain', 'off'], lines: 'one\ntwo\n', script: `#!/bin/sh\n# \u202e\n${'x'.repeat(200)}\n` }
  const printed = escapeControls(await stringifyYaml(value))
  doesNotMatch(printed, /[^\P{Cc}\n]|\p{Bidi_Control}/u)
  deepEqual(parse(printed), value)
})
