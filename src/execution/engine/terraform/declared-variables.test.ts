// biome-ignore-all lint/suspicious/noTemplateCurlyInString: Terraform's templates look like JavaScript's
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { declaredVariables } from './declared-variables.ts'
import { variablesFile } from './variables-file.ts'

for (const { name, file = 'main.tf', text, want } of [
  { name: 'a declaration', text: 'variable "a" {}\nvariable b {\n}\n', want: ['a', 'b'] },
  { name: 'comments', text: '# variable "x" {}\n// variable "y" {}\n/* variable "z" {} */ variable "a" {}', want: ['a'] },
  { name: 'a string', text: 'locals { a = "variable \\"x\\" {" }\nvariable "a" {}', want: ['a'] },
  { name: 'a template with braces and quotes', text: 'locals { a = "${join("}", ["{"])} }" }\nvariable "a" {}', want: ['a'] },
  { name: 'an escaped template', text: 'locals { a = "$${" }\nvariable "a" {}', want: ['a'] },
  { name: 'a heredoc', text: 'locals {\n  a = <<-EOT\n    }\n  variable "x" {}\n  EOT\n}\nvariable "a" {}', want: ['a'] },
  { name: 'a nested block with the same name', text: 'resource "a" "b" {\n  variable "x" {}\n}\n', want: [] },
  { name: 'JSON', file: 'v.tf.json', text: '{"variable": {"a": {}, "b": {"type": "string"}}}', want: ['a', 'b'] },
  { name: 'JSON as a list', file: 'v.tf.json', text: '{"variable": [{"a": {}}]}', want: ['a'] },
  { name: 'invalid JSON', file: 'v.tf.json', text: '{"variable"', want: [] },
  { name: 'a file of another type', file: 'readme.md', text: 'variable "a" {}', want: [] },
]) {
  test(`declared variables: ${name}`, () => assert.deepEqual([...declaredVariables([{ name: file, text }])].sort(), want))
}

test('terminates for any text', () => {
  const piece = fc.constantFrom('"', '${', '}', '{', '<<EOT\n', 'EOT\n', '/*', '*/', '#', '\n', 'variable "a" {', '\\', 'x ')
  fc.assert(fc.property(fc.array(piece), pieces => void declaredVariables([{ name: 'main.tf', text: pieces.join('') }])))
})

test('the variables file has one variable per line and omits undeclared variables', () => {
  const file = variablesFile({ b: 'two\nlines', other: 1, a: { x: '${no}' } }, new Set(['a', 'b']), ['a'])
  assert.deepEqual(JSON.parse(file.text), { b: 'two\nlines', a: { x: '${no}' } })
  assert.deepEqual([1, 2, 3, 4].map(file.variableOfLine), [undefined, 'b', 'a', undefined])
  assert.deepEqual(file.omitted, ['other'])
})
