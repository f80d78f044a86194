import { deepEqual, doesNotMatch } from 'node:assert/strict'
import { test } from 'node:test'
import { parse } from 'yaml'
import { stringifyYaml } from './stringify-yaml.ts'

test('no character is one that a terminal executes or that reverses text, and the value is the same', () => {
  const text = 'a \u202egnp.exe\u202c: b\nsecond\u2066\u009b2J\u007f\u2028'
  const value = { [text]: text, list: [text, 'plain', 'off'], lines: 'one\ntwo\n', script: `#!/bin/sh\n# \u202e\n${'x'.repeat(200)}\n` }
  const written = stringifyYaml(value)
  doesNotMatch(written, /[^\P{Cc}\n]|[\p{Bidi_Control}\p{Zl}]/u)
  deepEqual(parse(written), value)
})
