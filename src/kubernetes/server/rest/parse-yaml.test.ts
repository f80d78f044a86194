import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cpuMs } from '../../../../test/support/cpu-ms.ts'
import { parseYamlText } from './parse-yaml.ts'

for (const [name, text, value] of [
  ['block style', 'a: 1\nb: [x, z]\nc:\n  d: "e"\n', { a: 1, b: ['x', 'z'], c: { d: 'e' } }],
  ['JSON', ' {"a": [1, {"b": null}], "__proto__": "kept"}', JSON.parse('{"a":[1,{"b":null}],"__proto__":"kept"}')],
  ['flow style', '{a: 1, b: [x]} # no JSON', { a: 1, b: ['x'] }],
  ['an alias', 'a: &x {b: 1}\nc: *x\n', { a: { b: 1 }, c: { b: 1 } }],
  ['empty text', '', null],
] as [string, string, unknown][]) {
  test(`parses ${name}`, () => assert.deepEqual(parseYamlText(text), value))
}

for (const [name, text, message] of [
  ['a duplicate key', 'a: 1\nb:\n  - c: 1\n    c: 2\n', /^duplicate key "c" in a mapping at line 4, column 5$/],
  ['a duplicate key in JSON', '{"a":{"b":1,"b":2}}', /^duplicate key "a\.b"$/],
  ['two documents', 'a: 1\n---\nb: 2\n', /multiple documents/],
  ['text that is not YAML', 'a: [1', /./],
  ['a number that cannot be stored', 'a: 9007199254740993', /cannot be stored exactly/],
] as [string, string, RegExp][]) {
  test(`rejects ${name}`, () => assert.throws(() => parseYamlText(text), { message }))
}

test('parses a mapping with many keys in linear time', () => {
  const text = Array.from({ length: 20_000 }, (_, index) => `k${index}: v\n`).join('')
  const ms = cpuMs(() => assert.equal(Object.keys(parseYamlText(text) as object).length, 20_000))
  // Comparing each with each took 15 s.
  assert.ok(ms < 6_000, `${ms} ms`)
})

test('parses YAML 1.1 as kube-apiserver does: without dates and sexagesimal numbers', () => {
  const text = 'a: 0x10\nb: yes\nc: ~\nd: 1.5\ne: 2001-01-01\nf: |\n  x\n  y\n<<: {g: 1}\nh: 0777\ni: 1:30\nj: "on"\n'
  const value = { a: 16, b: true, c: null, d: 1.5, e: '2001-01-01', f: 'x\ny\n', g: 1, h: 511, i: '1:30', j: 'on' }
  assert.deepEqual(parseYamlText(text), value)
})
